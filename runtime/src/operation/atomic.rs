//! Accumulate, get_accumulate, fetch_and_op, compare_and_swap (MPI-4.1 §12.3.4).
//!
//! Elements are updated by the network device's atomics where the window's domain says so (`device.rs`). All others by the
//! CPU at the target: where its memory is mapped the origin uses the CPU's atomic instructions on it (or, for elements that
//! have none, the locks of their places), elsewhere the target's agent does the same. So all paths to one element are atomic
//! to each other, the owner's included.

use std::sync::Arc;

use transom_transport::{
    Basic, DataType, ReduceOp, Reduction, Span, Swappable, TransportError, TransportResult, Updates,
};

use super::device;
use super::transfer::{Place, message_room};
use crate::engine::{Engine, Pull, Request, pack, unpack};
use crate::explain::{Path, Reason};
use crate::memory;
use crate::protocol::wire::{Header, Kind};
use crate::window::{Core, Domain, Peer, Reach};
use crate::{Class, Result};

/// Operands of this many bytes or more are fetched by the target.
const PULLED: usize = 64 << 10;
/// Pieces of one accumulate that are on their way at once: bounds the target's buffers.
const AT_ONCE: usize = 4;
/// Bytes of the widest element that a header carries.
const NARROW: usize = 8;

/// What an accumulate does: the operation, the element type, the operands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accumulate<'a> {
    pub op: ReduceOp,
    pub ty: DataType,
    pub operands: &'a [u8],
}

/// Whether others may map the target's memory, so that everybody updates it by the same rules (`Updates`). The device keeps
/// to none, and what others attach to a dynamic window only its owner and the owner's agent update.
fn is_shared(core: &Core, place: &Place<'_>) -> bool {
    let others = place.target != core.rank() || !core.private;
    others && core.domain == Domain::Cpu && matches!(place.remote, Reach::Fixed(_))
}

/// Updates one element of mapped memory by `update`. Where only this rank and its agent do, the agent's large updates are kept away.
#[inline]
fn update_one<R>(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    update: impl FnOnce() -> TransportResult<R>,
) -> Result<R> {
    let updated = if is_shared(core, place) {
        let updates = core.updates(operation, place.target, place.peer)?;
        let outside = TransportError::Range { offset: place.offset, bytes: 0, len: 0 };
        updates.one(&core.member.control.sections, place.agent_offset(), update).unwrap_or(Err(outside))
    } else if core.private {
        let _updating = core.exposure.gate.read();
        update()
    } else {
        update()
    };
    updated.map_err(|e| core.failed(operation, place.target, &e))
}

/// Updates elements of mapped memory from `ahead` bytes behind the place on, as [`update_one`].
pub(super) fn update(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    memory: &Span,
    ahead: usize,
    what: Accumulate<'_>,
    fetched: Option<&mut [u8]>,
) -> Result<()> {
    let (number, offset) = (place.agent_offset() + ahead as u64, place.offset + ahead);
    let updated = if is_shared(core, place) {
        let updates = core.updates(operation, place.target, place.peer)?;
        update_shared(core, updates, memory, (number, offset), what, fetched)
    } else {
        let Accumulate { op, ty, operands } = what;
        let stripes = core.stripes(operation, place.target, place.peer)?;
        let _updating = core.private.then(|| core.exposure.gate.read());
        memory.update(stripes, number, op, ty, offset, operands, fetched)
    };
    updated.map_err(|e| core.failed(operation, place.target, &e))
}

/// Updates elements of a target's part, which is `memory`, if how is known from before ([`is_shared`]).
#[inline]
pub(crate) fn update_known(
    core: &Core,
    (target, peer): (usize, &Peer),
    memory: &Span,
    offset: usize,
    what: Accumulate<'_>,
) -> Option<Result<()>> {
    if !core.at_hand || core.domain != Domain::Cpu {
        return None;
    }
    let updates = peer.updates.get()?;
    let updated = update_shared(core, updates, memory, (offset as u64, offset), what, None);
    Some(updated.map_err(|e| core.failed("accumulate", target, &e)))
}

/// Updates elements by the rules of their memory, which long accumulates change.
#[inline]
fn update_shared(
    core: &Core,
    updates: &Updates,
    memory: &Span,
    (place, offset): (u64, usize),
    what: Accumulate<'_>,
    fetched: Option<&mut [u8]>,
) -> TransportResult<()> {
    let Accumulate { op, ty, operands } = what;
    if updates.should_leave(operands.len()) {
        updates.leave(|| core.everybody_is_outside());
    }
    let what = Reduction { op, ty, operands };
    updates.many(&core.member.control.sections, memory, place, offset, what, fetched)
}

