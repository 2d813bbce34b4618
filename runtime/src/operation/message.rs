//! Put and get by messages, where the transport has no transfers of its own; and put with notification.

use std::collections::VecDeque;
use std::sync::Arc;

use super::completion::{complete, start_complete};
use super::place::Place;
use super::transfer::{piece, pieces};
use crate::engine::{Engine, Request};
use crate::memory::OriginBuffer;
use crate::protocol::wire::{HEADER_BYTES, Header, Kind};
use crate::window::{Core, Peer};
use crate::{Class, Result};

/// Of long data several messages are sent: the target works on one, which its caches hold, while the next is on its way. Shorter
/// ones would have half the bandwidth where each is a call.
const PIECE: usize = 256 << 10;
/// The same of data that is in many places: gathering it is work, too.
const BATCH: usize = 32 << 10;

/// Bytes of payload that a message to `peer` takes.
pub(super) fn capacity(core: &Core, peer: &Peer) -> usize {
    (core.member.engine.routes.route(peer.world).capabilities.max_message - HEADER_BYTES).min(PIECE)
}

/// Bytes of payload of a message of many pieces.
pub(super) fn batch_capacity(core: &Core, peer: &Peer) -> usize {
    capacity(core, peer).min(BATCH - HEADER_BYTES)
}

/// A message about memory at a place.
pub(super) fn about(engine: &Engine, place: &Place<'_>, kind: Kind, start: usize) -> Header {
    let mut header = engine.header(kind);
    header.window = place.peer.number;
    header.offset = place.agent_offset() + start as u64;
    header
}

/// Sends a message that the target's agent applies, and to which it does not reply. It confirms it where the epoch's end or a flush
/// waits for that.
pub(super) fn send(core: &Core, place: &Place<'_>, header: &Header, payload: &[u8]) -> Result<()> {
    let may_ask = !core.ends_in_order(place.peer);
    send_counted(core, place.operation, place.peer, may_ask, (header, payload))
}

/// The same; the target is not asked to confirm it unless it `may`.
pub(crate) fn send_counted(
    core: &Core,
    operation: &'static str,
    peer: &Peer,
    may_ask: bool,
    (header, payload): (&Header, &[u8]),
) -> Result<()> {
    let (engine, state) = (&core.member.engine, &peer.state);
    // Of a target without a number only a flush asks.
    let target = state.number().filter(|_| may_ask);
    state.messages.send(target.is_some(), |number| {
        let asking = target.filter(|_| number.is_some());
        let header = match asking {
            Some(target) => header.confirmed_by(target, number),
            None => *header,
        };
        // For these nobody waits but a flush, or the end of the epoch: until then they may wait for others.
        let later = [Kind::Accumulate, Kind::Put, Kind::Apply].iter().any(|kind| *kind as u8 == header.kind);
        match later && asking.is_none() {
            true => engine.send_gathered(operation, peer.world, &header, payload),
            false => engine.send(operation, peer.world, &header, payload),
        }
    })
}

/// As [`send`], of several messages, one behind the other.
pub(super) fn send_all(core: &Core, place: &Place<'_>, messages: &mut [(Header, &[u8])]) -> Result<()> {
    let (engine, state) = (&core.member.engine, &place.peer.state);
    if let [(header, payload)] = messages {
        return send(core, place, header, payload);
    }
    let target = state.number().filter(|_| !core.ends_in_order(place.peer));
    state.messages.send_several(messages.len() as u64, target.is_some(), |number| {
        if let (Some(target), Some((header, _))) = (target, messages.last_mut()) {
            *header = header.confirmed_by(target, number);
        }
        engine.send_all(place.operation, place.peer.world, messages)
    })
}

/// Sends bytes, which the target's agent stores.
pub(super) fn put(core: &Core, place: &Place<'_>, bytes: &[u8]) -> Result<()> {
    pieces(capacity(core, place.peer), bytes.len(), |start, len| {
        let header = about(&core.member.engine, place, Kind::Put, start);
        send(core, place, &header, &bytes[start..start + len])
    })
}

/// Requests for bytes that are under way at once: so many that neither side waits for the other.
const REQUESTS: usize = 16;

/// Has the target's agent send bytes, and waits for them.
pub(super) fn get(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let engine = &core.member.engine;
    let total = bytes.len();
    let mut receive = |(start, len, request): (usize, usize, Arc<Request>)| {
        engine.await_reply(place.operation, (place.target, place.peer.world), &request)?;
        let data = request.take_data();
        if data.len() != len {
            return Err(wrong_length(core, place));
        }
        bytes[start..start + len].copy_from_slice(&data);
        Ok(())
    };
    let mut under_way = VecDeque::with_capacity(REQUESTS);
    pieces(capacity(core, place.peer), total, |start, len| {
        if under_way.len() == REQUESTS
            && let Some(first) = under_way.pop_front()
        {
            receive(first)?;
        }
        let mut header = about(engine, place, Kind::Get, start);
        header.count = len as u64;
        let request = engine.request(place.operation, place.peer.world, header, &[])?;
        under_way.push_back((start, len, request));
        Ok(())
    })?;
    under_way.into_iter().try_for_each(receive)
}

#[cold]
pub(super) fn wrong_length(core: &Core, place: &Place<'_>) -> crate::Error {
    core.error(Class::Count, place.operation, "the target's reply is of another length")
}

/// Puts `bytes`, then counts one notification of `number` at the target. The bytes may be reused at once.
pub(super) fn notify(core: &Core, place: &Place<'_>, bytes: &[u8], number: u64) -> Result<()> {
    if let Some(memory) = &place.remote.direct {
        super::mapped::put(core, place, memory, bytes)?;
        if place.target == core.rank() {
            core.exposure.count_notification(number, 1);
            return Ok(());
        }
        return send_notification(core, place, number);
    }
    if bytes.len() <= capacity(core, place.peer) {
        return send(core, place, &notification(core, place, number), bytes).map_err(|e| core.name(e));
    }
    if core.member.engine.routes.route(place.peer.world).capabilities.rma {
        let origin = OriginBuffer::borrowed(bytes);
        piece(core, place, (&origin).into(), (0, 0, bytes.len()), None)?;
    } else {
        put(core, place, bytes)?;
    }
    let confirmation = start_complete(core, place.operation, place.target, place.peer)?;
    complete(core, place.operation, place.target, place.peer, confirmation.as_ref())?;
    send_notification(core, place, number)
}

/// Tells the target of what is in its memory.
fn send_notification(core: &Core, place: &Place<'_>, number: u64) -> Result<()> {
    let header = notification(core, place, number);
    let sent = core.member.engine.send(place.operation, place.peer.world, &header, &[]);
    sent.map_err(|e| core.name(e))
}

/// A message that stores what it carries, and then counts a notification.
fn notification(core: &Core, place: &Place<'_>, number: u64) -> Header {
    let mut header = about(&core.member.engine, place, Kind::Notify, 0);
    header.compare = number;
    header
}
