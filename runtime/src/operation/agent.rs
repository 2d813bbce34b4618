//! Updates by the target's agent: messages that it applies by CPU atomics, or by the locks of elements that have none, as
//! every rank does that maps the memory. So all paths to one element are atomic to each other, the owner's included.

use std::sync::Arc;

use smallvec::SmallVec;
use transom_transport::{DataType, ReduceOp, TransportError};

use super::description::Accumulate;
use super::message::{about, capacity, send_all, wrong_length};
use super::place::Place;
use super::request::Deferred;
use crate::Result;
use crate::engine::{Engine, Pull, Request, SEVERAL, pack_bytes, unpack_bytes};
use crate::explain::{Path, Reason};
use crate::memory;
use crate::protocol::wire::{Header, Kind};
use crate::waits::Awaits;
use crate::window::Core;

/// Pieces of one accumulate that are on their way at once: bounds the target's buffers.
const AT_ONCE: usize = 4;
/// Bytes of the widest element that a header carries.
const NARROW: usize = 8;

/// Sends the operands along. They may be reused at once.
pub(super) fn accumulate(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    let capacity = whole(capacity(core, place.peer), what.ty);
    for (i, several) in what.operands.chunks(capacity * SEVERAL).enumerate() {
        let start = |k| (i * SEVERAL + k) * capacity;
        let header = |k| header(core, place, Kind::Accumulate, (what.op, what.ty), start(k));
        let parts = several.chunks(capacity).enumerate();
        let mut messages: SmallVec<[(Header, &[u8]); SEVERAL]> =
            parts.map(|(k, part)| (header(k), part)).collect();
        send_all(core, place, &mut messages)?;
    }
    Ok(())
}

/// Accumulates and fetches what was there, element by element. Complete when the call returns.
pub(super) fn fetch(core: &Core, place: &Place<'_>, what: Accumulate<'_>, result: &mut [u8]) -> Result<()> {
    let Accumulate { op, ty, operands } = what;
    if operands.len() == ty.size() && ty.size() <= NARROW {
        let mut header = header(core, place, Kind::FetchOp, (op, ty), 0);
        header.value = pack_bytes(operands);
        return fetch_one(core, place, header, result);
    }
    let engine = &core.member.engine;
    let capacity = whole(capacity(core, place.peer), ty);
    let mut requests: Vec<Arc<Request>> = Vec::new();
    for (i, part) in operands.chunks(capacity).enumerate() {
        let header = header(core, place, Kind::GetAccumulate, (op, ty), i * capacity);
        requests.push(engine.request(place.operation, place.peer.world, header, part)?);
    }
    for (request, part) in requests.iter().zip(result.chunks_mut(capacity)) {
        engine
            .await_reply(place.operation, (place.target, place.peer.world), request)
            .map_err(|e| core.name(e))?;
        let data = request.take_data();
        if data.len() != part.len() {
            return Err(wrong_length(core, place));
        }
        part.copy_from_slice(&data);
    }
    Ok(())
}

/// As [`fetch`]; what was there goes to `deferred` when it comes.
pub(super) fn fetch_deferred(
    core: &Core,
    place: &Place<'_>,
    what: Accumulate<'_>,
    deferred: &Deferred,
) -> Result<()> {
    let capacity = whole(capacity(core, place.peer), what.ty);
    what.operands.chunks(capacity).enumerate().try_for_each(|(i, part)| {
        let (start, len) = (i * capacity, part.len());
        let header = header(core, place, Kind::GetAccumulate, (what.op, what.ty), start);
        deferred.request(core, place, header, part, (vec![(start, len)], len))
    })
}

/// Replaces one element, of up to 8 bytes, if it has the bytes of `compare`.
pub(super) fn compare_swap(
    core: &Core,
    place: &Place<'_>,
    ty: DataType,
    (compare, value): (&[u8], &[u8]),
    old: &mut [u8],
) -> Result<()> {
    let mut header = header(core, place, Kind::CompareSwap, (ReduceOp::Replace, ty), 0);
    header.value = pack_bytes(value);
    header.compare = pack_bytes(compare);
    fetch_one(core, place, header, old)
}

