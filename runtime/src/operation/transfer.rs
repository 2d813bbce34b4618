//! Put and get: by load and store where the target's memory is mapped, else by the transport, else by messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transom_transport::{Posted, TransportError, TransportResult};

use crate::engine::Pending;
use crate::memory::{self, OriginBuffer, ResultBuffer};
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::window::{Core, Peer, Reach};
use crate::{Class, Error, Result};

/// Where an operation goes: a rank, its part of the window, a byte offset there.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
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

/// Starts a put of all of `origin` to memory that is not mapped.
pub(crate) fn put(core: &Core, place: &Place<'_>, origin: &OriginBuffer<'_>) -> Result<()> {
    let transport = core.member.engine.routes.to(place.peer.world);
    if !transport.capabilities().rma {
        return put_by_messages(core, place, origin.bytes());
    }
    pieces(transport.capabilities().max_transfer, origin.bytes().len(), |start, len| {
        post(core, "put", place, (origin.keep(), None), &|context| {
            memory::put(transport, &place.remote, place.offset + start, origin, start, len, context)
        })
    })
}

/// Starts a get to all of `result` from memory that is not mapped.
pub(crate) fn get(core: &Core, place: &Place<'_>, result: &mut ResultBuffer<'_>) -> Result<()> {
    get_with(core, place, result, None)
}

/// A get that is complete when the call returns.
pub(crate) fn get_now(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let mut result = ResultBuffer::of_scope(bytes);
    let transport = core.member.engine.routes.to(place.peer.world);
    // One flag a piece: the last to be posted need not be the last to end.
    let most = transport.capabilities().max_transfer.max(1);
    let flags: Vec<_> = (0..result.len().div_ceil(most)).map(|_| Arc::new(AtomicBool::new(false))).collect();
    let posted = get_with(core, place, &mut result, Some(&flags));
    let what = || format!("a get from rank {}", place.target);
    // Even after an error the buffer must not go before what was posted has ended.
    let awaited = core
        .member
        .engine
        .wait_until("get", &what, None, || flags.iter().all(|f| f.load(Ordering::Acquire)).then_some(Ok(())));
    if awaited.is_err() {
        super::abandon(core);
    }
    posted.and(awaited)?;
    match place.peer.state.take_error() {
        Some(error) => Err(core.name(Error::transport("get", &error)).with_target(place.target)),
        None => Ok(()),
    }
}

fn get_with(
    core: &Core,
    place: &Place<'_>,
    result: &mut ResultBuffer<'_>,
    flags: Option<&[Arc<AtomicBool>]>,
) -> Result<()> {
    let transport = core.member.engine.routes.to(place.peer.world);
    if !transport.capabilities().rma {
        let got = get_by_messages(core, place, result.bytes_mut());
        flags.into_iter().flatten().for_each(|f| f.store(true, Ordering::Release));
        return got;
    }
    let mut piece = 0;
    let result = &*result;
    pieces(transport.capabilities().max_transfer, result.len(), |start, len| {
        let flag = flags.and_then(|flags| flags.get(piece)).cloned();
        piece += 1;
        post(core, "get", place, (None, flag), &|context| {
            memory::get(transport, &place.remote, place.offset + start, result, start, len, context)
        })
    })
    .inspect_err(|_| {
        flags
            .into_iter()
            .flatten()
            .skip(piece.saturating_sub(1))
            .for_each(|f| f.store(true, Ordering::Release))
    })
}

/// Calls `each` with start and length of every piece of at most `most` bytes.
fn pieces(most: usize, len: usize, mut each: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
    let mut start = 0;
    while start < len {
        let piece = most.min(len - start);
        each(start, piece)?;
        start += piece;
    }
    Ok(())
}

/// Posts one work request, making room for it by progress.
fn post(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    (buffer, done): (Option<Arc<[u8]>>, Option<Arc<AtomicBool>>),
    request: &dyn Fn(u64) -> TransportResult<Posted>,
) -> Result<()> {
    let engine = &core.member.engine;
    // Held while the memory of a peer that may take it away is accessed at once.
    let revoked = core.exposure.revoked.read();
    let detached = match &place.remote {
        Reach::Fixed(_) => false,
        Reach::Attached(region) => region.gone.load(Ordering::Acquire),
    };
    if detached || revoked.contains(&place.peer.world) {
        return Err(gone(core, operation, place.target));
    }
    let pending = Pending { target: place.peer.state.clone(), buffer, done: done.clone(), pull: None };
    let context = engine.pendings.begin(pending);
    let attempt = || match request(context) {
        Ok(Posted::Again) => None,
        Ok(posted) => Some(Ok(posted)),
        Err(error) => Some(Err(failed(core, operation, place.target, &error))),
    };
    let posted = match attempt() {
        Some(posted) => posted,
        None => {
            drop(revoked);
            let what = || format!("room in the queue to rank {}", place.target);
            engine.wait_until(operation, &what, Some(std::time::Duration::from_micros(100)), attempt)
        }
    };
    if !matches!(posted, Ok(Posted::Pending)) {
        engine.pendings.cancel(context);
        if let Some(done) = done {
            done.store(true, Ordering::Release);
        }
    }
    posted.map(|_| ())
}

fn failed(core: &Core, operation: &'static str, target: usize, error: &TransportError) -> Error {
    core.name(Error::transport(operation, error)).with_target(target)
}

#[cold]
fn gone(core: &Core, operation: &'static str, target: usize) -> Error {
    let message = "the target has freed this window, or detached this memory: free windows with Window::free, which waits for all ranks";
    core.error(Class::RmaRange, operation, message).with_target(target)
}

/// Bytes of payload that a message to `target` takes.
pub(super) fn message_room(core: &Core, peer: &Peer) -> usize {
    core.member.engine.routes.to(peer.world).capabilities().max_message - HEADER_BYTES
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
