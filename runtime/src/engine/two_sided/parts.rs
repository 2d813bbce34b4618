//! Messages in a few parts that are sent without being asked for: too long for one message of the transport, and so short that to wait
//! for the receiver's answer would take longer than they do.

use std::cell::RefCell;
use std::sync::Arc;

use parking_lot::Mutex;

use super::segments::{Arriving, Place};
use super::{Body, Buffer, Incoming, OnDelivered};
use crate::Result;
use crate::engine::Engine;
use crate::protocol::messages::Envelope;
use crate::protocol::wire::{Header, Kind};
use crate::waits::Awaits;

/// Most bytes of such a message: what one that nobody receives takes.
pub(crate) const MOST: usize = 64 << 10;

/// A message whose parts come one behind the other.
pub(crate) struct Parts {
    /// Its sender in the job, and that one's number of it.
    key: (usize, u64),
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
    fn new(key: (usize, u64), bytes: usize) -> Self {
        Self {
            key,
            bytes,
            state: Mutex::new(State { left: bytes, to: To::Memory { data: Vec::new(), taken: 0 } }),
        }
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
            To::Memory { data, .. } => {
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
        let takes = |header: &Header, kind, payload: &[u8]| {
            let is_one = kind == Kind::Part && (header.origin as usize, header.value) == self.key;
            is_one && self.take_part(engine, header.offset, payload, &mut buffer.borrow_mut())
        };
        let what = || awaits_bytes(self.key.0);
        engine.wait_taking(operation, &what, takes, || {
            let mut state = self.state.lock();
            state.move_to(&mut buffer.borrow_mut());
            (state.left == 0).then_some(Ok(()))
        })
    }

    /// Takes the next part. False if this is not it.
    fn take_part(&self, engine: &Engine, start: u64, part: &[u8], buffer: &mut [u8]) -> bool {
        let mut state = self.state.lock();
        let next = self.bytes - state.left;
        if start != next as u64 || part.len() > state.left {
            return false;
        }
        state.move_to(buffer);
        let To::Memory { taken, .. } = &mut state.to else { return false };
        buffer[next..next + part.len()].copy_from_slice(part);
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

/// The first part of a message has come. `None` if it is malformed.
pub(super) fn begin(engine: &Engine, envelope: Envelope, number: u64, bytes: u64, part: &[u8]) -> Option<()> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST)?;
    if part.is_empty() || part.len() >= bytes {
        return None;
    }
    let key = (envelope.source, number);
    let parts = Arc::new(Parts::new(key, bytes));
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
