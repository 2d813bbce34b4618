//! Striped locks for elements that no CPU atomic covers: wider than 8 bytes, or not aligned.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Span, Words};
use crate::futex::{self, Among};
use crate::{TransportError, TransportResult};

/// A word without a lock that is held.
const FREE: u32 = 0;
/// Locks of a word, one bit each.
pub(super) const LOCKS: usize = 4;

/// The bits that say of locks that there may be waiters.
fn awaited(locks: u32) -> u32 {
    locks << LOCKS
}

/// A number of locks in memory that all ranks of the target's node map. A thread that updates an element that no CPU atomic
/// covers holds the lock of the element's place meanwhile.
///
/// A place is a number that all processes agree on for an element, such as its offset in the target's window:
/// addresses differ between processes. Elements of different places may share a lock; a thread holds one at a
/// time, or some that it takes in order, for a few loads and stores, so there is no deadlock.
///
/// Four locks are one word, so that locks of places behind each other can be taken at once: each instruction that takes or releases a lock
/// waits until all stores before it are done, which for long updates is longer than the instruction itself.
#[derive(Debug, Clone)]
pub struct Stripes {
    words: Words<{ Stripes::BYTES / size_of::<u32>() }>,
    /// Places of 2 to this power bytes share a lock.
    shift: u32,
    /// Whether the locks of a word are of places behind each other, or of places far apart.
    joined: bool,
}

impl Stripes {
    const COUNT: usize = 64;
    /// A cache line for each word, so that neighbours do not slow each other down.
    const LINE: usize = 64;

    /// Bytes that the locks take.
    pub const BYTES: usize = Self::COUNT * Self::LINE;

    /// The locks in the first [`Stripes::BYTES`] of `memory`, which are zero before anybody uses them.
    ///
    /// # Errors
    /// `memory` is too short, or not aligned to 4 bytes.
    pub fn new(memory: &Span) -> TransportResult<Self> {
        Ok(Self { words: Words::new(memory, 0)?, shift: 4, joined: false })
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

    /// The same locks, for who takes those of places behind each other ([`Stripes::lock_range`]).
    pub(super) fn joined(self) -> Self {
        Self { joined: true, ..self }
    }

    /// Waits for the lock of `place`.
    #[inline]
    pub(super) fn lock(&self, place: u64) -> Held<'_> {
        let (word, lock) = self.find(place);
        self.hold(word, 1 << lock)
    }

    /// Waits for the locks of all places from `first` to `last`: those of one word, or of that and the beginning of the next. They are
    /// [joined](Stripes::joined).
    #[inline]
    pub(super) fn lock_range(&self, first: u64, last: u64) -> (Held<'_>, Option<Held<'_>>) {
        let ((a, from), (b, to)) = (self.find(first), self.find(last));
        if a == b {
            return (self.hold(a, locks(from, to)), None);
        }
        let (a, b) = ((a, locks(from, LOCKS - 1)), (b, locks(0, to)));
        // Always in the order of their numbers: so there is no deadlock.
        let (low, high) = if a.0 < b.0 { (a, b) } else { (b, a) };
        let low = self.hold(low.0, low.1);
        (low, Some(self.hold(high.0, high.1)))
    }

    /// The word and the lock of a place.
    #[inline]
    fn find(&self, place: u64) -> (usize, usize) {
        let number = (place >> self.shift) as usize;
        match self.joined {
            true => (number / LOCKS % Self::COUNT, number % LOCKS),
            false => (number % Self::COUNT, number / Self::COUNT % LOCKS),
        }
    }

    #[inline]
    fn hold(&self, word: usize, locks: u32) -> Held<'_> {
        let word = &self.words[word * (Self::LINE / size_of::<u32>())];
        hold(word, locks);
        Held { word, locks }
    }

    /// Refused: an element that needs a lock, without any.
    pub(super) fn missing(span: &Span, offset: usize, bytes: usize) -> TransportError {
        TransportError::Range { offset, bytes, len: span.len() }
    }
}

/// The bits of the locks `first` to `last` of a word.
#[inline]
fn locks(first: usize, last: usize) -> u32 {
    (2 << last) - (1 << first)
}

/// A word that locks are made of: the CPU's and the kernel's, or a model checker's.
trait Word {
    fn read(&self) -> u32;
    /// Stores `new` if the word is `old`.
    fn change(&self, old: u32, new: u32) -> bool;
    /// Clears bits; what the word was.
    fn clear(&self, bits: u32) -> u32;
    /// Sleeps while the word is `value`, until a wake-up for that lock. May return for no reason.
    fn sleep(&self, value: u32, lock: u32);
    /// Wakes one who sleeps for that lock.
    fn wake_one(&self, lock: u32);
}

impl Word for AtomicU32 {
    #[inline]
    fn read(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn change(&self, old: u32, new: u32) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn clear(&self, bits: u32) -> u32 {
        self.fetch_and(!bits, Ordering::AcqRel)
    }

    fn sleep(&self, value: u32, lock: u32) {
        futex::sleep_on_for(self, value, lock, Duration::from_secs(1), Among::Processes);
    }

    fn wake_one(&self, lock: u32) {
        futex::wake_one_for(self, lock, Among::Processes);
    }
}

/// The mutex of "Futexes Are Tricky" (U. Drepper, 2011), §6, several in a word: a waiter marks the lock that it waits for before it sleeps,
/// so an unlock calls the kernel only if there may be a waiter.
#[inline]
fn hold(word: &impl Word, locks: u32) {
    if !word.change(FREE, locks) {
        wait(word, locks);
    }
}

#[cold]
fn wait(word: &impl Word, locks: u32) {
    // As long as the holder needs if it runs; if it does not, spinning keeps the core from it.
    const SPINS: usize = if cfg!(test) { 2 } else { 100 };
    let (mut left, mut slept, mut spins) = (locks, 0, 0);
    while left != 0 {
        let (now, next) = (word.read(), left & left.wrapping_neg());
        // The lowest first, and no other before the next: so there is no deadlock.
        let free = match now & left {
            0 => left,
            taken => left & ((1 << taken.trailing_zeros()) - 1),
        };
        if free != 0 {
            // Others may sleep as this thread did, and one alone is woken.
            if word.change(now, now | free | awaited(free & slept)) {
                left &= !free;
            }
        } else if spins < SPINS {
            spins += 1;
            hint::spin_loop();
        } else if now & awaited(next) != 0 || word.change(now, now | awaited(next)) {
            word.sleep(now | awaited(next), next);
            slept |= next;
        }
    }
}

#[inline]
fn release(word: &impl Word, locks: u32) {
    if !word.change(locks, FREE) {
        let before = word.clear(locks | awaited(locks));
        let has_waiter = |lock: &u32| before & awaited(locks & lock) != 0;
        (0..LOCKS).map(|lock| 1 << lock).filter(has_waiter).for_each(|lock| word.wake_one(lock));
    }
}

/// Locks that are held.
#[derive(Debug)]
pub(super) struct Held<'a> {
    word: &'a AtomicU32,
    locks: u32,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        release(self.word, self.locks);
    }
}

#[cfg(test)]
#[path = "stripes_tests.rs"]
mod tests;
