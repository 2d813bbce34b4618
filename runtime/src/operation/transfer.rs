//! Put and get: by load and store where the target's memory is mapped, else by the transport, else by messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use transom_transport::{Posted, Remote, TransportResult};

use crate::engine::{Countdown, Engine, Pending, Route};
use crate::explain::{Path, Reason};
use crate::memory::{self, Keep, OriginBuffer, ResultBuffer};
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::window::{Core, Peer, Reach};
use crate::{Class, Error, Result};

/// Where an operation goes: a rank, its part of the window, a byte offset there.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    /// The operation, by its name in errors.
    pub operation: &'static str,
    pub target: usize,
    pub peer: &'a Peer,
    pub remote: Reach<'a>,
    pub offset: usize,
}

impl Place<'_> {
    /// The offset as the target's agent counts it: in its window, or an address in what it has attached.
    pub fn agent_offset(&self) -> u64 {
        let start = match &self.remote {
            Reach::Fixed(_) => 0,
            Reach::Attached(region) => region.address,
        };
        (start + self.offset) as u64
    }
}

/// Starts a put of all of `origin` to memory that is not mapped. Its parts are added to `count`, if it is given.
#[inline]
pub(crate) fn put(
    core: &Core,
    place: &Place<'_>,
    origin: &OriginBuffer<'_>,
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    if let (OriginBuffer::Scope(bytes), None) = (origin, count)
        && let Some((route, remote)) = plain_way(core, place, bytes.len())
    {
        core.took_transfer(place, true, bytes.len());
        let context = core.member.engine.pendings.begin_plain(&place.peer.state);
        return match memory::put(route.transport, remote, place.offset, origin, 0, bytes.len(), context) {
            Ok(Posted::Pending) => Ok(()),
            posted => put_otherwise(core, place, origin, context, posted),
        };
    }
    put_any(core, place, origin, count)
}

/// A put was not just posted.
#[cold]
fn put_otherwise(
    core: &Core,
    place: &Place<'_>,
    origin: &OriginBuffer<'_>,
    context: u64,
    posted: TransportResult<Posted>,
) -> Result<()> {
    let (route, len) = (core.member.engine.routes.route(place.peer.world), origin.bytes().len());
    posted_otherwise(core, ("put", place.target), (context, None), posted, &|context| {
        memory::put(route.transport, &place.remote, place.offset, origin, 0, len, context)
    })
}

#[inline(never)]
fn put_any(
    core: &Core,
    place: &Place<'_>,
    origin: &OriginBuffer<'_>,
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    if !core.member.engine.routes.route(place.peer.world).capabilities.rma {
        core.took(place, Path::Message, Reason::Provider, origin.bytes().len());
        return put_by_messages(core, place, origin.bytes());
    }
    core.took_transfer(place, true, origin.bytes().len());
    put_piece(core, place, origin, (0, 0, origin.bytes().len()), count)
}

/// Starts a put of bytes that the caller may change when this returns.
#[inline]
pub(crate) fn put_copy(core: &Core, place: &Place<'_>, bytes: &[u8]) -> Result<()> {
    let Some((route, remote)) = plain_way(core, place, bytes.len()) else {
        return put_any(core, place, &OriginBuffer::owned(bytes), None);
    };
    if bytes.len() > route.capabilities.copied_put {
        return put_any(core, place, &OriginBuffer::owned(bytes), None);
    }
    core.took_transfer(place, true, bytes.len());
    let context = core.member.engine.pendings.begin_plain(&place.peer.state);
    match route.transport.put_copy(remote, place.offset, bytes, context) {
        Ok(Posted::Pending) => Ok(()),
        posted => put_copy_otherwise(core, place, bytes, context, posted),
    }
}

/// A put of bytes that are copied was not just posted.
#[cold]
fn put_copy_otherwise(
    core: &Core,
    place: &Place<'_>,
    bytes: &[u8],
    context: u64,
    posted: TransportResult<Posted>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    posted_otherwise(core, ("put", place.target), (context, None), posted, &|context| {
        route.transport.put_copy(&place.remote, place.offset, bytes, context)
    })
}

