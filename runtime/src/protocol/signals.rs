//! Signals between ranks of one node: counters and flags in the receiver's memory that the sender writes, where ranks of
//! different nodes send messages.
//!
//! Each has one writer and one reader, so a signal is a plain store. A reader that goes to sleep first counts itself, then
//! checks a last time; a writer first signals, then checks whether the reader sleeps: so one of the two sees the other, and
//! no wake-up is lost.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A word that one rank writes and another reads: the CPU's atomic, or a model checker's.
pub trait Word {
    /// Reads; what the writer did before it wrote is visible then.
    fn read(&self) -> u64;
    /// Writes, after all that this thread did before.
    fn write(&self, value: u64);
}

impl Word for AtomicU64 {
    #[inline]
    fn read(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn write(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}

/// Increments a counter. Counters wrap around: only differences matter.
#[inline]
pub fn count(word: &impl Word) {
    word.write(word.read().wrapping_add(1));
}

/// Increments a counter in another rank's memory, of which `own` is this rank's copy: to read it there its line would have to come
/// back from the reader's core, where a store need not wait for that.
#[inline]
pub fn count_there(word: &impl Word, own: &impl Word) {
    count(own);
    word.write(own.read());
}

/// Sets the flag of round `sequence`, which is of kind `kind`. Of the two flags, used alternately, each is set again when
/// the reader has seen it, or needs it no more.
#[inline]
pub fn flag(words: [&impl Word; 2], sequence: u64, kind: u8) {
    words[(sequence % 2) as usize].write((sequence + 1) << 8 | u64::from(kind));
}

/// Whether round `sequence` has been signalled, and of what kind it is, if the flag still says so.
#[inline]
pub fn flagged(words: [&impl Word; 2], sequence: u64) -> Option<Option<u8>> {
    let word = words[(sequence % 2) as usize].read();
    match (word >> 8).checked_sub(sequence + 1)? {
        0 => Some(Some(word as u8)),
        _ => Some(None),
    }
}

/// How many threads of a rank sleep until they are signalled.
pub trait Sleepers {
    /// One more.
    fn add_one(&self);
    /// One less.
    fn take_one(&self);
    /// Whether there are any.
    fn any(&self) -> bool;
}

impl Sleepers for AtomicU32 {
    fn add_one(&self) {
        self.fetch_add(1, Ordering::SeqCst);
    }

    fn take_one(&self) {
        self.fetch_sub(1, Ordering::SeqCst);
    }

    #[inline]
    fn any(&self) -> bool {
        self.load(Ordering::Acquire) > 0
    }
}

/// A thread that is counted as sleeping.
#[derive(Debug)]
pub struct Asleep<'a, S: Sleepers>(&'a S);

impl<'a, S: Sleepers> Asleep<'a, S> {
    /// To be followed by a barrier, a last check, and the sleep.
    pub fn new(sleepers: &'a S) -> Self {
        sleepers.add_one();
        Self(sleepers)
    }
}

impl<S: Sleepers> Drop for Asleep<'_, S> {
    fn drop(&mut self) {
        self.0.take_one();
    }
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
