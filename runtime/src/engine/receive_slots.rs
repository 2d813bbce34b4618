//! What comes of receives that have no object of their own: a slot has it until it is freed.

use std::sync::OnceLock;
use std::task::Waker;

use super::sync::{AtomicU8, AtomicUsize, Mutex, Ordering};
use crate::{Error, Result};

/// How many receives can be in slots at a time.
pub(crate) const SLOTS: usize = 256;

/// States of a slot.
const FREE: u8 = 0;
const POSTED: u8 = 1;
/// Somebody is to be woken when it has ended.
const WATCHED: u8 = 2;
/// Nobody wants to know of its end, which frees it.
const LEFT: u8 = 3;
const ENDED: u8 = 4;
/// There is an error.
const FAILED: u8 = 5;

/// Beside the rank: its message has matched, and comes; in segments.
const COMES: usize = 1 << (usize::BITS - 1);
const IN_SEGMENTS: usize = 1 << (usize::BITS - 2);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    state: AtomicU8,
    /// Rank in the job that sends, and what is known of its message.
    source: AtomicUsize,
    /// Of the message.
    tag: AtomicUsize,
    bytes: AtomicUsize,
    seldom: Mutex<Seldom>,
}

#[derive(Debug, Default)]
struct Seldom {
    error: Option<Error>,
    watcher: Option<Waker>,
}

impl Slot {
    fn has_ended(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), ENDED | FAILED)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A message that has matched a receive, and whose bytes are not here yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coming {
    /// Rank in the job that sends.
    pub from: usize,
    /// Whether its sender is to send segments: one that has given up sends none, and says nothing.
    pub in_segments: bool,
}

/// What came of a receive: tag and length of its message, and whether its bytes are lost.
pub(crate) type Came = (i32, usize, Result<()>);

/// The slots of one rank: made when the first is taken.
#[derive(Debug, Default)]
pub(crate) struct ReceiveSlots {
    slots: OnceLock<Box<[Slot]>>,
    /// Where to look for one that is free.
    next: AtomicUsize,
}

impl ReceiveSlots {
    /// Whether any has ever been taken.
    #[inline]
    pub fn are_used(&self) -> bool {
        self.slots.get().is_some()
    }

    fn all(&self) -> &[Slot] {
        self.slots.get_or_init(|| (0..SLOTS).map(|_| Slot::default()).collect())
    }

    #[inline]
    fn at(&self, slot: usize) -> Option<&Slot> {
        self.all().get(slot)
    }

    /// Takes one that is free, for a message of a rank of the job. By one thread at a time.
    pub fn take(&self, source: usize) -> Option<usize> {
        let (slots, next) = (self.all(), self.next.load(Ordering::Relaxed));
        let is_free = |slot: &usize| slots[*slot].state.load(Ordering::Acquire) == FREE;
        let found = (next..SLOTS).chain(0..next.min(SLOTS)).find(is_free)?;
        slots[found].source.store(source, Ordering::Relaxed);
        slots[found].state.store(POSTED, Ordering::Relaxed);
        self.next.store(found + 1, Ordering::Relaxed);
        Some(found)
    }

    /// A receive has ended, and its outcome is not wanted any more.
    #[inline]
    pub fn free(&self, slot: usize) {
        let Some(place) = self.at(slot) else { return };
        // The first ones are used most: they are in the cache.
        if slot < self.next.load(Ordering::Relaxed) {
            self.next.store(slot, Ordering::Relaxed);
        }
        place.state.store(FREE, Ordering::Release);
    }

    /// The same of a receive that need not have ended.
    pub fn leave(&self, slot: usize) {
        let Some(place) = self.at(slot) else { return };
        if !place.change(POSTED, LEFT) && !place.change(WATCHED, LEFT) {
            place.seldom.lock().error = None;
            self.free(slot);
        }
    }

    /// Whether a receive has ended.
    pub fn has_ended(&self, slot: usize) -> bool {
        self.at(slot).is_some_and(Slot::has_ended)
    }

    /// A message has matched a receive, whose bytes are to come.
    pub fn comes(&self, slot: usize, message: Coming) {
        let how = if message.in_segments { IN_SEGMENTS } else { 0 };
        if let Some(place) = self.at(slot) {
            place.source.store(message.from | COMES | how, Ordering::Relaxed);
        }
    }

    /// The rank in the job of whom a receive awaits a message.
    pub fn source(&self, slot: usize) -> Option<usize> {
        Some(self.at(slot)?.source.load(Ordering::Relaxed) & !(COMES | IN_SEGMENTS))
    }

    /// The message that has matched a receive, if its bytes were to come.
    pub fn coming(&self, slot: usize) -> Option<Coming> {
        let source = self.at(slot)?.source.load(Ordering::Relaxed);
        let from = source & !(COMES | IN_SEGMENTS);
        (source & COMES != 0).then_some(Coming { from, in_segments: source & IN_SEGMENTS != 0 })
    }

    /// What came of a receive that has ended; an error once.
    #[inline]
    pub fn came(&self, slot: usize) -> Option<Came> {
        let place = self.at(slot)?;
        let result = match place.state.load(Ordering::Acquire) {
            ENDED => Ok(()),
            FAILED => Err(place.seldom.lock().error.take()?),
            _ => return None,
        };
        let tag = place.tag.load(Ordering::Relaxed) as u32;
        Some((tag.cast_signed(), place.bytes.load(Ordering::Relaxed), result))
    }

    /// Has `waker` woken when the receive has ended. False if it has.
    pub fn watch(&self, slot: usize, waker: &Waker) -> bool {
        let Some(place) = self.at(slot) else { return false };
        place.seldom.lock().watcher = Some(waker.clone());
        place.change(POSTED, WATCHED) || !place.has_ended()
    }

    /// A receive has ended. Who is to be woken.
    #[must_use]
    pub fn end(&self, slot: usize, (tag, bytes, result): Came) -> Option<Waker> {
        let place = self.at(slot)?;
        place.tag.store(tag.cast_unsigned() as usize, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        let state = match result {
            Ok(()) => ENDED,
            Err(error) => {
                place.seldom.lock().error = Some(error);
                FAILED
            }
        };
        match place.state.swap(state, Ordering::AcqRel) {
            LEFT => {
                place.seldom.lock().error = None;
                self.free(slot);
                None
            }
            WATCHED => place.seldom.lock().watcher.take(),
            _ => None,
        }
    }
}
