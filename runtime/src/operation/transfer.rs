//! Put and get by the transport's transfers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use transom_transport::{Posted, TransportResult};

use super::Layout;
use super::mapped::{Layouts, index};
use super::place::Place;
use super::request::Deferred;
use crate::datatype::zip_runs;
use crate::engine::{Countdown, Engine, Pending, Route};
use crate::memory::{BufferOwner, LocalBuffer, OriginBuffer};
use crate::waits::Awaits;
use crate::window::{Core, TargetMemory};
use crate::{Class, Error, Result};

/// Starts a put or a get of some bytes of a buffer: from where in it, to how far behind the place, how many.
#[inline]
pub(super) fn piece(
    core: &Core,
    place: &Place<'_>,
    local: LocalBuffer<'_>,
    (start, ahead, bytes): (usize, usize, usize),
    deferred: Option<&Deferred>,
) -> Result<()> {
    let copied;
    let local = match local {
        LocalBuffer::Origin(OriginBuffer::Copied(bytes)) => {
            copied = OriginBuffer::owned(bytes);
            LocalBuffer::Origin(&copied)
        }
        kept => kept,
    };
    let route = core.member.engine.routes.route(place.peer.world);
    pieces(route.capabilities.max_transfer, bytes, |from, len| {
        post(core, place, route, (local.owner(), deferred), |context| {
            let remote = (&*place.remote, place.offset + ahead + from);
            local.transfer(route.transport, remote, (start + from, len), context)
        })
    })
}

/// Pieces of at least this many bytes on average are transfers of their own.
const LARGE_PIECE: usize = 1024;

/// Whether pieces are worth a transfer each: the first few stand for the rest.
pub(super) fn are_large(here: &Layout<'_>, there: &Layout<'_>) -> bool {
    const LOOK: usize = 16;
    let Ok(pieces) = zip_runs(here.count, here.datatype, there.count, there.datatype) else { return false };
    let (count, bytes) =
        pieces.take(LOOK).fold((0, 0), |(count, sum), (_, _, bytes)| (count + 1, sum + bytes));
    bytes >= count * LARGE_PIECE
}

/// Starts a put or a get for each piece.
pub(super) fn each_piece(
    core: &Core,
    place: &Place<'_>,
    local: LocalBuffer<'_>,
    (here, there): Layouts<'_>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let mut pieces = zip_runs(here.count, here.datatype, there.count, there.datatype)?;
    pieces.try_for_each(|(at, to, bytes)| {
        piece(core, place, local, (index(at), place.ahead(to), bytes), deferred)
    })
}

/// Starts gets by `start`, and waits until all of them have ended.
pub(super) fn awaited(
    core: &Core,
    place: &Place<'_>,
    start: impl FnOnce(&Deferred) -> Result<()>,
) -> Result<()> {
    let engine = &core.member.engine;
    let deferred = Deferred::reusable();
    let posted = start(&deferred);
    finish_part(engine, &deferred.count);
    let what = || Awaits::target(format!("a get from rank {}", place.target), place.peer.world);
    // Even after an error the buffer must not go before what was posted has ended.
    let awaited =
        engine.wait_until(place.operation, &what, None, || deferred.count.is_finished().then_some(Ok(())));
    if awaited.is_err() {
        super::abandon(core);
    }
    deferred.give_back();
    posted.and(awaited)?;
    match place.peer.state.take_error() {
        Some(error) => Err(core.failed(place.operation, place.target, &error)),
        None => Ok(()),
    }
}

/// One part of an operation has ended at once, or all have been started.
pub(super) fn finish_part(engine: &Engine, count: &Countdown) {
    if let Some(over) = count.count_down(None) {
        over.run(engine);
    }
}

/// Calls `each` with start and length of every piece of at most `most` bytes.
#[inline]
pub(super) fn pieces(
    most: usize,
    len: usize,
    mut each: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    if (1..=most).contains(&len) {
        return each(0, len);
    }
    let mut start = 0;
    while start < len {
        let piece = most.min(len - start);
        each(start, piece)?;
        start += piece;
    }
    Ok(())
}

/// Starts one transfer between a place and a list of parts here: `request`, given the way and the context.
pub(super) fn list(
    core: &Core,
    place: &Place<'_>,
    kept: (Option<BufferOwner>, Option<&Deferred>),
    request: impl Fn(Route<'_>, u64) -> TransportResult<Posted>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    post(core, place, route, kept, |context| request(route, context))
}

/// Posts one work request; makes progress while the queue is full.
#[inline]
fn post(
    core: &Core,
    place: &Place<'_>,
    route: Route<'_>,
    (buffer, deferred): (Option<BufferOwner>, Option<&Deferred>),
    request: impl Fn(u64) -> TransportResult<Posted>,
) -> Result<()> {
    let (pendings, count) = (&core.member.engine.pendings, deferred.map(|deferred| &deferred.count));
    // Held while the memory of a peer that may take it away is accessed at once.
    let revoked = route.capabilities.immediate.then(|| core.exposure.revoked.read());
    let detached = match &place.remote {
        TargetMemory::Fixed(_) => false,
        TargetMemory::Attached(region) => region.gone.load(Ordering::Acquire),
    };
    if detached || revoked.as_ref().is_some_and(|revoked| revoked.contains(&place.peer.world)) {
        return Err(gone(core, place.operation, place.target));
    }
    let context = if buffer.is_none() && count.is_none() {
        pendings.begin_plain(&place.peer.state)
    } else {
        if let Some(count) = count {
            count.add(1);
        }
        let (target, done) = (place.peer.state.share(), count.cloned());
        pendings.begin(Pending { target, buffer, done, pull: None, value: None })
    };
    core.member.engine.count_post();
    match request(context) {
        Ok(Posted::Pending) => Ok(()),
        posted => {
            if matches!(posted, Ok(Posted::Again)) {
                drop(revoked);
            }
            posted_otherwise(core, (place.operation, place.target), (context, count), posted, &request)
        }
    }
}

/// A work request was done at once, failed, or was not taken (`posted`): then it waits for room.
#[inline(never)]
pub(super) fn posted_otherwise(
    core: &Core,
    (operation, target): (&'static str, usize),
    (context, count): (u64, Option<&Arc<Countdown>>),
    posted: TransportResult<Posted>,
    request: &dyn Fn(u64) -> TransportResult<Posted>,
) -> Result<()> {
    let engine = &core.member.engine;
    let failed = |e| core.failed(operation, target, &e);
    let posted = match posted {
        Ok(Posted::Again) => {
            let what =
                || Awaits::room(format!("room in the queue to rank {target}"), core.peers.world(target));
            engine.wait_until(operation, &what, Some(Duration::from_micros(100)), || match request(context) {
                Ok(Posted::Again) => None,
                posted => Some(posted.map_err(failed)),
            })
        }
        posted => posted.map_err(failed),
    };
    if !matches!(posted, Ok(Posted::Pending)) {
        engine.pendings.cancel(context);
        if let Some(count) = count {
            finish_part(engine, count);
        }
    }
    posted.map(drop)
}

#[cold]
fn gone(core: &Core, operation: &'static str, target: usize) -> Error {
    let message = "the target has freed this window, or detached this memory: free windows with Window::free, which waits for all ranks";
    core.error(Class::RmaRange, operation, message).with_target(target)
}
