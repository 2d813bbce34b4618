//! Which limit an operation is compared with.

use transom::Job;

use super::{Exchange, Limit, Requests, Verb as Request};
use crate::kind::Kind;
use crate::operation::{Operation, Sync, Transfers, Verb, WORD};

/// How an operation gets to the target, as far as its limit is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Loads, stores and atomics on mapped memory.
    Mapped,
    /// The target's memory is its user's: cross-memory attach, and the target's agent.
    Attached,
    /// An RDMA device.
    Device,
    /// Another network.
    Network,
}

impl Way {
    /// The way to `target`.
    pub fn of(job: &Job, kind: Kind, target: usize) -> Self {
        match (job.transport(target), kind) {
            (Some(("shm", _)), Kind::Allocated | Kind::Shared) => Self::Mapped,
            (Some(("shm", _)), Kind::Created | Kind::Dynamic) => Self::Attached,
            (Some(("verbs", _)), _) => Self::Device,
            _ => Self::Network,
        }
    }
}

/// What the target does while an operation is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// What the operation wants of it, or nothing.
    Nothing,
    /// The same operation on the origin.
    TheSame,
    /// A computation.
    Computation,
}

/// What an operation is compared with: mostly one thing, the first the best.
pub fn limits_of(way: Way, operation: Operation, beside: Beside) -> Vec<Limit> {
    match (beside, way) {
        (Beside::Computation, Way::Network) if is_small(operation) => vec![Limit::TcpAsleep],
        // Processors copy, and devices send, both ways at once as they do one way.
        (Beside::TheSame, Way::Network) => match of_network(operation) {
            Limit::Tcp(exchange) => vec![Limit::Tcp(Exchange { both_ways: true, ..exchange })],
            other => vec![other],
        },
        _ => limits_of_one(way, operation),
    }
}

fn limits_of_one(way: Way, operation: Operation) -> Vec<Limit> {
    match (way, operation) {
        (Way::Mapped, _) => vec![of_memory(operation)],
        (Way::Attached, _) => vec![of_attach(operation)],
        (Way::Network, _) => vec![of_network(operation)],
        (Way::Device, Operation { verb: Verb::Put, bytes: WORD, count: 2.., .. }) => {
            [Requests::TOGETHER, 1].map(|together| writes(operation, together)).into()
        }
        (Way::Device, _) => vec![of_device(operation)],
    }
}

/// How many of the limit make one operation.
pub fn repetitions(operation: Operation, limit: Limit) -> u64 {
    match (operation.sync, limit) {
        // The lock has to be there before the put, which can travel with the end of the lock: two round trips.
        (Sync::Lock, Limit::Verbs(Requests { count: 1, .. })) => 2,
        (_, Limit::Tcp(_) | Limit::TcpAsleep | Limit::Verbs(_)) => 1,
        _ => operation.count as u64,
    }
}

fn is_small(operation: Operation) -> bool {
    operation.count == 1 && operation.bytes <= WORD
}

fn of_memory(operation: Operation) -> Limit {
    let Operation { verb, bytes, count, sync, .. } = operation;
    match (sync, verb) {
        (Sync::Lock, _) if is_small(operation) => Limit::TwoAtomicAdds,
        (Sync::Fence | Sync::Pscw, _) if is_small(operation) => Limit::CacheLine,
        (_, Verb::Put) if bytes <= WORD && count == 1 => Limit::LockedStore,
        (_, Verb::Put | Verb::Get) if bytes <= WORD => Limit::Store,
        (_, Verb::FetchAndOp | Verb::CompareAndSwap) => Limit::AtomicAdd,
        (_, Verb::Accumulate | Verb::GetAccumulate) if bytes <= WORD => Limit::AtomicAdd,
        (_, Verb::Accumulate | Verb::GetAccumulate) => Limit::AddLoop(bytes),
        (_, Verb::Put) => Limit::Copy(operation.transfers()),
        (_, Verb::Get) => Limit::CopyBack(operation.transfers()),
    }
}

