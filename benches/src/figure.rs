//! The figures: which operations are measured, how often, and what each is compared with.

use std::time::Duration;

use transom::Job;

use crate::Options;
use crate::limit::{Exchange, Limit, Requests, Verb};
use crate::operation::{MOST_BYTES, Operation, WORD, Windows};
use crate::options::Kind;
use crate::pair::{Pair, Target};
use crate::report::{self, Row, Unit};
use crate::samples::Samples;

const MIB: usize = 1 << 20;
/// Puts before a flush, where the rate is measured.
const RATE: usize = 1000;
/// Puts before a flush, where streaming is measured.
const STREAM: usize = 16;

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
    fn of(job: &Job, kind: Kind) -> Self {
        match (job.transport(1), kind) {
            (Some(("shm", _)), Kind::Allocated) => Self::Mapped,
            (Some(("shm", _)), Kind::Created) => Self::Attached,
            (Some(("verbs", _)), _) => Self::Device,
            _ => Self::Network,
        }
    }
}

impl Way {
    /// How long a sample takes at most. A device's work waits for nobody, so that a short sample tells as much as a long
    /// one; what interrupts it is in fewer of them.
    fn sample(self) -> Duration {
        Duration::from_millis(if self == Self::Device { 2 } else { 20 })
    }

    /// How many samples are taken, of so many operations each.
    fn rounds(self, operations: u64) -> usize {
        match self {
            Self::Device if operations > 4 => 99,
            _ => 9,
        }
    }
}

/// One line of the table, before it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    name: &'static str,
    operation: Operation,
    unit: Unit,
}

impl Figure {
    const fn new(name: &'static str, operation: Operation, unit: Unit) -> Self {
        Self { name, operation, unit }
    }

    fn all() -> Vec<Self> {
        let mut all = vec![
            Self::new("put, flush", Operation::Put(WORD), Unit::Time),
            Self::new("get, flush", Operation::Get(WORD), Unit::Time),
            Self::new("fetch_and_op", Operation::FetchAdd, Unit::Time),
            Self::new("compare_and_swap", Operation::CompareSwap, Unit::Time),
            Self::new("accumulate, flush", Operation::Accumulate(WORD), Unit::Time),
            Self::new("exclusive lock, put, unlock", Operation::LockPut, Unit::Time),
            Self::new("fence, put, fence", Operation::FencePut, Unit::Time),
            Self::new("put × 1000, flush", Operation::Puts { bytes: WORD, count: RATE }, Unit::Rate(RATE)),
        ];
        let sizes = || (12..=22).step_by(2).map(|power| 1 << power);
        let bandwidth = |name, operation: fn(usize) -> Operation| {
            sizes().map(move |bytes| Self::new(name, operation(bytes), Unit::Bandwidth(bytes)))
        };
        all.extend(bandwidth("put, flush", Operation::Put));
        all.extend(sizes().take(5).map(|bytes| {
            let puts = Operation::Puts { bytes, count: STREAM };
            Self::new("put × 16, flush", puts, Unit::Bandwidth(bytes * STREAM))
        }));
        all.extend(bandwidth("get, flush", Operation::Get));
        all.push(Self::new("accumulate f64, flush", Operation::Accumulate(MIB), Unit::Bandwidth(MIB)));
        all
    }

    /// Bytes that one operation of the figure moves.
    fn bytes(&self) -> usize {
        match self.unit {
            Unit::Bandwidth(bytes) => bytes,
            Unit::Rate(puts) => puts * WORD,
            Unit::Time => WORD,
        }
    }

    /// Operations in a sample.
    fn count(&self, way: Way, quick: bool) -> u64 {
        if quick {
            return 3;
        }
        let (small, bytes) = match way {
            Way::Mapped => (100_000, 64 * MIB),
            Way::Attached => (2_000, 32 * MIB),
            Way::Device | Way::Network => (300, 16 * MIB),
        };
        let small = if self.operation == Operation::FencePut { small.min(2_000) } else { small };
        small.min(bytes / self.bytes()).max(4) as u64
    }

    /// What the figure is compared with: mostly one thing.
    fn limits(&self, way: Way) -> Vec<Limit> {
        match (way, self.operation) {
            (Way::Mapped, _) => vec![self.limit_of_memory()],
            (Way::Attached, _) => vec![self.limit_of_attach()],
            (Way::Network, _) => vec![self.limit_of_network()],
            (Way::Device, Operation::Puts { bytes: WORD, count }) => {
                [Requests::TOGETHER, 1].map(|together| Self::writes(WORD, count, together)).into()
            }
            (Way::Device, _) => vec![self.limit_of_device()],
        }
    }

    fn limit_of_memory(&self) -> Limit {
        match self.operation {
            Operation::Put(WORD) => Limit::LockedStore,
            Operation::Get(WORD) | Operation::Puts { bytes: WORD, .. } => Limit::Store,
            Operation::FetchAdd | Operation::CompareSwap | Operation::Accumulate(WORD) => Limit::AtomicAdd,
            Operation::LockPut => Limit::TwoAtomicAdds,
            Operation::FencePut => Limit::CacheLine,
            Operation::Accumulate(bytes) => Limit::AddLoop(bytes),
            Operation::Put(bytes) | Operation::Puts { bytes, .. } => Limit::Copy(bytes),
            Operation::Get(bytes) => Limit::CopyBack(bytes),
        }
    }