/// Starts an accumulate. The operands may be reused at once.
pub(crate) fn accumulate(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    const NAME: &str = "accumulate";
    if let Some(words) = core.words(place, what.ty, 0)? {
        return device::accumulate(core, place, words, what);
    }
    if let Some(memory) = &place.remote.direct {
        core.took_update(place, memory, what.ty.size(), what.operands.len());
        return update(core, NAME, place, memory, 0, what, None);
    }
    if what.operands.len() >= PULLED && core.member.engine.routes.route(place.peer.world).capabilities.rma {
        let pulled = if core.live.ordered() { accumulate_pulled } else { accumulate_pulled_later };
        return pulled(core, place, what);
    }
    core.took_agent(place, what.ty.size(), what.operands.len());
    accumulate_by_messages(core, place, what)
}

/// Sends the operands along. A flush confirms that they are applied.
fn accumulate_by_messages(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    const NAME: &str = "accumulate";
    let room = room(core, place.peer, what.ty);
    for (i, part) in what.operands.chunks(room).enumerate() {
        let header = header(core, place, Kind::Accumulate, what.op, what.ty, i * room);
        core.member.engine.send(NAME, place.peer.world, &header, part)?;
        place.peer.state.sent();
    }
    Ok(())
}

/// Has the target's agent get the operands itself. Complete when the call returns.
fn accumulate_pulled(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    const NAME: &str = "accumulate";
    let engine = &core.member.engine;
    let transport = engine.routes.to(place.peer.world);
    let Ok(region) = transport.register(&memory::lend(what.operands)) else {
        // No more memory can be registered: messages need none.
        core.took(place, Path::Agent, Reason::Registration, what.operands.len());
        return accumulate_by_messages(core, place, what);
    };
    core.took(place, Path::Pull, Reason::Size, what.operands.len());
    let key = region.key().0;
    let piece = whole(Pull::MOST.min(transport.capabilities().max_transfer), what.ty);
    let starts: Vec<usize> = (0..what.operands.len()).step_by(piece).collect();
    for some in starts.chunks(AT_ONCE) {
        let mut requests = Vec::with_capacity(some.len());
        for start in some {
            let mut header = header(core, place, Kind::AccumulatePull, what.op, what.ty, *start);
            header.count = piece.min(what.operands.len() - start) as u64;
            header.compare = *start as u64;
            requests.push(engine.request(NAME, place.peer.world, header, &key)?);
        }
        for request in requests {
            engine.await_reply(NAME, place.target, &request).map_err(|e| core.name(e))?;
        }
    }
    Ok(())
}

/// As [`accumulate_pulled`], but the call does not wait: a copy of the operands is kept until the target has them, and those of
/// several calls are applied in any order.
fn accumulate_pulled_later(core: &Core, place: &Place<'_>, what: Accumulate<'_>) -> Result<()> {
    const NAME: &str = "accumulate";
    let engine = &core.member.engine;
    let transport = engine.routes.to(place.peer.world);
    let operands: Arc<[u8]> = what.operands.into();
    let Ok(region) = transport.register(&memory::lend(&operands)) else {
        core.took(place, Path::Agent, Reason::Registration, what.operands.len());
        return accumulate_by_messages(core, place, what);
    };
    core.took(place, Path::Pull, Reason::Size, what.operands.len());
    let key = region.key().0;
    // The region goes before the operands.
    let kept = Arc::new((region, operands));
    let piece = whole(Pull::MOST.min(transport.capabilities().max_transfer), what.ty);
    let state = &place.peer.state;
    for start in (0..what.operands.len()).step_by(piece) {
        let room = || (state.under_way() < AT_ONCE as u64).then_some(Ok(()));
        engine.wait_until(NAME, &|| "earlier accumulates".into(), None, room).map_err(|e| core.name(e))?;
        let mut header = header(core, place, Kind::AccumulatePull, what.op, what.ty, start);
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
        let sent = engine.request_then(NAME, place.peer.world, header, &key, Some(Box::new(then)));
        if let Err(error) = sent {
            state.end();
            return Err(core.name(error));
        }
    }
    Ok(())
}

/// Accumulates and fetches what was there, element by element. Complete when the call returns.
pub(crate) fn get_accumulate(
    core: &Core,
    place: &Place<'_>,
    what: Accumulate<'_>,
    result: &mut [u8],
) -> Result<()> {
    const NAME: &str = "get_accumulate";
    let Accumulate { op, ty, operands } = what;
    if let Some(words) = core.words(place, ty, 0)? {
        return device::update(core, place, words, what, Some(result));
    }
    if let Some(memory) = &place.remote.direct {
        core.took_update(place, memory, ty.size(), operands.len());
        return update(core, NAME, place, memory, 0, what, Some(result));
    }
    core.took_agent(place, ty.size(), operands.len());
    let room = room(core, place.peer, ty);
    let mut requests: Vec<Arc<Request>> = Vec::new();
    for (i, part) in operands.chunks(room).enumerate() {
        let header = header(core, place, Kind::GetAccumulate, op, ty, i * room);
        requests.push(core.member.engine.request(NAME, place.peer.world, header, part)?);
    }
    for (request, part) in requests.iter().zip(result.chunks_mut(room)) {
        core.member.engine.await_reply(NAME, place.target, request).map_err(|e| core.name(e))?;
        let data = request.take_data();
        if data.len() != part.len() {
            return Err(core.error(Class::Count, NAME, "the target's reply is of another length"));
        }
        part.copy_from_slice(&data);
    }
    Ok(())
}

