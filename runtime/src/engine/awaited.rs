//! Operations that their caller waits for alone: what it is told of the end, without a table entry or a counter of parts.

use super::sync::{AtomicU8, AtomicU64, Ordering};

/// As many at a time. Who finds none free has an entry of the table.
pub(super) const SLOTS: usize = 32;

/// States of a slot that is taken.
const UNDER_WAY: u8 = 0;
const ENDED: u8 = 1;
/// The caller has gone before the end, which frees the slot.
const LEFT: u8 = 2;

/// The end of one operation. A cache line, since callers look at theirs again and again.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    state: AtomicU8,
    /// What an atomic found.
    value: AtomicU64,
}

/// Slots of one rank's callers.
#[derive(Debug)]
pub(super) struct Slots {
    /// A bit for each that is free.
    free: AtomicU64,
    slots: Box<[Slot]>,
}

impl Default for Slots {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Self { free: AtomicU64::new((1 << SLOTS) - 1), slots }
    }
}

impl Slots {
    /// A slot that is free, for an operation that begins.
    #[inline]
    pub fn take(&self) -> Option<u32> {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            let slot = free.trailing_zeros();
            let place = self.slots.get(slot as usize)?;
            let left = free & (free - 1);
            match self.free.compare_exchange(free, left, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    place.state.store(UNDER_WAY, Ordering::Relaxed);
                    return Some(slot);
                }
                Err(now) => free = now,
            }
        }
    }

    fn give(&self, slot: u32) {
        self.free.fetch_or(1 << slot, Ordering::Release);
    }

    /// The operation of a slot has ended.
    #[inline]
    pub fn end(&self, slot: u32, value: u64) {
        let Some(place) = self.slots.get(slot as usize) else { return };
        place.value.store(value, Ordering::Relaxed);
        if place.state.swap(ENDED, Ordering::AcqRel) == LEFT {
            self.give(slot);
        }
    }

    /// What an operation has found, if it has ended.
    #[inline]
    pub fn outcome(&self, slot: u32) -> Option<u64> {
        let place = self.slots.get(slot as usize)?;
        let ended = place.state.load(Ordering::Acquire) == ENDED;
        ended.then(|| place.value.load(Ordering::Relaxed))
    }

    /// Its caller waits no more.
    #[inline]
    pub fn leave(&self, slot: u32) {
        let Some(place) = self.slots.get(slot as usize) else { return };
        let ended = place.state.load(Ordering::Acquire) == ENDED;
        if ended || place.state.swap(LEFT, Ordering::AcqRel) == ENDED {
            self.give(slot);
        }
    }
}