/// Asks for an update of one element, and waits for what was there.
fn fetch_one(core: &Core, place: &Place<'_>, header: Header, old: &mut [u8]) -> Result<()> {
    let engine = &core.member.engine;
    let _quietly = engine.quietly();
    let request = engine.request(place.operation, place.peer.world, header, &[])?;
    engine
        .await_reply(place.operation, (place.target, place.peer.world), &request)
        .map_err(|e| core.name(e))?;
    unpack_bytes(request.value(), old);
    Ok(())
}

/// Has the target's agent get the operands itself: in order if the window's hints want that, which waits for it.
pub(super) fn pull(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    if core.live.ordered() { pull_now(core, place, what) } else { pull_later(core, place, what) }
}

/// Has the target's agent get the operands itself. Complete when the call returns.
fn pull_now(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    let engine = &core.member.engine;
    let transport = engine.routes.to(place.peer.world);
    let Ok(region) = transport.register(&memory::expose_read_only(what.operands)) else {
        // No more memory can be registered: messages need none.
        core.count_path(place, Path::Agent, Reason::Registration, what.operands.len());
        return accumulate(core, place, what);
    };
    core.count_path(place, Path::Pull, Reason::Size, what.operands.len());
    let key = region.key().0;
    let piece = whole(Pull::MOST.min(transport.capabilities().max_transfer), what.ty);
    let starts: Vec<usize> = (0..what.operands.len()).step_by(piece).collect();
    for some in starts.chunks(AT_ONCE) {
        let mut requests = Vec::with_capacity(some.len());
        for start in some {
            let mut header = header(core, place, Kind::AccumulatePull, (what.op, what.ty), *start);
            header.count = piece.min(what.operands.len() - start) as u64;
            header.compare = *start as u64;
            requests.push(engine.request(place.operation, place.peer.world, header, &key)?);
        }
        for request in requests {
            engine
                .await_reply(place.operation, (place.target, place.peer.world), &request)
                .map_err(|e| core.name(e))?;
        }
    }
    Ok(())
}

/// As [`pull_now`], but the call does not wait: a copy of the operands is kept until the target has them, and those of
/// several calls are applied in any order.
fn pull_later(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    let engine = &core.member.engine;
    let transport = engine.routes.to(place.peer.world);
    let operands: Arc<[u8]> = what.operands.into();
    let Ok(region) = transport.register(&memory::expose_read_only(&operands)) else {
        core.count_path(place, Path::Agent, Reason::Registration, what.operands.len());
        return accumulate(core, place, what);
    };
    core.count_path(place, Path::Pull, Reason::Size, what.operands.len());
    let key = region.key().0;
    // The region goes before the operands.
    let kept = Arc::new((region, operands));
    let piece = whole(Pull::MOST.min(transport.capabilities().max_transfer), what.ty);
    let state = &place.peer.state;
    for start in (0..what.operands.len()).step_by(piece) {
        let capacity = || (state.under_way() < AT_ONCE as u64).then_some(Ok(()));
        engine
            .wait_until(
                place.operation,
                &|| Awaits::target("earlier accumulates", place.peer.world),
                None,
                capacity,
            )
            .map_err(|e| core.name(e))?;
        let mut header = header(core, place, Kind::AccumulatePull, (what.op, what.ty), start);
        header.count = piece.min(what.operands.len() - start) as u64;
        header.compare = start as u64;
        let (counting, kept, target) = (state.share(), kept.clone(), place.target);
        let then = move |_: &Engine, request: &Request| {
            if request.outcome() != Some(true) {
                counting.fail(TransportError::Peer { peer: target, reason: "the target refused it".into() });
            }
            drop(kept);
            counting.end();
        };
        state.begin();
        let sent = engine.request_then(place.operation, place.peer.world, header, &key, Some(Box::new(then)));
        if let Err(error) = sent {
            state.end();
            return Err(core.name(error));
        }
    }
    Ok(())
}

/// Bytes of whole elements among `bytes`.
fn whole(bytes: usize, ty: DataType) -> usize {
    bytes - bytes % ty.size()
}

/// A message about elements from `start` bytes behind a place on.
fn header(
    core: &Core,
    place: &Place<'_>,
    kind: Kind,
    (op, ty): (ReduceOp, DataType),
    start: usize,
) -> Header {
    let mut header = about(&core.member.engine, place, kind, start);
    (header.op, header.ty) = (op as u8, ty as u8);
    header
}