/// One element, with the result.
#[inline]
pub(crate) fn fetch_op<T: Basic>(core: &Core, place: &Place<'_>, op: ReduceOp, operand: T) -> Result<T> {
    if let Some(memory) = &place.remote.direct
        && core.is_at_hand(T::TYPE)
        && let Some(old) =
            update_one(core, "fetch_and_op", place, || memory.update_one(place.offset, op, operand))?
    {
        core.took_mapped(place, Path::Cpu, size_of::<T>());
        return Ok(old);
    }
    if let Some(words) = core.words(place, T::TYPE, 0)? {
        return device::fetch_op(core, place, words, op, operand);
    }
    fetch_op_far(core, place, op, operand)
}

#[cold]
#[inline(never)]
fn fetch_op_far<T: Basic>(core: &Core, place: &Place<'_>, op: ReduceOp, operand: T) -> Result<T> {
    const NAME: &str = "fetch_and_op";
    if place.remote.direct.is_some() || size_of::<T>() > NARROW {
        let mut old = T::new_zeroed();
        let what = Accumulate { op, ty: T::TYPE, operands: operand.as_bytes() };
        get_accumulate(core, place, what, old.as_mut_bytes())?;
        return Ok(old);
    }
    core.took_agent(place, size_of::<T>(), size_of::<T>());
    let mut header = header(core, place, Kind::FetchOp, op, T::TYPE, 0);
    header.value = pack(operand);
    fetched(core, NAME, place, header)
}

/// One element, replaced if it equals `compare`; returns what was there.
#[inline]
pub(crate) fn compare_swap<T: Swappable>(core: &Core, place: &Place<'_>, compare: T, value: T) -> Result<T> {
    if let Some(memory) = &place.remote.direct
        && core.is_at_hand(T::TYPE)
        && let Some(old) = update_one(core, "compare_and_swap", place, || {
            memory.compare_swap_one(place.offset, compare, value)
        })?
    {
        core.took_mapped(place, Path::Cpu, size_of::<T>());
        return Ok(old);
    }
    if let Some(words) = core.words(place, T::TYPE, 0)? {
        return device::compare_swap(core, place, words, compare, value);
    }
    compare_swap_far(core, place, compare, value)
}

#[cold]
#[inline(never)]
fn compare_swap_far<T: Swappable>(core: &Core, place: &Place<'_>, compare: T, value: T) -> Result<T> {
    const NAME: &str = "compare_and_swap";
    if let Some(memory) = &place.remote.direct {
        core.took_update(place, memory, size_of::<T>(), size_of::<T>());
        let mut old = T::new_zeroed();
        let (compare, value, fetched) = (compare.as_bytes(), value.as_bytes(), old.as_mut_bytes());
        let stripes = core.stripes(NAME, place.target, place.peer)?;
        update_one(core, NAME, place, || {
            memory.compare_swap_bytes(
                stripes,
                place.agent_offset(),
                T::TYPE,
                place.offset,
                compare,
                value,
                fetched,
            )
        })?;
        return Ok(old);
    }
    core.took_agent(place, size_of::<T>(), size_of::<T>());
    let mut header = header(core, place, Kind::CompareSwap, ReduceOp::Replace, T::TYPE, 0);
    header.value = pack(value);
    header.compare = pack(compare);
    fetched(core, NAME, place, header)
}

fn fetched<T: Basic>(core: &Core, operation: &'static str, place: &Place<'_>, header: Header) -> Result<T> {
    let engine = &core.member.engine;
    let request = engine.request(operation, place.peer.world, header, &[])?;
    engine.await_reply(operation, place.target, &request).map_err(|e| core.name(e))?;
    Ok(unpack(request.value()))
}

/// Bytes of whole elements that one message takes.
pub(super) fn room(core: &Core, peer: &Peer, ty: DataType) -> usize {
    whole(message_room(core, peer), ty)
}

/// Bytes of whole elements among `bytes`.
fn whole(bytes: usize, ty: DataType) -> usize {
    bytes - bytes % ty.size()
}

pub(super) fn header(
    core: &Core,
    place: &Place<'_>,
    kind: Kind,
    op: ReduceOp,
    ty: DataType,
    start: usize,
) -> Header {
    let mut header = core.member.engine.header(kind);
    header.op = op as u8;
    header.ty = ty as u8;
    header.window = place.peer.number;
    header.offset = place.agent_offset() + start as u64;
    header
}
