//! Messages whose parts go straight to the buffer of a thread that blocks for them. Those of a few parts are sent without being asked for:
//! too long for one message of the transport, and so short that to wait for the receiver's answer would take longer than they do.
//! Longer ones are asked for, where they cannot be fetched or that would take longer; their parts are segments.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::Payload;

use super::segments::{Arriving, Place};
use super::{Body, Buffer, Incoming, OnDelivered};
use crate::Result;
use crate::comm::Channel;
use crate::engine::{Coming, Engine};
use crate::protocol::messages::Envelope;
use crate::protocol::wire::{Header, Kind};
use crate::waits::Awaits;

/// Most bytes of a message that is not asked for: what one that nobody receives takes.
pub(crate) const MOST: usize = 64 << 10;

/// Whose parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The sender in the job.
    pub peer: usize,
    /// Its number of the message, or the receiver's if it has asked for it.
    pub number: u64,
    pub asked: bool,
}

/// A message whose parts come one behind the other.
pub(crate) struct Parts {
    key: Key,
    bytes: usize,
    state: Mutex<State>,
}

struct State {
    left: usize,
    to: To,
}

/// Where the bytes go.
enum To {
    /// To memory, since no receive has a buffer for them yet; but for the first ones, which have been taken.
    Memory { data: Vec<u8>, taken: usize },
    /// To that of a receive.
    Buffer(Box<dyn Place>),
    /// They are where they belong.
    Delivered,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Parts {
    /// A message of which the first bytes have been taken.
    fn new(key: Key, bytes: usize, taken: usize) -> Self {
        let state = State { left: bytes - taken, to: To::Memory { data: Vec::new(), taken } };
        Self { key, bytes, state: Mutex::new(state) }
    }

    /// One that is not asked for, known from now on. `None` if there is one of this sender's number already.
    fn of(engine: &Engine, (peer, number): (usize, u64), bytes: usize, taken: usize) -> Option<Arc<Self>> {
        let key = Key { peer, number, asked: false };
        match engine.two_sided.parts.lock().entry(key) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => Some(place.insert(Arc::new(Self::new(key, bytes, taken))).clone()),
        }
    }

    /// Of all parts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stores a part; returns whether it is the last. `None` if it is not the next.
    fn add(&self, engine: &Engine, start: usize, part: Payload<'_>) -> Option<bool> {
        let mut state = self.state.lock();
        if start != self.bytes - state.left || part.len() > state.left {
            return None;
        }
        match &mut state.to {
            To::Memory { data, .. } => {
                data.reserve_exact((self.bytes - start).min(MOST.max(part.len())));
                part.append_to(data);
            }
            To::Buffer(place) => part.copy_to(place.part(start, part.len())?),
            To::Delivered => return None,
        }
        state.left -= part.len();
        if state.left > 0 {
            return Some(false);
        }
        if matches!(state.to, To::Buffer(_))
            && let To::Buffer(place) = std::mem::replace(&mut state.to, To::Delivered)
        {
            drop(state);
            place.finish(engine);
        }
        Some(true)
    }

    /// Has the bytes, those that have come and those to come, go to a receive's buffer of as many bytes.
    pub fn deliver<B: Buffer>(&self, engine: &Engine, buffer: B, then: OnDelivered<B>) {
        let mut state = self.state.lock();
        let mut place: Box<dyn Place> = Box::new(Arriving { buffer, then });
        if let To::Memory { data, .. } = &state.to
            && let Some(part) = place.part(0, data.len())
        {
            part.copy_from_slice(data);
        }
        if state.left > 0 {
            state.to = To::Buffer(place);
            return;
        }
        state.to = To::Delivered;
        drop(state);
        place.finish(engine);
    }

