//! The agent, the target's side of operations that are active messages: applies them to this rank's windows, with the same
//! CPU atomics that ranks of this node use themselves, so that all paths to one word are atomic to each other.
//!
//! It runs in whichever thread makes progress, never blocks, and validates every message: a malformed one is refused.

use std::sync::atomic::Ordering;

use transom_transport::{DataType, Payload, ReduceOp, RegionKey, TransportError, reduce_valid};

use super::pull::Pull;
use super::{Engine, RegionInfo, gathered, key_for, locks, runs, two_sided};
use crate::memory::Staging;
use crate::protocol::gathered::split_window;
use crate::protocol::matching::{self, Mismatch};
use crate::protocol::pscw::Call;
use crate::protocol::wire::{self, Header, Kind};

/// Carries out one message.
pub(super) fn handle(engine: &Engine, header: &Header, kind: Kind, payload: Payload<'_>) {
    if header.origin as usize >= engine.size {
        tracing::warn!(origin = header.origin, "dropped a message from a rank that the job does not have");
        return;
    }
    match kind {
        Kind::Collective => collective(engine, header, payload),
        Kind::Eager
        | Kind::RequestToSend
        | Kind::ClearToSend
        | Kind::Segment
        | Kind::Done
        | Kind::Recall
        | Kind::Recalled
        | Kind::Parts
        | Kind::Part
        | Kind::Join => {
            if two_sided::handle(engine, header, kind, payload).is_none() {
                tracing::warn!(?kind, origin = header.origin, "dropped a malformed part of a message");
            }
        }
        Kind::Reply => payload.with(|payload| replied(engine, header, payload)),
        Kind::Flush if header.status == wire::CONFIRM => confirm(engine, header, true),
        Kind::Flush => reply(engine, header, Some(Answer::Value(0))),
        Kind::Applied => applied(engine, header),
        Kind::Revoke => {
            if let Some(exposure) = engine.exposures.get(header.window) {
                exposure.revoked.write().insert(header.origin as usize);
            }
            reply(engine, header, Some(Answer::Value(0)));
        }
        Kind::RevokeContext => payload.with(|payload| engine.heard_of_revocation(header, payload)),
        Kind::Wake => locks::agent_recheck(engine, header.window),
        Kind::Ask => engine.give_sign_of_life(header.origin as usize),
        Kind::Here => engine.signs.seen(header.origin as usize),
        // Its arrival alone makes waiting threads check again.
        Kind::Ring => {}
        Kind::Waiting => {
            let who = Mismatch { source: header.origin as usize, collective: header.op };
            let mut matching = engine.matching.lock();
            matching.waits(header.context(), header.offset, who);
            engine.waiting.store(true, Ordering::Release);
        }
        Kind::Lock | Kind::Unlock | Kind::Abandon | Kind::Withdraw => {
            payload.with(|payload| locks::handle(engine, header, kind, payload));
        }
        Kind::Post | Kind::Complete => payload.with(|payload| matched(engine, header, kind, payload)),
        Kind::FindRegion => {
            let answer = find_region(engine, header);
            reply(engine, header, answer);
        }
        Kind::ForgetRegion => {
            if let Some(exposure) = engine.exposures.get(header.window) {
                // Waits for an access under way to end.
                let _revoking = exposure.revoked.write();
                if let Some(regions) = exposure.regions() {
                    regions.forget(header.origin as usize, header.offset as usize);
                }
            }
            reply(engine, header, Some(Answer::Value(0)));
        }
        Kind::Accumulate | Kind::Put | Kind::Notify | Kind::Apply => {
            let done = payload.with(|payload| access(engine, header, kind, payload)).is_some();
            if header.status == wire::CONFIRM {
                confirm(engine, header, done);
            }
            if !done {
                tracing::warn!(
                    ?kind,
                    origin = header.origin,
                    window = header.window,
                    "dropped a malformed access"
                );
            }
        }
        Kind::AccumulatePull => {
            if payload.with(|payload| pull(engine, header, payload)).is_none() {
                reply(engine, header, None);
            }
        }
        Kind::GetAccumulate | Kind::FetchOp | Kind::CompareSwap | Kind::Get => {
            let answer = payload.with(|payload| access(engine, header, kind, payload));
            reply(engine, header, answer);
        }
    }
}

pub(super) enum Answer {
    Value(u64),
    Data(Vec<u8>),
}

