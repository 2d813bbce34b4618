//! Transfers that one work request does, and that need nothing but to be counted until their end: most of them.

use transom_transport::{Capabilities, Posted, Remote, TransportResult};

use super::place::Place;
use super::request::Deferred;
use super::transfer::{awaited, piece, posted_otherwise};
use crate::Result;
use crate::engine::Route;
use crate::epoch::Coverage;
use crate::memory::{LocalBuffer, OriginBuffer, ResultBuffer};
use crate::waits::Awaits;
use crate::window::{Core, TargetMemory};

/// The way of such a transfer, if it is one.
#[inline(always)]
fn way<'a>(core: &'a Core, place: &'a Place<'_>, len: usize) -> Option<(Route<'a>, &'a Remote)> {
    let route = core.member.engine.routes.route(place.peer.world);
    let capabilities = route.capabilities;
    let one = len.wrapping_sub(1) < capabilities.max_transfer;
    match &place.remote {
        // Of attached memory the target may take some away.
        TargetMemory::Fixed(remote) if one && capabilities.rma && !capabilities.immediate => {
            Some((route, remote))
        }
        _ => None,
    }
}

/// The place of an operation of `bytes` bytes that needs no check but of its range: a passive epoch covers the target, whose memory is
/// reached by a transport, and nobody counts operations.
#[inline(always)]
pub(crate) fn plain_place<'a>(
    core: &'a Core,
    operation: &'static str,
    target: usize,
    displacement: usize,
    bytes: usize,
) -> Option<Place<'a>> {
    let peer = core.peers.made(target)?;
    let remote = peer.remote.get()?;
    let offset = displacement.checked_mul(peer.unit)?;
    let inside = offset <= peer.bytes && bytes <= peer.bytes - offset;
    let plain = peer.coverage() == Coverage::Passive
        && remote.direct.is_none()
        && core.counters.is_none()
        && core.member.engine.routes.route(peer.world).capabilities.rma;
    (inside && plain).then_some(Place {
        operation,
        target,
        peer,
        remote: TargetMemory::Fixed(remote),
        offset,
        low: 0,
    })
}

/// Starts a put of all of `origin`.
#[inline]
pub(crate) fn put(
    core: &Core,
    place: &Place<'_>,
    origin: &OriginBuffer<'_>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let bytes = origin.bytes().len();
    let single = if deferred.is_none() { way(core, place, bytes) } else { None };
    let Some((route, remote, copies)) = single.and_then(|(route, remote)| {
        let Capabilities { copied_put, ordered, .. } = *route.capabilities;
        let copies = match origin {
            // What is copied, and overtaken by no message, needs no end before its epoch's.
            OriginBuffer::Scope(_) => ordered && bytes <= copied_put,
            OriginBuffer::Copied(_) if bytes <= copied_put => true,
            _ => return None,
        };
        Some((route, remote, copies))
    }) else {
        return piece(core, place, origin.into(), (0, 0, bytes), deferred);
    };
    let pendings = &core.member.engine.pendings;
    core.member.engine.count_post();
    let context = match copies {
        true => pendings.begin_copied(&place.peer.state),
        false => pendings.begin_plain(&place.peer.state),
    };
    let posted = if copies {
        route.transport.put_copy(remote, place.offset, origin.bytes(), context)
    } else {
        LocalBuffer::Origin(origin).transfer(route.transport, (remote, place.offset), (0, bytes), context)
    };
    match posted {
        Ok(Posted::Pending) => Ok(()),
        posted => put_otherwise(core, place, (origin, copies), context, posted),
    }
}

/// A put was not just posted.
#[cold]
fn put_otherwise(
    core: &Core,
    place: &Place<'_>,
    (origin, copies): (&OriginBuffer<'_>, bool),
    context: u64,
    posted: TransportResult<Posted>,
) -> Result<()> {
    let route = core.member.engine.routes.route(place.peer.world);
    posted_otherwise(core, (place.operation, place.target), (context, None), posted, &|context| {
        if copies {
            return route.transport.put_copy(&place.remote, place.offset, origin.bytes(), context);
        }
        LocalBuffer::Origin(origin).transfer(
            route.transport,
            (&*place.remote, place.offset),
            (0, origin.bytes().len()),
            context,
        )
    })
}

/// Starts a get to all of `result`.
#[inline]
pub(crate) fn get(
    core: &Core,
    place: &Place<'_>,
    result: &ResultBuffer<'_>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let bytes = result.len();
    if result.is_owned() || deferred.is_some() {
        return piece(core, place, result.into(), (0, 0, bytes), deferred);
    }
    let Some((route, remote)) = way(core, place, bytes) else {
        return piece(core, place, result.into(), (0, 0, bytes), deferred);
    };
    core.member.engine.count_post();
    let context = core.member.engine.pendings.begin_plain(&place.peer.state);
    match LocalBuffer::Result(result).transfer(route.transport, (remote, place.offset), (0, bytes), context) {
        Ok(Posted::Pending) => Ok(()),
        posted => get_otherwise(core, place, result, context, posted),
    }
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
    posted_otherwise(core, (place.operation, place.target), (context, None), posted, &|context| {
        LocalBuffer::Result(result).transfer(
            route.transport,
            (&*place.remote, place.offset),
            (0, result.len()),
            context,
        )
    })
}

/// A get to all of `result` that is complete when the call returns.
#[inline]
pub(crate) fn get_now(core: &Core, place: &Place<'_>, result: &ResultBuffer<'_>) -> Result<()> {
    let engine = &core.member.engine;
    let single = way(core, place, result.len());
    let Some(((route, remote), ended)) = single.and_then(|way| Some((way, engine.pendings.begin_awaited()?)))
    else {
        return awaited(core, place, |deferred| {
            piece(core, place, result.into(), (0, 0, result.len()), Some(deferred))
        });
    };
    match LocalBuffer::Result(result).transfer(
        route.transport,
        (remote, place.offset),
        (0, result.len()),
        ended.context,
    ) {
        Ok(Posted::Pending) => {}
        posted => get_otherwise(core, place, result, ended.context, posted)?,
    }
    let what = || Awaits::target(format!("a get from rank {}", place.target), place.peer.world);
    match engine.wait_briefly(place.operation, route.transport, &what, || ended.outcome()) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(core.failed(place.operation, place.target, &error)),
        Err(error) => {
            // The buffer goes, and the get may come to its end later.
            super::abandon(core);
            Err(error)
        }
    }
}