    /// Waits for all bytes, and has them go to `buffer`, which has as many: a part that this thread finds when it polls goes there
    /// straight.
    pub fn receive(&self, engine: &Engine, operation: &'static str, buffer: &mut [u8]) -> Result<()> {
        let buffer = RefCell::new(buffer);
        let takes = |header: &Header, kind, payload: Payload<'_>| {
            let asked = kind == Kind::Segment;
            let key = Key { peer: header.origin as usize, number: header.value, asked };
            (asked || kind == Kind::Part)
                && key == self.key
                && self.take_part(engine, header.offset, payload, &mut buffer.borrow_mut())
        };
        let what = || awaits_bytes(self.key.peer);
        engine.wait_taking(operation, &what, takes, || {
            let mut state = self.state.lock();
            state.move_to(&mut buffer.borrow_mut());
            (state.left == 0).then_some(Ok(()))
        })
    }

    /// Takes the next part. False if this is not it.
    fn take_part(&self, engine: &Engine, start: u64, part: Payload<'_>, buffer: &mut [u8]) -> bool {
        let mut state = self.state.lock();
        let next = self.bytes - state.left;
        if start != next as u64 || part.len() > state.left {
            return false;
        }
        state.move_to(buffer);
        let To::Memory { taken, .. } = &mut state.to else { return false };
        part.copy_to(&mut buffer[next..next + part.len()]);
        *taken += part.len();
        state.left -= part.len();
        if state.left == 0 {
            drop(state);
            engine.two_sided.parts.lock().remove(&self.key);
        }
        true
    }
}

impl State {
    /// Takes what has come and was kept.
    fn move_to(&mut self, buffer: &mut [u8]) {
        if let To::Memory { data, taken } = &mut self.to {
            buffer[*taken..*taken + data.len()].copy_from_slice(data);
            *taken += data.len();
            data.clear();
        }
    }
}

/// What a message that has matched is awaited for.
pub(crate) fn awaits_bytes(from: usize) -> Awaits {
    Awaits::target(format!("the bytes of a message from rank {from} of the job"), from)
}

/// The same, where the call may be of no use any more. Who receives has the memory in use until all of it is here: as long as the sender
/// lives, its bytes come.
pub(crate) fn awaits_coming(channel: &Channel, message: Coming) -> Awaits {
    let awaits = awaits_bytes(message.from);
    if message.in_segments { awaits.on_channel(channel) } else { awaits }
}

/// The first part of a message has come. `None` if it is malformed.
pub(super) fn begin(
    engine: &Engine,
    envelope: Envelope,
    number: u64,
    bytes: u64,
    part: Payload<'_>,
) -> Option<()> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST)?;
    if part.is_empty() || part.len() >= bytes {
        return None;
    }
    let parts = Parts::of(engine, (envelope.source, number), bytes, 0)?;
    // Matched first: then it goes where it belongs at once.
    engine.message_arrived(Incoming { envelope, body: Body::Parts(parts.clone()), number: None });
    parts.add(engine, 0, part).map(drop)
}

/// The first part of a message has come, and goes to the buffer of a thread that waits for it. `None`, and nothing is done, if it is
/// malformed, or has no room there.
pub(super) fn begin_at(
    engine: &Engine,
    header: &Header,
    part: Payload<'_>,
    buffer: &mut [u8],
) -> Option<Arc<Parts>> {
    let bytes = usize::try_from(header.count).ok().filter(|bytes| *bytes <= MOST.min(buffer.len()))?;
    if part.is_empty() || part.len() >= bytes {
        return None;
    }
    let parts = Parts::of(engine, (header.origin as usize, header.value), bytes, part.len())?;
    part.copy_to(buffer);
    Some(parts)
}

/// Asks for an announced message, and waits for it in `buffer`, which is of its length.
pub(crate) fn ask(
    engine: &Engine,
    operation: &'static str,
    arrived: &Incoming<'_>,
    buffer: &mut [u8],
) -> Result<()> {
    let peer = arrived.envelope.source;
    if buffer.is_empty() {
        engine.acknowledge(peer, arrived.number, true);
        return Ok(());
    }
    let key = Key { peer, number: engine.two_sided.number(), asked: true };
    let parts = Arc::new(Parts::new(key, buffer.len(), 0));
    engine.two_sided.parts.lock().insert(key, parts.clone());
    let mut header = engine.header(Kind::ClearToSend);
    header.value = arrived.number.unwrap_or_default();
    header.compare = key.number;
    let received =
        engine.send(operation, peer, &header, &[]).and_then(|()| parts.receive(engine, operation, buffer));
    if received.is_err() {
        engine.two_sided.parts.lock().remove(&key);
    }
    received
}

/// Another part has come. `None` if it is malformed.
pub(super) fn go_on(engine: &Engine, key: Key, start: u64, part: Payload<'_>) -> Option<()> {
    let parts = engine.two_sided.parts.lock().get(&key)?.clone();
    if parts.add(engine, usize::try_from(start).ok()?, part)? {
        engine.two_sided.parts.lock().remove(&key);
    }
    Some(())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
