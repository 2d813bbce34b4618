//! Receives in slots: of bytes from one rank, to a buffer of the program's. They take no memory, and fewer atomic instructions than
//! those with an object of their own.

use transom_transport::Payload;

use super::{Incoming, Posted, deliver};
use crate::engine::Engine;
use crate::engine::receive_slots::Came;
use crate::memory::RawBuffer;
use crate::protocol::messages::{Envelope, Pattern};
use crate::{Class, Error, Result};

const OPERATION: &str = "irecv";

/// Receives a short message that has come, if the first receive that it matches is in a slot and has room for it. False if not, and
/// nothing is done.
#[inline]
pub(super) fn takes(engine: &Engine, envelope: &Envelope, message: Payload<'_>) -> bool {
    let two_sided = &engine.two_sided;
    if !two_sided.slots.are_used() || !two_sided.has_any() {
        return false;
    }
    let fits = |posted: &Posted| matches!(posted, Posted::Slot(_, buffer) if buffer.len() >= message.len());
    let Some(Posted::Slot(slot, buffer)) = two_sided.change(|state| state.receive_if(envelope, fits)) else {
        return false;
    };
    message.copy_to(buffer.bytes_mut());
    engine.end_in_slot(slot, (envelope.tag, message.len(), Ok(())));
    true
}

/// Receives a message that the receive in a slot has matched.
pub(super) fn receive(engine: &Engine, slot: usize, buffer: RawBuffer, arrived: Incoming<'_>) {
    let (tag, bytes) = (arrived.envelope.tag, arrived.bytes());
    engine.two_sided.slots.comes(slot, arrived.coming(engine));
    let then = move |engine: &Engine, result: Result<RawBuffer>| {
        engine.end_in_slot(slot, (tag, bytes, result.map(drop)));
    };
    deliver(engine, OPERATION, arrived, buffer, then);
}

impl Engine {
    fn end_in_slot(&self, slot: usize, came: Came) {
        if let Some(waker) = self.two_sided.slots.end(slot, came) {
            self.wake_later([waker]);
        }
    }

    /// Takes back the receive in a slot, unless a message has matched it. Then it has ended.
    pub fn cancel_in_slot(&self, slot: usize) -> bool {
        let is_it = |posted: &Posted| matches!(posted, Posted::Slot(other, _) if *other == slot);
        let cancelled = self.two_sided.change(|state| state.take_back(is_it)).is_some();
        if cancelled {
            let error = Error::new(Class::Cancelled, OPERATION, "the receive was taken back");
            self.end_in_slot(slot, (-1, 0, Err(error.at_rank(self.rank))));
            self.wake();
        }
        cancelled
    }

    /// Posts a receive in a slot, if one is free and it names the rank that sends.
    #[inline]
    pub fn post_in_slot(&self, pattern: Pattern, buffer: RawBuffer) -> Option<usize> {
        let (slots, source) = (&self.two_sided.slots, pattern.source?);
        let (slot, arrived) = self.two_sided.change(|state| {
            let slot = slots.take(source)?;
            let arrived = state.take(pattern);
            if arrived.is_none() {
                state.post(pattern, Posted::Slot(slot, buffer));
            }
            Some((slot, arrived))
        })?;
        if let Some((_, arrived)) = arrived {
            receive(self, slot, buffer, arrived);
        }
        Some(slot)
    }
}