/// The way of a transfer that one work request does, and that needs nothing but to be counted until its end.
#[inline(always)]
fn plain_way<'a>(core: &'a Core, place: &'a Place<'_>, len: usize) -> Option<(Route<'a>, &'a Remote)> {
    let route = core.member.engine.routes.route(place.peer.world);
    let capabilities = route.capabilities;
    let one = len.wrapping_sub(1) < capabilities.max_transfer;
    match &place.remote {
        // Of attached memory the target may take some away.
        Reach::Fixed(remote) if one && capabilities.rma && !capabilities.immediate => Some((route, remote)),
        _ => None,
    }
}

/// Starts a put of some bytes of `origin`: from where, to how far behind the place, how many.
#[inline]
pub(super) fn put_piece(
    core: &Core,
    place: &Place<'_>,
    origin: &OriginBuffer<'_>,
    (start, ahead, bytes): (usize, usize, usize),
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    pieces(route.capabilities.max_transfer, bytes, |from, len| {
        post(core, "put", place, route, (origin.keep(), count), |context| {
            let offset = place.offset + ahead + from;
            memory::put(route.transport, &place.remote, offset, origin, start + from, len, context)
        })
    })
}

/// Starts a get to all of `result` from memory that is not mapped. Its parts are added to `count`, if it is given.
#[inline]
pub(crate) fn get(
    core: &Core,
    place: &Place<'_>,
    result: &mut ResultBuffer<'_>,
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    if !result.is_owned()
        && count.is_none()
        && let Some((route, remote)) = plain_way(core, place, result.len())
    {
        core.took_transfer(place, false, result.len());
        let context = core.member.engine.pendings.begin_plain(&place.peer.state);
        return match memory::get(route.transport, remote, place.offset, result, 0, result.len(), context) {
            Ok(Posted::Pending) => Ok(()),
            posted => get_otherwise(core, place, result, context, posted),
        };
    }
    get_any(core, place, result, count)
}

/// A get was not just posted.
#[cold]
fn get_otherwise(
    core: &Core,
    place: &Place<'_>,
    result: &ResultBuffer<'_>,
    context: u64,
    posted: TransportResult<Posted>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    posted_otherwise(core, ("get", place.target), (context, None), posted, &|context| {
        memory::get(route.transport, &place.remote, place.offset, result, 0, result.len(), context)
    })
}

#[inline(never)]
fn get_any(
    core: &Core,
    place: &Place<'_>,
    result: &mut ResultBuffer<'_>,
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    if !core.member.engine.routes.route(place.peer.world).capabilities.rma {
        // Also with a count: such a get is over when the call returns.
        core.took(place, Path::Message, Reason::Provider, result.len());
        return get_by_messages(core, place, result.bytes_mut());
    }
    core.took_transfer(place, false, result.len());
    get_piece(core, place, result, (0, 0, result.len()), count)
}

/// Starts a get to some bytes of `result`: to where, from how far behind the place, how many.
#[inline]
pub(super) fn get_piece(
    core: &Core,
    place: &Place<'_>,
    result: &ResultBuffer<'_>,
    (start, ahead, bytes): (usize, usize, usize),
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    pieces(route.capabilities.max_transfer, bytes, |from, len| {
        post(core, "get", place, route, (result.keep(), count), |context| {
            let offset = place.offset + ahead + from;
            memory::get(route.transport, &place.remote, offset, result, start + from, len, context)
        })
    })
}

/// A get that is complete when the call returns.
#[inline]
pub(crate) fn get_now(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let engine = &core.member.engine;
    let Some((route, remote)) = plain_way(core, place, bytes.len()) else {
        return get_counted(core, place, bytes);
    };
    let Some(awaited) = engine.pendings.begin_awaited() else {
        return get_counted(core, place, bytes);
    };
    core.took_transfer(place, false, bytes.len());
    let (context, len) = (awaited.context, bytes.len());
    let result = ResultBuffer::of_scope(bytes);
    match memory::get(route.transport, remote, place.offset, &result, 0, len, context) {
        Ok(Posted::Pending) => {}
        posted => get_otherwise(core, place, &result, context, posted)?,
    }
    let what = || format!("a get from rank {}", place.target);
    match engine.wait_briefly("get", route.transport, &what, || awaited.outcome()) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(core.failed("get", place.target, &error)),
        Err(error) => {
            // The buffer goes, and the get may come to its end later.
            super::abandon(core);
            Err(error)
        }
    }
}