    fn limit_of_attach(&self) -> Limit {
        match self.operation {
            Operation::Put(bytes) | Operation::Puts { bytes, .. } => Limit::AttachWrite(bytes),
            Operation::Get(bytes) => Limit::AttachRead(bytes),
            Operation::LockPut => Limit::AttachWrite(WORD),
            Operation::FetchAdd
            | Operation::CompareSwap
            | Operation::Accumulate(WORD)
            | Operation::FencePut => Limit::CacheLine,
            Operation::Accumulate(bytes) => Limit::AddLoop(bytes),
        }
    }

    fn limit_of_network(&self) -> Limit {
        let exchange = |messages, out, back| Limit::Tcp(Exchange { messages, out, back });
        match self.operation {
            Operation::FetchAdd | Operation::CompareSwap | Operation::LockPut | Operation::FencePut => {
                Limit::Tcp(Exchange::ROUND_TRIP)
            }
            Operation::Put(bytes) | Operation::Accumulate(bytes) => exchange(1, bytes, WORD),
            Operation::Get(bytes) => exchange(1, WORD, bytes),
            Operation::Puts { bytes, count } => exchange(count, bytes, WORD),
        }
    }

    fn limit_of_device(&self) -> Limit {
        let one = |verb, bytes| Limit::Verbs(Requests { verb, bytes, count: 1, together: 1 });
        match self.operation {
            Operation::Put(bytes) | Operation::Accumulate(bytes @ MIB..) => one(Verb::Write, bytes),
            Operation::Puts { bytes, count } => Self::writes(bytes, count, count),
            Operation::Get(bytes) => one(Verb::Read, bytes),
            Operation::CompareSwap => one(Verb::CompareSwap, WORD),
            Operation::FetchAdd | Operation::Accumulate(_) => one(Verb::FetchAdd, WORD),
            // The lock has to be there before the put, which can travel with the end of the lock: two round trips.
            Operation::LockPut => one(Verb::CompareSwap, WORD),
            Operation::FencePut => one(Verb::Write, WORD),
        }
    }

    fn writes(bytes: usize, count: usize, together: usize) -> Limit {
        Limit::Verbs(Requests { verb: Verb::Write, bytes, count, together })
    }

    /// How many of the limit make one operation.
    fn limits_per_operation(&self, limit: Limit) -> u64 {
        match (self.operation, limit) {
            (Operation::LockPut, Limit::Verbs(_)) => 2,
            (_, Limit::Tcp(_) | Limit::Verbs(_)) => 1,
            (Operation::Puts { count, .. }, _) => count as u64,
            _ => 1,
        }
    }

    /// Measures the figure beside a limit. Collective.
    fn measure(
        &self,
        pair: &mut Pair<'_>,
        windows: &mut Windows,
        (way, limit): (Way, Limit),
        quick: bool,
    ) -> anyhow::Result<Row> {
        let operation = self.operation;
        let times = self.limits_per_operation(limit);
        let most = (self.count(way, quick), way.sample());
        let limits = pair.calibrate(most, |pair, count| pair.sample_limit(limit, count * times))?;
        let count =
            pair.calibrate(most, |pair, count| pair.sample(windows, operation, count, Target::Waits))?;
        let [mut waits, mut computes, mut bound] = [const { Samples::new() }; 3];
        for _ in 0..if quick { 2 } else { way.rounds(count) } {
            bound.push(pair.sample_limit(limit, limits * times)?, limits);
            waits.push(pair.sample(windows, operation, count, Target::Waits)?, count);
            if operation != Operation::FencePut {
                computes.push(pair.sample(windows, operation, count, Target::Computes)?, count);
            }
        }
        let (name, unit, size) = (self.name, self.unit, operation.bytes());
        Ok(Row { window: "", name, size, unit, waits, computes, limit: limit.name(), bound })
    }
}

/// Measures all figures and returns the report, at rank 0.
pub(crate) fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    let mut pair = Pair::new(job, options, MOST_BYTES)?;
    let mut rows = Vec::new();
    for kind in options.kinds() {
        let mut windows = Windows::new(job, kind)?;
        let way = Way::of(job, kind);
        let wanted = |figure: &Figure| {
            options.wants(figure.name) && figure.bytes() <= options.most.unwrap_or(usize::MAX)
        };
        for figure in Figure::all().into_iter().filter(wanted) {
            for limit in figure.limits(way) {
                let row = figure.measure(&mut pair, &mut windows, (way, limit), options.quick)?;
                rows.push(Row { window: kind.name(), ..row });
            }
        }
        windows.free()?;
    }
    pair.free()?;
    Ok(if job.rank() == 0 { report::figures(job, options, &rows) } else { String::new() })
}
