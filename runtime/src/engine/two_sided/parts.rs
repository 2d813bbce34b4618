//! Messages in a few parts that are sent without being asked for: too long for one message of the transport, and so short that to wait
//! for the receiver's answer would take longer than they do.

use std::sync::Arc;

use parking_lot::Mutex;

use super::segments::{Arriving, Place};
use super::{Body, Buffer, Incoming, OnDelivered};
use crate::engine::Engine;
use crate::protocol::messages::Envelope;

/// Most bytes of such a message: what one that nobody receives takes.
pub(crate) const MOST: usize = 64 << 10;

/// A message whose parts come one behind the other.
pub(crate) struct Parts {
    bytes: usize,
    state: Mutex<State>,
}

struct State {
    left: usize,
    to: To,
}

/// Where the bytes go.
enum To {
    /// To memory, since no receive has a buffer for them yet.
    Memory(Vec<u8>),
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
    fn new(bytes: usize) -> Self {
        Self { bytes, state: Mutex::new(State { left: bytes, to: To::Memory(Vec::new()) }) }
    }

    /// Of all parts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stores a part; returns whether it is the last. `None` if it is not the next.
    fn add(&self, engine: &Engine, start: usize, part: &[u8]) -> Option<bool> {
        let mut state = self.state.lock();
        if start != self.bytes - state.left || part.len() > state.left {
            return None;
        }
        match &mut state.to {
            To::Memory(data) => {
                data.reserve_exact(self.bytes - start);
                data.extend_from_slice(part);
            }
            To::Buffer(place) => place.part(start, part.len())?.copy_from_slice(part),
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
        if let To::Memory(data) = &state.to
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

    /// All bytes, once, if they have come, and no receive has them.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        if state.left > 0 {
            return None;
        }
        match std::mem::replace(&mut state.to, To::Delivered) {
            To::Memory(data) => Some(data),
            _ => None,
        }
    }
}

/// The first part of a message has come. `None` if it is malformed.
pub(super) fn begin(engine: &Engine, envelope: Envelope, number: u64, bytes: u64, part: &[u8]) -> Option<()> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST)?;
    if part.is_empty() || part.len() >= bytes {
        return None;
    }
    let parts = Arc::new(Parts::new(bytes));
    let key = (envelope.source, number);
    let mut all = engine.two_sided.parts.lock();
    if all.contains_key(&key) {
        return None;
    }
    all.insert(key, parts.clone());
    drop(all);
    // Matched first: then it goes where it belongs at once.
    engine.message_arrived(Incoming { envelope, body: Body::Parts(parts.clone()), number: None });
    parts.add(engine, 0, part).map(drop)
}

/// Another part has come. `None` if it is malformed.
pub(super) fn go_on(engine: &Engine, key: (usize, u64), start: u64, part: &[u8]) -> Option<()> {
    let parts = engine.two_sided.parts.lock().get(&key)?.clone();
    if parts.add(engine, usize::try_from(start).ok()?, part)? {
        engine.two_sided.parts.lock().remove(&key);
    }
    Some(())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
