//! Memory that each of several processes has a part of, all of one length, as far as this process maps them: the least that an access
//! needs. A part is there for good once it is there.

use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Span;
use super::copy::copy_word_or;
use super::update::compare_swap_at;
use crate::{Basic, ReduceOp, Swappable};

/// The parts, by number.
#[derive(Debug)]
pub struct Parts {
    /// The first byte of each part that is mapped; null of others.
    starts: Box<[AtomicPtr<u8>]>,
    len: usize,
    /// Offsets below this are those of whole words.
    words: usize,
    /// What the starts lead to.
    kept: Box<[OnceLock<Span>]>,
}

/// Bytes of a part, one at least.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    at: *mut u8,
    _part: PhantomData<&'a Parts>,
}

impl Parts {
    /// So many parts of `len` bytes each, of which none is mapped.
    pub fn new(parts: usize, len: usize) -> Self {
        let starts = (0..parts).map(|_| AtomicPtr::default()).collect();
        let kept = (0..parts).map(|_| OnceLock::new()).collect();
        Self { starts, len, words: len.saturating_sub(size_of::<u64>() - 1), kept }
    }

    /// Whether a part is there, and not mapped.
    pub fn lacks(&self, part: usize) -> bool {
        self.kept.get(part).is_some_and(|kept| kept.get().is_none())
    }

    /// A part is mapped from now on. Nothing happens if it is already, there is no such part, or the memory is shorter.
    pub fn fill(&self, part: usize, memory: Span) {
        if memory.len() < self.len {
            return;
        }
        if let (Some(kept), Some(start)) = (self.kept.get(part), self.starts.get(part)) {
            let memory = kept.get_or_init(|| memory);
            start.store(memory.address() as *mut u8, Ordering::Release);
        }
    }

    /// `bytes` bytes of a part from `offset` on, if it is mapped and they are inside. There is none of 0 bytes.
    #[inline(always)]
    pub fn place(&self, part: usize, offset: usize, bytes: usize) -> Option<Place<'_>> {
        let inside = if bytes == size_of::<u64>() {
            offset < self.words
        } else {
            offset < self.len && bytes.wrapping_sub(1) < self.len - offset
        };
        if !inside {
            return None;
        }
        let start = self.starts.get(part)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: offset + bytes <= len, as just checked (offset < words means offset + 8 <= len), and the kept span, which lives as long
        // as `self`, has `len` bytes at least (Parts::fill, ptr::add).
        Some(Place { at: unsafe { start.add(offset) }, _part: PhantomData })
    }
}

impl Place<'_> {
    /// Copies so many bytes there.
    ///
    /// # Safety
    /// The place is of `bytes` bytes, and `from` is valid for reads of them.
    #[inline(always)]
    pub unsafe fn put_from(self, from: *const u8, bytes: usize) {
        // SAFETY: `at` is valid for as many bytes (Parts::place); `from` by contract.
        unsafe { copy_word_or(from, self.at, bytes) };
    }

    /// Copies so many bytes from there.
    ///
    /// # Safety
    /// The place is of `bytes` bytes, and `to` is valid for writes of them.
    #[inline(always)]
    pub unsafe fn get_to(self, to: *mut u8, bytes: usize) {
        // SAFETY: as in `put_from`, with the roles exchanged.
        unsafe { copy_word_or(self.at, to, bytes) };
    }

    /// `element = element op operand` by one CPU atomic; returns what was there. None, and nothing is done, where that cannot be.
    ///
    /// # Safety
    /// The place is of an element's bytes.
    #[inline(always)]
    pub unsafe fn update_one<T: Basic>(self, op: ReduceOp, operand: T) -> Option<T> {
        // SAFETY: valid for an element by contract; memory of spans is written by CPU atomics and raw copies only.
        unsafe { T::update(self.at, op, operand) }
    }

    /// Stores `value` if the element has the bytes of `compare`, by one CPU atomic; returns what was there. None, and nothing is done,
    /// where that cannot be.
    ///
    /// # Safety
    /// The place is of an element's bytes.
    #[inline(always)]
    pub unsafe fn compare_swap_one<T: Swappable>(self, (compare, value): (T, T)) -> Option<T> {
        // SAFETY: as in `update_one`.
        unsafe { compare_swap_at(self.at, compare, value) }
    }
}

impl Parts {
    /// [`Place::update_one`] of an element at `offset` of a part.
    #[inline(always)]
    pub fn update_one<T: Basic>(&self, part: usize, offset: usize, op: ReduceOp, operand: T) -> Option<T> {
        let place = self.place(part, offset, size_of::<T>())?;
        // SAFETY: the place is of an element's bytes.
        unsafe { place.update_one(op, operand) }
    }

    /// [`Place::compare_swap_one`] of an element at `offset` of a part.
    #[inline(always)]
    pub fn compare_swap_one<T: Swappable>(&self, part: usize, offset: usize, values: (T, T)) -> Option<T> {
        let place = self.place(part, offset, size_of::<T>())?;
        // SAFETY: the place is of an element's bytes.
        unsafe { place.compare_swap_one(values) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(parts: &Parts, part: usize, offset: usize, data: &[u8]) -> bool {
        let place = parts.place(part, offset, data.len());
        // SAFETY: a place of the slice's length, and a valid slice.
        place.map(|place| unsafe { place.put_from(data.as_ptr(), data.len()) }).is_some()
    }

    #[test]
    fn what_is_outside_or_not_mapped_is_refused() {
        for len in [1, 7, 8, 9, 64] {
            let parts = Parts::new(3, len);
            let memory = Span::anonymous(len).unwrap();
            assert!(parts.lacks(1) && !parts.lacks(3) && !put(&parts, 1, 0, &[1]));
            parts.fill(1, memory.clone());
            parts.fill(7, memory.clone());
            assert!(!parts.lacks(1));
            for bytes in 0..=len + 1 {
                for offset in (0..=len + 1).chain([usize::MAX, usize::MAX - 6, usize::MAX - 7, 1 << 63]) {
                    let inside = bytes > 0 && offset.checked_add(bytes).is_some_and(|end| end <= len);
                    assert_eq!(
                        put(&parts, 1, offset, &vec![3; bytes]),
                        inside,
                        "{bytes} at {offset} of {len}"
                    );
                    assert!(
                        !put(&parts, 0, offset, &vec![3; bytes]) && !put(&parts, usize::MAX, offset, &[1])
                    );
                }
            }
            let mut all = vec![0; len];
            memory.copy_out(0, &mut all).unwrap();
            assert_eq!(all, vec![3; len]);
        }
    }

    #[test]
    fn shorter_memory_is_no_part() {
        let parts = Parts::new(1, 64);
        parts.fill(0, Span::anonymous(32).unwrap());
        assert!(parts.lacks(0) && parts.place(0, 0, 8).is_none());
    }

    #[test]
    fn elements_are_updated_where_they_are_aligned() {
        let parts = Parts::new(1, 64);
        parts.fill(0, Span::anonymous(64).unwrap());
        assert_eq!(parts.update_one(0, 8, ReduceOp::Sum, 5u64), Some(0));
        assert_eq!(parts.update_one(0, 8, ReduceOp::NoOp, 0u32), Some(5));
        assert_eq!(parts.update_one(0, 9, ReduceOp::Sum, 5u64), None);
        assert_eq!(parts.compare_swap_one(0, 8, (5u64, 6)), Some(5));
        assert_eq!(parts.compare_swap_one(0, 64, (5u64, 6)), None);
        assert_eq!(parts.update_one(0, 8, ReduceOp::Replace, 0.5f64), Some(f64::from_bits(6)));
    }
}