/// Sends an answer; none means that the request is refused.
pub(super) fn reply(engine: &Engine, request: &Header, answer: Option<Answer>) {
    let mut header = engine.header(Kind::Reply);
    header.request = request.request;
    header.window = request.window;
    let mut data = Vec::new();
    match answer {
        Some(Answer::Value(value)) => header.value = value,
        Some(Answer::Data(bytes)) => data = bytes,
        None => header.status = wire::REFUSED,
    }
    engine.send_later(request.origin as usize, &header, &data);
}

/// Says that a message is applied, or refused.
fn confirm(engine: &Engine, message: &Header, done: bool) {
    let mut header = engine.header(Kind::Applied);
    (header.request, header.value) = (message.request, message.value);
    header.status = if done { wire::OK } else { wire::REFUSED };
    engine.send_later(message.origin as usize, &header, &[]);
}

/// A message of this rank's is applied at its target, or refused, and all before it are over.
fn applied(engine: &Engine, header: &Header) {
    let refused = (header.status != wire::OK).then(|| TransportError::Peer {
        peer: header.origin as usize,
        reason: "the target refused the operation: its window is gone, or does not hold it".into(),
    });
    if !engine.pendings.confirmed(header.request, header.value, refused) {
        tracing::debug!(origin = header.origin, number = header.value, "a confirmation of nothing");
    }
}

fn collective(engine: &Engine, header: &Header, payload: Payload<'_>) {
    if header.status == wire::CARRIES {
        if payload.with(|payload| carried(engine, payload)).is_none() {
            tracing::warn!(origin = header.origin, "dropped malformed operations of a fence");
        }
        let without = Header { status: wire::OK, value: 0, compare: 0, ..*header };
        return collective(engine, &without, Payload::Here(&[]));
    }
    let key = matching::Key {
        source: header.origin as usize,
        context: header.context(),
        sequence: header.offset,
        round: header.count,
    };
    let mut matching = engine.matching.lock();
    engine.has_collectives.store(true, Ordering::Release);
    let taken =
        header.with_part(payload, |total, start, part| matching.arrived(key, header.op, total, start, part));
    drop(matching);
    if !taken {
        tracing::warn!(?key, "dropped a malformed part of a collective");
    }
}

/// Carries out the operations of an epoch that ends with a fence's message.
fn carried(engine: &Engine, payload: &[u8]) -> Option<()> {
    let (window, count, operations) = split_window(payload)?;
    gathered::apply(&*engine.exposures.get(window)?, count, operations)
}

/// A post or a complete has arrived.
fn matched(engine: &Engine, header: &Header, kind: Kind, operations: &[u8]) {
    let Some(exposure) = engine.exposures.get(header.window) else {
        tracing::warn!(?kind, origin = header.origin, window = header.window, "dropped: no such window");
        return;
    };
    if header.count > 0 && gathered::apply(&exposure, header.count, operations).is_none() {
        tracing::warn!(origin = header.origin, window = header.window, "dropped malformed operations");
    }
    let call = if kind == Kind::Post { Call::Post } else { Call::Complete };
    exposure.count_call(call, header.origin as usize);
}

/// Address and key of an attached region, for a rank that is notified from now on when the region is detached.
fn find_region(engine: &Engine, header: &Header) -> Option<Answer> {
    let exposure = engine.exposures.get(header.window)?;
    let (address, bytes) = (usize::try_from(header.offset).ok()?, usize::try_from(header.count).ok()?);
    let origin = header.origin as usize;
    let regions = exposure.regions()?;
    let info = match regions.find_for(origin, address, bytes) {
        Some(region) => {
            let key = key_for(&region.keys, engine.routes.to(origin).name()).0;
            RegionInfo::Attached { address: region.address, key }
        }
        None => regions.say_detached(address, bytes)?,
    };
    postcard::to_stdvec(&info).ok().map(Answer::Data)
}

