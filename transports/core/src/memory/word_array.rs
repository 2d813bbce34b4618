//! Words of protocols (locks, states, counts), found to be inside their memory once and for all.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::Span;
use crate::TransportResult;

/// `N` words of 32 bits in memory that several processes may map.
#[derive(Debug, Clone)]
pub struct Words<const N: usize> {
    /// In `_memory`.
    words: NonNull<[AtomicU32; N]>,
    _memory: Span,
}

// SAFETY: the words are reached as atomics only, in memory that `_memory` keeps, which is Send + Sync.
unsafe impl<const N: usize> Send for Words<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Words<N> {}

impl<const N: usize> Words<N> {
    /// The words from `offset` on.
    ///
    /// # Errors
    /// They are not all inside, or not aligned to 4 bytes.
    pub fn new(memory: &Span, offset: usize) -> TransportResult<Self> {
        let memory = memory.part(offset, N * size_of::<u32>())?;
        let first = if N == 0 { NonNull::dangling() } else { NonNull::from(memory.word32(0)?).cast() };
        Ok(Self { words: first, _memory: memory })
    }
}

impl<const N: usize> Deref for Words<N> {
    type Target = [AtomicU32; N];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU32; N] {
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