/// The same by any number of work requests or messages.
#[inline(never)]
fn get_counted(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let mut result = ResultBuffer::of_scope(bytes);
    let engine = &core.member.engine;
    let count = Countdown::brief();
    let posted = get(core, place, &mut result, Some(&count));
    over(engine, &count);
    let what = || format!("a get from rank {}", place.target);
    // Even after an error the buffer must not go before what was posted has ended.
    let awaited = engine.wait_until("get", &what, None, || count.is_over().then_some(Ok(())));
    if awaited.is_err() {
        super::abandon(core);
    }
    Countdown::give_back(count);
    posted.and(awaited)?;
    match place.peer.state.take_error() {
        Some(error) => Err(core.failed("get", place.target, &error)),
        None => Ok(()),
    }
}

/// One part of an operation has ended at once, or all have been started.
pub(super) fn over(engine: &Engine, count: &Countdown) {
    if let Some(over) = count.count_down(None) {
        over.act(engine);
    }
}

/// Calls `each` with start and length of every piece of at most `most` bytes.
#[inline]
fn pieces(most: usize, len: usize, mut each: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
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
    operation: &'static str,
    place: &Place<'_>,
    kept: (Option<Keep>, Option<&Arc<Countdown>>),
    request: impl Fn(Route<'_>, u64) -> TransportResult<Posted>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    post(core, operation, place, route, kept, |context| request(route, context))
}

/// Posts one work request, making room for it by progress.
#[inline]
fn post(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    route: Route<'_>,
    (buffer, count): (Option<Keep>, Option<&Arc<Countdown>>),
    request: impl Fn(u64) -> TransportResult<Posted>,
) -> Result<()> {
    let pendings = &core.member.engine.pendings;
    // Held while the memory of a peer that may take it away is accessed at once.
    let revoked = route.capabilities.immediate.then(|| core.exposure.revoked.read());
    let detached = match &place.remote {
        Reach::Fixed(_) => false,
        Reach::Attached(region) => region.gone.load(Ordering::Acquire),
    };
    if detached || revoked.as_ref().is_some_and(|revoked| revoked.contains(&place.peer.world)) {
        return Err(gone(core, operation, place.target));
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
    match request(context) {
        Ok(Posted::Pending) => Ok(()),
        posted => {
            if matches!(posted, Ok(Posted::Again)) {
                drop(revoked);
            }
            posted_otherwise(core, (operation, place.target), (context, count), posted, &request)
        }
    }
}

/// A work request was done at once, failed, or was not taken (`posted`): then it waits for room.
#[inline(never)]
fn posted_otherwise(
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
            let what = || format!("room in the queue to rank {target}");
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
            over(engine, count);
        }
    }
    posted.map(drop)
}

#[cold]
fn gone(core: &Core, operation: &'static str, target: usize) -> Error {
    let message = "the target has freed this window, or detached this memory: free windows with Window::free, which waits for all ranks";
    core.error(Class::RmaRange, operation, message).with_target(target)
}

/// Bytes of payload that a message to `target` takes.
pub(super) fn message_room(core: &Core, peer: &Peer) -> usize {
    core.member.engine.routes.route(peer.world).capabilities.max_message - HEADER_BYTES
}

fn put_by_messages(core: &Core, place: &Place<'_>, bytes: &[u8]) -> Result<()> {
    let engine = &core.member.engine;
    pieces(message_room(core, place.peer), bytes.len(), |start, len| {
        let mut header = engine.header(Kind::Put);
        header.window = place.peer.number;
        header.offset = place.agent_offset() + start as u64;
        engine.send("put", place.peer.world, &header, &bytes[start..start + len])?;
        place.peer.state.sent();
        Ok(())
    })
}

fn get_by_messages(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let engine = &core.member.engine;
    let len = bytes.len();
    pieces(message_room(core, place.peer), len, |start, len| {
        let mut header = engine.header(Kind::Get);
        header.window = place.peer.number;
        header.offset = place.agent_offset() + start as u64;
        header.count = len as u64;
        let request = engine.request("get", place.peer.world, header, &[])?;
        engine.await_reply("get", place.target, &request)?;
        let data = request.take_data();
        if data.len() != len {
            return Err(core.error(Class::Count, "get", "the target's reply is of another length"));
        }
        bytes[start..start + len].copy_from_slice(&data);
        Ok(())
    })
}
