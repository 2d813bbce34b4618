//! A target's part of a window as this process maps it: all that an operation on consecutive elements needs, in a cache
//! line. What is not plain (outside, misaligned, under a lock, wider than the CPU's atomics) is refused without being done.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::copy::copy_word_or;
use super::reduce::reduce_exclusive;
use super::sections::{Section, Sections};
use super::update::{compare_swap_at, element_of};
use super::{Reduction, Span, Updates};
use crate::{Basic, DataType, ReduceOp, Swappable, reduce_valid, swap_valid, with_basic};

/// Mapped memory of a target, and whether it may be accessed now. Vacant at first, then for good one target's.
#[derive(Debug)]
#[repr(C)]
pub struct Mapped {
    /// Twice the target's number while it is covered, and one more if passively.
    tag: AtomicUsize,
    /// Read only by who has seen a tag that covers the target.
    memory: UnsafeCell<Memory>,
    /// What `memory` leads into: there before anything is covered.
    kept: OnceLock<Box<Kept>>,
}

// SAFETY: `memory` is written once, in `fill`, before `kept` is there; it is read after the acquiring load of a tag that was stored
// after that (Mapped::cover, Mapped::covered). What it points to is kept by `kept`, which is Send + Sync, and used for copies and
// atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// Mapped memory, addressed by displacements.
#[derive(Debug)]
#[repr(C)]
pub struct Memory {
    start: NonNull<u8>,
    len: usize,
    unit: usize,
    /// The last displacement that is inside: what is multiplied after a comparison with it does not overflow.
    last: usize,
    /// The word that says how elements are updated, if this process may update them.
    state: Option<NonNull<AtomicU32>>,
    kept: NonNull<Kept>,
}

#[derive(Debug)]
struct Kept {
    target: usize,
    memory: Span,
    updates: Option<Arc<Updates>>,
}

/// The tag of a target that is not covered: that of a neighbour, who never looks here. One more while it is nobody's.
#[inline(always)]
fn uncovered(target: usize) -> Option<usize> {
    twice(target ^ 1)
}

#[inline(always)]
fn passive(target: usize) -> Option<usize> {
    Some(twice(target)? | 1)
}

/// Twice a number, which is another for every number that has a double.
#[inline(always)]
fn twice(target: usize) -> Option<usize> {
    // With a sign: then nothing is left of the check where ranks are C's integers.
    Some(target.cast_signed().checked_mul(2)?.cast_unsigned())
}

impl Mapped {
    /// Of targets whose numbers leave `index` as a remainder of an even number, of which none is covered.
    pub fn new(index: usize) -> Self {
        let memory = Memory {
            start: NonNull::dangling(),
            len: 0,
            unit: 0,
            last: 0,
            state: None,
            kept: NonNull::dangling(),
        };
        let tag = AtomicUsize::new((index ^ 1) << 1 | 1);
        Self { tag, memory: UnsafeCell::new(memory), kept: OnceLock::new() }
    }

    /// Is a target's from now on: the first `len` bytes of `memory`, in displacement units of `unit` bytes. Elements are updated by
    /// `updates`; without them every update is refused. Nothing happens if it is somebody's already.
    pub fn fill(
        &self,
        target: usize,
        memory: Span,
        (len, unit): (usize, usize),
        updates: Option<Arc<Updates>>,
    ) {
        let mut filled = false;
        let kept = self.kept.get_or_init(|| {
            filled = true;
            let (len, unit) = (len.min(memory.len()), unit.max(1));
            let kept = Box::new(Kept { target, memory, updates });
            let new = Memory {
                start: NonNull::new(kept.memory.address() as *mut u8).unwrap_or(NonNull::dangling()),
                len,
                unit,
                last: len / unit,
                state: kept.updates.as_ref().map(|updates| NonNull::from(updates.state())),
                kept: NonNull::from(&*kept),
            };
            // SAFETY: OnceLock runs this once, alone; nobody reads it before `kept` is there (see `Sync`).
            unsafe { *self.memory.get() = new };
            kept
        });
        if let Some(tag) = uncovered(kept.target).filter(|_| filled) {
            self.tag.store(tag, Ordering::Release);
        }
    }

    /// Whose it is.
    pub fn target(&self) -> Option<usize> {
        self.kept.get().map(|kept| kept.target)
    }

    /// A target whose it is may be accessed from now on, passively or not, if it could not be before.
    #[inline(always)]
    pub fn cover(&self, target: usize, passively: bool) {
        // Of nobody's this is not the tag, so that it is filled.
        if self.is_free(target) {
            self.tag.store(target << 1 | usize::from(passively), Ordering::Release);
        }
    }

