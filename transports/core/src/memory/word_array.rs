//! Words of protocols (locks, states, counts), found to be inside their memory once and for all.

use std::ops::Deref;
use std::ptr::NonNull;

use super::Span;
use crate::{Number, TransportResult};

/// `N` words, of 32 bits if nothing is said, in memory that several processes may map.
#[derive(Debug)]
pub struct Words<const N: usize, T: Number = u32> {
    /// In `_memory`.
    words: NonNull<[T::Cell; N]>,
    _memory: Span,
}

impl<const N: usize, T: Number> Clone for Words<N, T> {
    fn clone(&self) -> Self {
        Self { words: self.words, _memory: self._memory.clone() }
    }
}

// SAFETY: the words are reached as atomics only, in memory that `_memory` keeps, which is Send + Sync.
unsafe impl<const N: usize, T: Number> Send for Words<N, T> {}
// SAFETY: as above.
unsafe impl<const N: usize, T: Number> Sync for Words<N, T> {}

impl<const N: usize, T: Number> Words<N, T> {
    /// The words from `offset` on.
    ///
    /// # Errors
    /// They are not all inside, or not aligned to their size.
    pub fn new(memory: &Span, offset: usize) -> TransportResult<Self> {
        let memory = memory.part(offset, N * size_of::<T>())?;
        let first = if N == 0 { NonNull::dangling() } else { NonNull::from(memory.cell::<T>(0)?).cast() };
        Ok(Self { words: first, _memory: memory })
    }
}

impl<const N: usize, T: Number> Deref for Words<N, T> {
    type Target = [T::Cell; N];

    #[inline(always)]
    fn deref(&self) -> &[T::Cell; N] {
        // SAFETY: N words inside `_memory`, aligned (Words::new), alive as long as `self`.
        unsafe { self.words.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_those_of_their_memory() {
        let span = Span::anonymous(64).unwrap();
        let words = Words::<4>::new(&span, 8).unwrap();
        words[3].store(7, Ordering::Relaxed);
        assert_eq!(span.word32(20).unwrap().load(Ordering::Relaxed), 7);
        for outside in [52, 64, usize::MAX] {
            assert!(Words::<4>::new(&span, outside).is_err());
        }
        assert!(Words::<4>::new(&span, 6).is_err(), "not aligned");
        assert_eq!(Words::<0>::new(&span, 64).unwrap().len(), 0);
    }
}
