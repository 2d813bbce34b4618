//! Put and get by messages, where the transport has no transfers of its own; and put with notification.

use super::completion::{complete, start_complete};
use super::place::Place;
use super::transfer::{piece, pieces};
use crate::engine::Engine;
use crate::memory::OriginBuffer;
use crate::protocol::wire::{HEADER_BYTES, Header, Kind};
use crate::window::{Core, Peer};
use crate::{Class, Result};

/// Bytes of payload that a message to `peer` takes.
pub(super) fn capacity(core: &Core, peer: &Peer) -> usize {
    core.member.engine.routes.route(peer.world).capabilities.max_message - HEADER_BYTES
}

/// A message about memory at a place.
pub(super) fn about(engine: &Engine, place: &Place<'_>, kind: Kind, start: usize) -> Header {
    let mut header = engine.header(kind);
    header.window = place.peer.number;
    header.offset = place.agent_offset() + start as u64;
    header
}

/// Sends bytes, which the target's agent stores. A flush confirms it.
pub(super) fn put(core: &Core, place: &Place<'_>, bytes: &[u8]) -> Result<()> {
    let engine = &core.member.engine;
    pieces(capacity(core, place.peer), bytes.len(), |start, len| {
        let header = about(engine, place, Kind::Put, start);
        engine.send(place.operation, place.peer.world, &header, &bytes[start..start + len])?;
        place.peer.state.sent();
        Ok(())
    })
}

/// Has the target's agent send bytes, and waits for them.
pub(super) fn get(core: &Core, place: &Place<'_>, bytes: &mut [u8]) -> Result<()> {
    let engine = &core.member.engine;
    pieces(capacity(core, place.peer), bytes.len(), |start, len| {
        let mut header = about(engine, place, Kind::Get, start);
        header.count = len as u64;
        let request = engine.request(place.operation, place.peer.world, header, &[])?;
        engine.await_reply(place.operation, place.target, &request)?;
        let data = request.take_data();
        if data.len() != len {
            return Err(wrong_length(core, place));
        }
        bytes[start..start + len].copy_from_slice(&data);
        Ok(())
    })
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
        return send_notification(core, place, &[], number);
    }
    if bytes.len() <= capacity(core, place.peer) {
        send_notification(core, place, bytes, number)?;
        place.peer.state.sent();
        return Ok(());
    }
    let origin = OriginBuffer::borrowed(bytes);
    piece(core, place, (&origin).into(), (0, 0, bytes.len()), None)?;
    let confirmation = start_complete(core, place.operation, place.target, place.peer)?;
    complete(core, place.operation, place.target, place.peer, confirmation.as_ref())?;
    send_notification(core, place, &[], number)
}

/// The message comes after all stores of this rank, and carries what no transport has put.
fn send_notification(core: &Core, place: &Place<'_>, bytes: &[u8], number: u64) -> Result<()> {
    let engine = &core.member.engine;
    let mut header = about(engine, place, Kind::Notify, 0);
    header.compare = number;
    header.value = 1;
    engine.send(place.operation, place.peer.world, &header, bytes).map_err(|e| core.name(e))
}