    /// A target whose it is may not be accessed any more.
    #[inline(always)]
    pub fn uncover(&self, target: usize) {
        if self.covered(target).is_some() {
            self.tag.store((target ^ 1) << 1, Ordering::Release);
        }
    }

    /// The memory of a target that may be accessed.
    #[inline(always)]
    pub fn covered(&self, target: usize) -> Option<&Memory> {
        // SAFETY: the tag was stored after the memory, with release (Mapped::cover, after the acquiring load of one stored in `fill`).
        (self.tag.load(Ordering::Acquire) >> 1 == target).then(|| unsafe { &*self.memory.get() })
    }

    /// The same if it may be passively.
    #[inline(always)]
    pub fn covered_passively(&self, target: usize) -> Option<&Memory> {
        // SAFETY: as in `covered`.
        self.is_covered_passively(target).then(|| unsafe { &*self.memory.get() })
    }

    /// Whether a target may be accessed passively.
    #[inline(always)]
    pub fn is_covered_passively(&self, target: usize) -> bool {
        Some(self.tag.load(Ordering::Acquire)) == passive(target)
    }

    /// Whether it is a target's, which may not be accessed.
    #[inline(always)]
    pub fn is_free(&self, target: usize) -> bool {
        Some(self.tag.load(Ordering::Acquire)) == uncovered(target)
    }
}

impl Memory {
    /// Byte offset of `bytes` bytes at a displacement, if they are inside, and there are any.
    #[inline(always)]
    fn offset(&self, displacement: usize, bytes: usize) -> Option<usize> {
        if displacement > self.last {
            return None;
        }
        let offset = displacement.wrapping_mul(self.unit);
        (bytes.wrapping_sub(1) < self.len.wrapping_sub(offset)).then_some(offset)
    }

    #[inline(always)]
    fn at(&self, displacement: usize, bytes: usize) -> Option<*mut u8> {
        let offset = self.offset(displacement, bytes)?;
        // SAFETY: displacement <= len / unit, so offset <= len, and then offset + bytes <= len with bytes > 0 (Memory::offset): inside
        // the kept span, which has no less than `len` (Mapped::fill, ptr::add).
        Some(unsafe { self.start.as_ptr().add(offset) })
    }

    /// Copies `data` there: a put. False, and nothing is done, if it does not fit or is empty.
    #[inline(always)]
    pub fn put(&self, displacement: usize, data: &[u8]) -> bool {
        // SAFETY: a valid slice.
        unsafe { self.put_from(displacement, data.as_ptr(), data.len()) }
    }

    /// Copies from there to `data`: a get. False, and nothing is done, if it does not fit or is empty.
    #[inline(always)]
    pub fn get(&self, displacement: usize, data: &mut [u8]) -> bool {
        // SAFETY: a valid slice, exclusively ours.
        unsafe { self.get_to(displacement, data.as_mut_ptr(), data.len()) }
    }

    /// [`Memory::put`] of `bytes` bytes at `from`.
    ///
    /// # Safety
    /// If the memory here has as many bytes, `from` is valid for reads of them.
    #[inline(always)]
    pub unsafe fn put_from(&self, displacement: usize, from: *const u8, bytes: usize) -> bool {
        let Some(to) = self.at(displacement, bytes) else { return false };
        // SAFETY: `to` is valid for as many bytes (Memory::at), kept by the span; `from` by contract.
        unsafe { copy_word_or(from, to, bytes) };
        true
    }

    /// [`Memory::get`] of `bytes` bytes to `to`.
    ///
    /// # Safety
    /// If the memory here has as many bytes, `to` is valid for writes of them.
    #[inline(always)]
    pub unsafe fn get_to(&self, displacement: usize, to: *mut u8, bytes: usize) -> bool {
        let Some(from) = self.at(displacement, bytes) else { return false };
        // SAFETY: as in `put_from`, with the roles exchanged.
        unsafe { copy_word_or(from, to, bytes) };
        true
    }

