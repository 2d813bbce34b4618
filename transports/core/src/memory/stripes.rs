//! Striped locks for elements that no CPU atomic covers: wider than 8 bytes, or not aligned.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Span, Words};
use crate::futex::{self, Among};
use crate::{TransportError, TransportResult};

/// Free.
const FREE: u32 = 0;
/// Held, without waiters.
const HELD: u32 = 1;
/// Held, and there may be waiters.
const AWAITED: u32 = 2;

/// A number of locks in memory that all ranks of the target's node map. A thread that updates an element that no CPU atomic
/// covers holds the lock of the element's place meanwhile.
///
/// A place is a number that all processes agree on for an element, such as its offset in the target's window:
/// addresses differ between processes. Elements of different places may share a lock; a thread holds one at a
/// time, for a few loads and stores, so there is no deadlock.
#[derive(Debug, Clone)]
pub struct Stripes {
    words: Words<{ Stripes::BYTES / size_of::<u32>() }>,
    /// Places of 2 to this power bytes share a lock.
    shift: u32,
}

impl Stripes {
    const COUNT: usize = 64;
    /// A cache line each, so that neighbours do not slow each other down.
    const LINE: usize = 64;

    /// Bytes that the locks take.
    pub const BYTES: usize = Self::COUNT * Self::LINE;

    /// The locks in the first [`Stripes::BYTES`] of `memory`, which are zero before anybody uses them.
    ///
    /// # Errors
    /// `memory` is too short, or not aligned to 4 bytes.
    pub fn new(memory: &Span) -> TransportResult<Self> {
        Ok(Self { words: Words::new(memory, 0)?, shift: 4 })
    }

    /// Locks of this process, for memory that no other maps.
    ///
    /// # Errors
    /// No memory.
    pub fn private() -> TransportResult<Self> {
        Self::new(&Span::anonymous(Self::BYTES)?)
    }

    /// The same locks, one for each range of at least `bytes` bytes: fewer to take where elements lie close together. All
    /// processes use the same number.
    pub fn coarser(self, bytes: usize) -> Self {
        let shift = bytes.max(16).checked_next_power_of_two().map_or(usize::BITS - 1, usize::trailing_zeros);
        Self { shift, ..self }
    }

    /// Waits for the lock of `place`.
    #[inline]
    pub(super) fn lock(&self, place: u64) -> Held<'_> {
        let word = self.word(self.stripe(place));
        hold(word);
        Held(word)
    }

    #[inline]
    fn word(&self, stripe: usize) -> &AtomicU32 {
        &self.words[stripe * (Self::LINE / size_of::<u32>())]
    }

    /// Waits for the locks of two places, which may be the same.
    #[inline]
    pub(super) fn lock_both(&self, first: u64, last: u64) -> (Held<'_>, Option<Held<'_>>) {
        let (a, b) = (self.stripe(first), self.stripe(last));
        let low = self.word(a.min(b));
        hold(low);
        let low = Held(low);
        if a == b {
            return (low, None);
        }
        // Always in the order of their numbers: so there is no deadlock.
        let high = self.word(a.max(b));
        hold(high);
        (low, Some(Held(high)))
    }

    fn stripe(&self, place: u64) -> usize {
        (place >> self.shift) as usize % Self::COUNT
    }

    /// Refused: an element that needs a lock, without any.
    pub(super) fn missing(span: &Span, offset: usize, bytes: usize) -> TransportError {
        TransportError::Range { offset, bytes, len: span.len() }
    }
}

/// A word that a lock is made of: the CPU's and the kernel's, or a model checker's.
trait Word {
    /// Stores `HELD` if the word is `FREE`.
    fn try_hold(&self) -> bool;
    fn read(&self) -> u32;
    fn swap(&self, value: u32) -> u32;
    /// Sleeps while the word is `AWAITED`, until a wake-up. May return for no reason.
    fn sleep(&self);
    fn wake_one(&self);
}

impl Word for AtomicU32 {
    #[inline]
    fn try_hold(&self) -> bool {
        self.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn read(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn swap(&self, value: u32) -> u32 {
        self.swap(value, Ordering::AcqRel)
    }

    fn sleep(&self) {
        futex::sleep_on(self, AWAITED, Duration::from_secs(1), Among::Processes);
    }

    fn wake_one(&self) {
        futex::wake_one(self, Among::Processes);
    }
}

/// The mutex of "Futexes Are Tricky" (U. Drepper, 2011), §6: a waiter marks the word before it sleeps, so an unlock calls
/// the kernel only if there may be a waiter.
#[inline]
fn hold(word: &impl Word) {
    if !word.try_hold() {
        wait(word);
    }
}

#[cold]
fn wait(word: &impl Word) {
    // As long as the holder needs if it runs; if it does not, spinning keeps the core from it.
    const SPINS: usize = if cfg!(test) { 2 } else { 100 };
    for _ in 0..SPINS {
        hint::spin_loop();
        if word.read() == FREE && word.try_hold() {
            return;
        }
    }
    while word.swap(AWAITED) != FREE {
        word.sleep();
    }
}

#[inline]
fn release(word: &impl Word) {
    if word.swap(FREE) == AWAITED {
        word.wake_one();
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a AtomicU32);

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        release(self.0);
    }
}

#[cfg(test)]
#[path = "stripes_tests.rs"]
mod tests;
