//! A target's part of a window as this process maps it: all that an operation on consecutive elements needs, in a cache
//! line. What is not plain (outside, misaligned, under a lock, wider than the CPU's atomics) is refused without being done.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::copy::copy_small;
use super::sections::{Section, Sections};
use super::update::{compare_swap_at, element_of};
use super::{Reduction, Span, Updates};
use crate::{Basic, DataType, ReduceOp, Swappable, reduce_valid, swap_valid, with_basic};

/// Mapped memory of a target, addressed by displacements.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    len: usize,
    unit: usize,
    /// The word that says how elements are updated, inside `updates`.
    state: Option<NonNull<AtomicU32>>,
    updates: Option<Arc<Updates>>,
    memory: Span,
}

// SAFETY: both pointers lead into what `memory` and `updates` keep, which are Send + Sync, and are used for copies and
// atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The first `len` bytes of `memory`, in displacement units of `unit` bytes. Elements are updated by `updates`; without
    /// them every update is refused.
    pub fn new(memory: Span, len: usize, unit: usize, updates: Option<Arc<Updates>>) -> Self {
        let start = NonNull::new(memory.address() as *mut u8).unwrap_or(NonNull::dangling());
        let state = updates.as_ref().map(|updates| NonNull::from(updates.state()));
        Self { start, len: len.min(memory.len()), unit, state, updates, memory }
    }

    /// Byte offset of `bytes` bytes at a displacement, if they are inside.
    #[inline(always)]
    fn offset(&self, displacement: usize, bytes: usize) -> Option<usize> {
        let offset = displacement.checked_mul(self.unit)?;
        (offset <= self.len && bytes <= self.len - offset).then_some(offset)
    }

    #[inline(always)]
    fn at(&self, displacement: usize, bytes: usize) -> Option<*mut u8> {
        let offset = self.offset(displacement, bytes)?;
        // SAFETY: offset <= len, which is no more than `memory` has: inside the allocation or one past its end (ptr::add).
        Some(unsafe { self.start.as_ptr().add(offset) })
    }

    /// Copies `data` there: a put. False, and nothing is done, if it does not fit.
    #[inline(always)]
    pub fn put(&self, displacement: usize, data: &[u8]) -> bool {
        let Some(to) = self.at(displacement, data.len()) else { return false };
        // SAFETY: valid for as many bytes (Mapped::at), kept by `memory`; `data` is a valid slice.
        unsafe { copy_small(data.as_ptr(), to, data.len()) };
        true
    }

    /// Copies from there to `data`: a get. False, and nothing is done, if it does not fit.
    #[inline(always)]
    pub fn get(&self, displacement: usize, data: &mut [u8]) -> bool {
        let Some(from) = self.at(displacement, data.len()) else { return false };
        // SAFETY: as in `put`, with the roles exchanged; `data` is exclusively ours.
        unsafe { copy_small(from, data.as_mut_ptr(), data.len()) };
        true
    }

    /// Enters where elements are updated by atomic instructions, if they are.
    #[inline(always)]
    fn enter<'a>(&self, sections: &'a Sections) -> Option<Section<'a>> {
        // SAFETY: inside `updates`, which lives as long as `self`.
        let state = unsafe { self.state?.as_ref() };
        let section = sections.enter();
        Updates::is_atomic(state).then_some(section)
    }

    /// `element = element op operand` by one CPU atomic; returns what was there. None, and nothing is done, where that cannot
    /// be.
    #[inline(always)]
    pub fn update_one<T: Basic>(
        &self,
        sections: &Sections,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Option<T> {
        let at = self.at(displacement, size_of::<T>())?;
        let _inside = self.enter(sections)?;
        // SAFETY: valid for an element (Mapped::at); memory of spans is written by CPU atomics and raw copies only.
        unsafe { T::update(at, op, operand) }
    }

    /// Stores `value` if the element has the bytes of `compare`, by one CPU atomic; returns what was there. None, and nothing
    /// is done, where that cannot be.
    #[inline(always)]
    pub fn compare_swap_one<T: Swappable>(
        &self,
        sections: &Sections,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Option<T> {
        let at = self.at(displacement, size_of::<T>())?;
        let _inside = self.enter(sections)?;
        // SAFETY: as in `update_one`.
        unsafe { compare_swap_at(at, compare, value) }
    }

    /// Updates whole elements of `ty` by `operands`; what was there goes to `fetched`, if that is given, which is as long.
    /// False, and nothing is done, where that cannot be without more ado.
    #[inline(always)]
    pub fn update(
        &self,
        sections: &Sections,
        displacement: usize,
        (op, ty): (ReduceOp, DataType),
        operands: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> bool {
        // What programs do most is compiled for it; wrapping sums are the same with and without a sign.
        if op == ReduceOp::Sum
            && matches!(ty, DataType::I64 | DataType::U64)
            && let Ok(operand) = operands.try_into()
        {
            let Some(old) = self.add(sections, displacement, u64::from_ne_bytes(operand)) else { return false };
            return keep(old.to_ne_bytes(), fetched);
        }
        self.update_any(sections, displacement, (op, ty), operands, fetched)
    }

    /// Adds to an aligned word; returns what was there.
    #[inline(always)]
    fn add(&self, sections: &Sections, displacement: usize, operand: u64) -> Option<u64> {
        let at = self.at(displacement, size_of::<u64>())?;
        if !(at as usize).is_multiple_of(size_of::<u64>()) {
            return None;
        }
        let _inside = self.enter(sections)?;
        // SAFETY: valid for a word (Mapped::at) and aligned as just checked; others access it by atomics or raw copies
        // (std::sync::atomic, "Memory model").
        Some(unsafe { AtomicU64::from_ptr(at.cast()) }.fetch_add(operand, Ordering::AcqRel))
    }

    #[inline(never)]
    fn update_any(
        &self,
        sections: &Sections,
        displacement: usize,
        (op, ty): (ReduceOp, DataType),
        operands: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> bool {
        if !reduce_valid(op, ty) {
            return false;
        }
        if operands.len() != ty.size() {
            return self.update_many(sections, displacement, Reduction { op, ty, operands }, fetched);
        }
        if op == ReduceOp::Sum && ty == DataType::F64 {
            // The accumulate of most numerical programs, once more compiled for itself.
            let sum = self.update_one(sections, displacement, ReduceOp::Sum, element_of::<f64>(operands));
            return sum.is_some_and(|old| keep(old.to_ne_bytes(), fetched));
        }
        with_basic!(ty, T => {
            match self.update_one(sections, displacement, op, element_of::<T>(operands)) {
                Some(old) => keep_bytes(zerocopy::IntoBytes::as_bytes(&old), fetched),
                None => false,
            }
        })
    }

    /// Several elements: few enough that nobody leaves atomic instructions for them.
    fn update_many(
        &self,
        sections: &Sections,
        displacement: usize,
        what: Reduction<'_>,
        fetched: Option<&mut [u8]>,
    ) -> bool {
        let Some(updates) = self.updates.as_ref().filter(|updates| !updates.should_leave(what.operands.len()))
        else {
            return false;
        };
        let Some(offset) = self.offset(displacement, what.operands.len()) else { return false };
        updates.many(sections, &self.memory, offset as u64, offset, what, fetched).is_ok()
    }

    /// [`Mapped::compare_swap_one`] of an element of `ty`: what was there goes to `old`. All three are one element long.
    #[inline(always)]
    pub fn compare_swap(
        &self,
        sections: &Sections,
        displacement: usize,
        ty: DataType,
        (compare, value): (&[u8], &[u8]),
        old: &mut [u8],
    ) -> bool {
        macro_rules! swap {
            ($word:ty) => {{
                let (Ok(compare), Ok(value)) = (compare.try_into(), value.try_into()) else { return false };
                let (compare, value) = (<$word>::from_ne_bytes(compare), <$word>::from_ne_bytes(value));
                match self.compare_swap_one(sections, displacement, compare, value) {
                    Some(was) => keep(was.to_ne_bytes(), Some(old)),
                    None => false,
                }
            }};
        }
        // Bytes are compared: integers of the same size stand for all.
        match ty {
            DataType::I64 | DataType::U64 => swap!(u64),
            ty if !swap_valid(ty) => false,
            ty => match ty.size() {
                1 => swap!(u8),
                2 => swap!(u16),
                _ => swap!(u32),
            },
        }
    }
}

/// What was there, to where it is wanted.
#[inline(always)]
fn keep<const N: usize>(old: [u8; N], fetched: Option<&mut [u8]>) -> bool {
    if let Some(Ok(fetched)) = fetched.map(<&mut [u8; N]>::try_from) {
        *fetched = old;
    }
    true
}

fn keep_bytes(old: &[u8], fetched: Option<&mut [u8]>) -> bool {
    if let Some(fetched) = fetched.filter(|fetched| fetched.len() == old.len()) {
        fetched.copy_from_slice(old);
    }
    true
}

#[cfg(test)]
#[path = "mapped_tests.rs"]
mod tests;
