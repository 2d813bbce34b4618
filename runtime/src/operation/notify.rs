//! Put with notification: data, and a count at the target that says it is there.

use super::transfer::{Place, message_room, put};
use super::{complete, start_complete};
use crate::Result;
use crate::explain::{Path, Reason};
use crate::memory::OriginBuffer;
use crate::protocol::wire::Kind;
use crate::window::Core;

const NAME: &str = "put_notify";

/// Puts `bytes`, then counts one notification of `number` at the target. The bytes may be reused at once.
pub(crate) fn notify(core: &Core, place: &Place<'_>, bytes: &[u8], number: u64) -> Result<()> {
    if let Some(memory) = &place.remote.direct {
        core.took_mapped(place, Path::Direct, bytes.len());
        let copied = memory.copy_in(place.offset, bytes);
        copied.map_err(|e| core.failed(NAME, place.target, &e))?;
        if place.target == core.rank() {
            core.exposure.count_notification(number, 1);
            return Ok(());
        }
        return send(core, place, &[], number);
    }
    if bytes.len() <= message_room(core, place.peer) {
        core.took(place, Path::Message, Reason::Size, bytes.len());
        send(core, place, bytes, number)?;
        place.peer.state.sent();
        return Ok(());
    }
    put(core, place, &OriginBuffer::of_scope(bytes), None)?;
    let confirmation = start_complete(core, NAME, place.target, place.peer)?;
    complete(core, NAME, place.target, place.peer, confirmation.as_ref())?;
    send(core, place, &[], number)
}

/// The message comes after all stores of this rank, and carries what no transport has put.
fn send(core: &Core, place: &Place<'_>, bytes: &[u8], number: u64) -> Result<()> {
    let engine = &core.member.engine;
    let mut header = engine.header(Kind::Notify);
    header.window = place.peer.number;
    header.offset = place.agent_offset();
    header.compare = number;
    header.value = 1;
    engine.send(NAME, place.peer.world, &header, bytes).map_err(|e| core.name(e))
}