/// An access to a window's memory. `None` if the request is malformed.
fn access(engine: &Engine, header: &Header, kind: Kind, payload: &[u8]) -> Option<Answer> {
    let exposure = engine.exposures.get(header.window)?;
    let offset = usize::try_from(header.offset).ok()?;
    let operation = || {
        let (op, ty) = (ReduceOp::from_wire(header.op)?, DataType::from_wire(header.ty)?);
        reduce_valid(op, ty).then_some((op, ty))
    };
    match kind {
        Kind::Put if header.count > 0 => runs::put(&exposure, header.count, payload),
        Kind::Accumulate if header.count > 0 => {
            let (op, ty) = operation()?;
            runs::accumulate(&exposure, (op, ty), header.count, payload)
        }
        Kind::GetAccumulate if header.count > 0 => {
            let (op, ty) = operation()?;
            runs::get_accumulate(&exposure, (op, ty), header.count, payload)
        }
        Kind::Apply => gathered::apply(&exposure, header.count, payload).map(|()| Answer::Value(0)),
        Kind::Get if header.value > 0 => {
            let most = engine.routes.route(header.origin as usize).capabilities.max_message;
            runs::get(&exposure, header.value, payload, most)
        }
        Kind::Put | Kind::Notify => {
            if !payload.is_empty() {
                exposure.with(offset, payload.len(), |memory, at| memory.copy_in(at, payload).ok())??;
            }
            if kind == Kind::Notify {
                exposure.count_notification(header.compare, 1);
            }
            Some(Answer::Value(0))
        }
        Kind::Get => {
            let count = usize::try_from(header.count).ok()?;
            if count > engine.routes.route(header.origin as usize).capabilities.max_message {
                return None;
            }
            let mut data = vec![0; count];
            exposure.with(offset, count, |memory, at| memory.copy_out(at, &mut data).ok())??;
            Some(Answer::Data(data))
        }
        Kind::Accumulate => {
            let (op, ty) = operation()?;
            exposure.accumulate(op, ty, offset, payload).map(|()| Answer::Value(0))
        }
        Kind::GetAccumulate => {
            let (op, ty) = operation()?;
            let mut old = vec![0; payload.len()];
            exposure.get_accumulate(op, ty, offset, payload, &mut old)?;
            Some(Answer::Data(old))
        }
        Kind::FetchOp => {
            let (op, ty) = operation()?;
            let (operand, mut old) = (header.value.to_ne_bytes(), [0; 8]);
            let size = ty.size();
            exposure.get_accumulate(op, ty, offset, operand.get(..size)?, old.get_mut(..size)?)?;
            Some(Answer::Value(u64::from_ne_bytes(old)))
        }
        Kind::CompareSwap => {
            let ty = DataType::from_wire(header.ty)?;
            let (compare, value) = (header.compare.to_ne_bytes(), header.value.to_ne_bytes());
            let (size, mut old) = (ty.size(), [0; 8]);
            let (compare, value) = (compare.get(..size)?, value.get(..size)?);
            exposure.compare_swap(ty, offset, compare, value, old.get_mut(..size)?)?;
            Some(Answer::Value(u64::from_ne_bytes(old)))
        }
        _ => None,
    }
}

/// Starts to get the operands of a large accumulate. `None` if the request is malformed.
fn pull(engine: &Engine, header: &Header, key: &[u8]) -> Option<()> {
    let exposure = engine.exposures.get(header.window)?;
    let (op, ty) = (ReduceOp::from_wire(header.op)?, DataType::from_wire(header.ty)?);
    let (offset, len) = (usize::try_from(header.offset).ok()?, usize::try_from(header.count).ok()?);
    exposure.with(offset, len, |_, _| ())?;
    if !reduce_valid(op, ty) || len > Pull::MOST {
        return None;
    }
    let origin = header.origin as usize;
    let remote = engine.routes.to(origin).attach(origin, &RegionKey(key.to_vec())).ok()?;
    let start = usize::try_from(header.compare).ok()?;
    let staging = Staging::new(engine.pulls.buffer(), len);
    Box::new(Pull { request: *header, exposure, op, ty, offset, len, remote, start, staging }).start(engine);
    Some(())
}

/// An element of up to 8 bytes as a number of the header: its bytes first, then zeros.
pub(crate) fn pack_bytes(element: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(element).for_each(|(to, from)| *to = *from);
    u64::from_ne_bytes(bytes)
}

/// The element that [`pack_bytes`] made a number of.
pub(crate) fn unpack_bytes(value: u64, element: &mut [u8]) {
    element.iter_mut().zip(value.to_ne_bytes()).for_each(|(to, from)| *to = from);
}

/// A reply has arrived. A lock that is granted after its origin has given up is released.
fn replied(engine: &Engine, header: &Header, payload: &[u8]) {
    let accepted = header.status == wire::OK;
    let replied = engine.requests.reply(header.request, accepted, header.value, payload);
    if let Some((then, request)) = replied.then {
        then(engine, &request);
    }
    if !replied.wanted && accepted {
        let mut unlock = engine.header(Kind::Unlock);
        unlock.window = header.window;
        unlock.op = header.op;
        unlock.value = header.value;
        engine.send_later(header.origin as usize, &unlock, &[]);
    }
}
