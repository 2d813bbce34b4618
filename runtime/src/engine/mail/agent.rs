//! What the agent does with the parts of messages. It trusts no number in them.

use super::{Answer, Arrived, Body};
use crate::engine::Engine;
use crate::protocol::messages::Envelope;
use crate::protocol::wire::{self, Header, Kind};

/// Longest key of a region: more is nonsense.
const MAX_KEY: usize = 256;

/// Carries out one part. `None` if it makes no sense.
pub(in crate::engine) fn handle(engine: &Engine, header: &Header, kind: Kind, payload: &[u8]) -> Option<()> {
    let peer = header.origin as usize;
    match kind {
        Kind::Eager => {
            let number = (header.op == 1).then_some(header.value);
            arrived(engine, header, Body::Here(payload.to_vec()), number)
        }
        Kind::Announce => {
            let bytes = usize::try_from(header.count).ok()?;
            let key = payload.get(..payload.len().min(MAX_KEY + 1))?.to_vec();
            if key.len() > MAX_KEY || isize::try_from(bytes).is_err() {
                return None;
            }
            arrived(engine, header, Body::There { bytes, key }, Some(header.value))
        }
        Kind::Clear => {
            let then = engine.mail.end_send(peer, header.value)?;
            then(engine, Answer::Clear(header.compare));
            Some(())
        }
        Kind::Piece => super::pieces::fill(engine, peer, header.value, header.offset, payload),
        Kind::Done => {
            let then = engine.mail.end_send(peer, header.value)?;
            then(engine, Answer::Done(header.status == wire::OK));
            Some(())
        }
        _ => None,
    }
}

fn arrived(engine: &Engine, header: &Header, body: Body, number: Option<u64>) -> Option<()> {
    let tag = i32::try_from(header.offset.cast_signed()).ok()?;
    let envelope = Envelope { context: header.context(), source: header.origin as usize, tag };
    engine.mail_arrived(Arrived { envelope, body, number });
    Some(())
}