    /// Enters where elements are updated by atomic instructions, if they are.
    #[inline(always)]
    fn enter<'a>(&self, sections: &'a Sections) -> Option<Section<'a>> {
        // SAFETY: inside the kept updates, which live as long as `self`.
        let state = unsafe { self.state?.as_ref() };
        let section = sections.enter();
        Updates::is_atomic(state).then_some(section)
    }

    /// The same for a thread whose word is the first that is looked at.
    #[inline(always)]
    fn enter_first<'a>(&self, sections: &'a Sections) -> Option<Section<'a>> {
        // SAFETY: as in `enter`.
        let state = unsafe { self.state?.as_ref() };
        let section = sections.enter_first()?;
        Updates::is_atomic(state).then_some(section)
    }

    /// An aligned word, to be updated inside a section.
    #[inline(always)]
    fn word(&self, displacement: usize) -> Option<&AtomicU64> {
        let at = self.at(displacement, size_of::<u64>())?;
        if at as usize & (size_of::<u64>() - 1) != 0 {
            return None;
        }
        // SAFETY: valid for a word (Memory::at) and aligned as just checked; others access it by atomics or raw copies
        // (std::sync::atomic, "Memory model").
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// Adds to an aligned word; returns what was there. None, and nothing is done, where that cannot be at once.
    #[inline(always)]
    pub fn add(&self, sections: &Sections, displacement: usize, operand: u64) -> Option<u64> {
        let word = self.word(displacement)?;
        let _inside = self.enter_first(sections)?;
        Some(word.fetch_add(operand, Ordering::AcqRel))
    }

    /// Stores `value` in an aligned word if that is `compare`; returns what was there. None as of [`Memory::add`].
    #[inline(always)]
    pub fn swap(&self, sections: &Sections, displacement: usize, compare: u64, value: u64) -> Option<u64> {
        let word = self.word(displacement)?;
        let _inside = self.enter_first(sections)?;
        let (Ok(old) | Err(old)) = word.compare_exchange(compare, value, Ordering::AcqRel, Ordering::Acquire);
        Some(old)
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
        // SAFETY: valid for an element (Memory::at); memory of spans is written by CPU atomics and raw copies only.
        unsafe { T::update(at, op, operand) }
    }

    /// Stores `value` if the element has the bytes of `compare`, by one CPU atomic; returns what was there. None, and nothing
    /// is done, where that cannot be.
    #[inline(always)]
    pub fn compare_swap_one<T: Swappable>(
        &self,
        sections: &Sections,
        displacement: usize,
        (compare, value): (T, T),
    ) -> Option<T> {
        let at = self.at(displacement, size_of::<T>())?;
        let _inside = self.enter(sections)?;
        // SAFETY: as in `update_one`.
        unsafe { compare_swap_at(at, compare, value) }
    }

    /// Updates whole elements of `ty` by `operands`; what was there goes to `fetched`, if that is given, which is as long.
    /// False, and nothing is done, where that cannot be without more ado.
    #[inline(never)]
    pub fn update(
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
        if operands.is_empty() {
            return false;
        }
        if operands.len() != ty.size() {
            let what = Reduction { op, ty, operands };
            return match fetched {
                None if self.update_locked(displacement, what) => true,
                fetched => self.update_many(sections, displacement, what, fetched),
            };
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

    /// Several elements of a window that has switched to locks, where one lock is for all of them.
    #[inline]
    fn update_locked(&self, displacement: usize, what: Reduction<'_>) -> bool {
        let Reduction { op, ty, operands } = what;
        // SAFETY: what is kept lives as long as `self`, and is not changed.
        let Kept { updates: Some(updates), .. } = (unsafe { self.kept.as_ref() }) else {
            return false;
        };
        let Some(offset) = self.offset(displacement, operands.len()).filter(|_| ty.divides(operands.len()))
        else {
            return false;
        };
        let Some(_held) = updates.lock_all(offset as u64, operands.len()) else { return false };
        // SAFETY: inside the kept span (Memory::offset); whoever else updates the elements waits for the lock.
        unsafe { reduce_exclusive(op, ty, self.start.as_ptr().add(offset), operands) };
        true
    }

    /// Several elements, if the window need not switch to locks for them.
    fn update_many(
        &self,
        sections: &Sections,
        displacement: usize,
        what: Reduction<'_>,
        fetched: Option<&mut [u8]>,
    ) -> bool {
        // SAFETY: what is kept lives as long as `self`, and is not changed.
        let Kept { memory, updates: Some(updates), .. } = (unsafe { self.kept.as_ref() }) else {
            return false;
        };
        if updates.is_due(what.operands.len()) {
            return false;
        }
        updates.count(what.operands.len());
        let Some(offset) = self.offset(displacement, what.operands.len()) else { return false };
        updates.many(sections, memory, offset as u64, offset, what, fetched).is_ok()
    }

    /// [`Memory::compare_swap_one`] of an element of `ty`: what was there goes to `old`. All three are one element long.
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
                match self.compare_swap_one(sections, displacement, (compare, value)) {
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