fn of_attach(operation: Operation) -> Limit {
    let Operation { verb, bytes, sync, .. } = operation;
    match (sync, verb) {
        (Sync::Lock, _) if is_small(operation) => Limit::AttachWrite(Transfers::to_one_place(WORD)),
        (Sync::Fence | Sync::Pscw, _) if is_small(operation) => Limit::CacheLine,
        (_, Verb::Put) => Limit::AttachWrite(operation.transfers()),
        (_, Verb::Get) => Limit::AttachRead(operation.transfers()),
        (_, Verb::FetchAndOp | Verb::CompareAndSwap) => Limit::CacheLine,
        (_, Verb::Accumulate | Verb::GetAccumulate) if bytes <= WORD => Limit::CacheLine,
        (_, Verb::Accumulate | Verb::GetAccumulate) => Limit::AddLoop(bytes),
    }
}

fn of_network(operation: Operation) -> Limit {
    let Operation { verb, bytes, count: messages, .. } = operation;
    let places = operation.places;
    let exchange = |out, back| Limit::Tcp(Exchange { messages, places, out, back, both_ways: false });
    match verb {
        _ if is_small(operation) => Limit::Tcp(Exchange::ROUND_TRIP),
        Verb::Put | Verb::Accumulate => exchange(bytes, WORD),
        // One answer has what all of them ask for.
        Verb::Get => exchange(WORD, bytes * messages),
        Verb::GetAccumulate => exchange(bytes, bytes * messages),
        Verb::FetchAndOp | Verb::CompareAndSwap => exchange(WORD, WORD * messages),
    }
}

fn of_device(operation: Operation) -> Limit {
    let Operation { verb, bytes, count, places, sync } = operation;
    let request = |verb, bytes| Limit::Verbs(Requests { verb, bytes, count, places, together: count });
    match (sync, verb) {
        (Sync::Lock, _) if is_small(operation) => request(Request::CompareSwap, WORD),
        (Sync::Fence | Sync::Pscw, _) if is_small(operation) => request(Request::Write, WORD),
        (_, Verb::Put) => writes(operation, count),
        // No device adds more than a word; what is added must get there.
        (_, Verb::Accumulate | Verb::GetAccumulate) if bytes > WORD => writes(operation, count),
        (_, Verb::Get) => request(Request::Read, bytes),
        (_, Verb::CompareAndSwap) => request(Request::CompareSwap, WORD),
        (_, Verb::FetchAndOp | Verb::Accumulate | Verb::GetAccumulate) => request(Request::FetchAdd, WORD),
    }
}

fn writes(operation: Operation, together: usize) -> Limit {
    let Operation { bytes, count, places, .. } = operation;
    Limit::Verbs(Requests { verb: Request::Write, bytes, count, places, together })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_an_instruction_or_a_round_trip() {
        let put = Operation::new(Verb::Put, WORD);
        assert_eq!(limits_of(Way::Mapped, put, Beside::Nothing), [Limit::LockedStore]);
        assert_eq!(limits_of(Way::Network, put, Beside::Nothing), [Limit::Tcp(Exchange::ROUND_TRIP)]);
        assert_eq!(limits_of(Way::Mapped, put.by(Sync::Lock), Beside::Nothing), [Limit::TwoAtomicAdds]);
        assert_eq!(limits_of(Way::Device, put.times(1000, 1000 * WORD), Beside::Nothing).len(), 2);
        let limit = |bytes| limits_of(Way::Device, Operation::new(Verb::Accumulate, bytes), Beside::Nothing);
        let write = limits_of(Way::Device, Operation::new(Verb::Put, 4096), Beside::Nothing);
        assert!(limit(4096) == write && limit(WORD) != write);
    }

    #[test]
    fn a_limit_is_repeated_for_each_transfer_unless_it_has_them_all() {
        let puts = Operation::new(Verb::Put, 4096).times(16, 1 << 20);
        assert_eq!(repetitions(puts, limits_of(Way::Mapped, puts, Beside::Nothing)[0]), 16);
        assert_eq!(repetitions(puts, limits_of(Way::Network, puts, Beside::Nothing)[0]), 1);
        let lock = Operation::new(Verb::Put, WORD).by(Sync::Lock);
        assert_eq!(repetitions(lock, limits_of(Way::Device, lock, Beside::Nothing)[0]), 2);
    }
}
