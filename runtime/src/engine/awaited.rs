//! Operations that their caller waits for alone: what it is told of the end, without a table entry or a counter of parts.

use transom_transport::{TransportError, TransportResult};

use super::sync::{AtomicU8, AtomicU64, Mutex, Ordering};

/// As many at a time. Who finds none free has an entry of the table.
pub(super) const SLOTS: usize = 32;

/// States of a slot that is taken.
const UNDER_WAY: u8 = 0;
const ENDED: u8 = 1;
const FAILED: u8 = 2;
/// The caller has gone before the end, which frees the slot.
const LEFT: u8 = 3;

/// The end of one operation. A cache line, since callers look at theirs again and again.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    state: AtomicU8,
    /// What an atomic found.
    value: AtomicU64,
    /// Why the operation has failed.
    error: Mutex<Option<TransportError>>,
}

/// Slots of one rank's callers.
#[derive(Debug)]
pub(super) struct Slots {
    /// A bit for each that is free.
    free: AtomicU64,
    slots: Box<[Slot]>,
}

impl Slot {
    /// What the operation has found, if it has ended.
    #[inline(always)]
    pub fn outcome(&self) -> Option<TransportResult<u64>> {
        match self.state.load(Ordering::Acquire) {
            ENDED => Some(Ok(self.value.load(Ordering::Relaxed))),
            FAILED => self.failure(),
            _ => None,
        }
    }

    #[cold]
    fn failure(&self) -> Option<TransportResult<u64>> {
        self.error.lock().clone().map(Err)
    }
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
    pub fn take(&self) -> Option<(u32, &Slot)> {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            let slot = free.trailing_zeros();
            let place = self.slots.get(slot as usize)?;
            let left = free & (free - 1);
            match self.free.compare_exchange(free, left, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    place.state.store(UNDER_WAY, Ordering::Relaxed);
                    return Some((slot, place));
                }
                Err(now) => free = now,
            }
        }
    }

    fn give(&self, slot: u32) {
        self.free.fetch_or(1 << slot, Ordering::Release);
    }

    /// The operation of a slot has succeeded.
    #[inline]
    pub fn succeed(&self, slot: u32, value: u64) {
        let Some(place) = self.slots.get(slot as usize) else { return };
        place.value.store(value, Ordering::Relaxed);
        if place.state.swap(ENDED, Ordering::AcqRel) == LEFT {
            self.give(slot);
        }
    }

    /// The operation of a slot has failed.
    #[cold]
    pub fn fail(&self, slot: u32, error: TransportError) {
        let Some(place) = self.slots.get(slot as usize) else { return };
        *place.error.lock() = Some(error);
        if place.state.swap(FAILED, Ordering::AcqRel) == LEFT {
            self.forget(slot);
        }
    }

    /// Its caller waits no more.
    #[inline(always)]
    pub fn leave(&self, slot: u32, place: &Slot) {
        if place.state.load(Ordering::Acquire) == ENDED {
            self.give(slot);
        } else if place.state.swap(LEFT, Ordering::AcqRel) != UNDER_WAY {
            self.forget(slot);
        }
    }

    /// Frees a slot that may have an error.
    #[cold]
    fn forget(&self, slot: u32) {
        if let Some(place) = self.slots.get(slot as usize) {
            *place.error.lock() = None;
        }
        self.give(slot);
    }
}
