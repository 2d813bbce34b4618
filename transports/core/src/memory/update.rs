//! Accumulates on mapped memory: elements of every type at any address, each updated atomically.
//!
//! An element of up to 8 bytes that is aligned to its size is updated by a CPU atomic; any other under the lock of its
//! place ([`Stripes`]). The rule depends on the type and the address modulo 8 only, which is the same in every process
//! because mappings are aligned to pages: so all ranks take the same path to one element. Many small ones are updated by
//! the word (`sub_word.rs`).

use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::reduce::reduce_exclusive;
use super::{Span, Stripes, sub_word};
use crate::elements::cell::{self, element};
use crate::{
    Basic, DataType, ReduceOp, Swappable, TransportError, TransportResult, reduce_valid, swap_valid,
    with_basic,
};

impl Span {
    /// Applies `op` to the elements of `ty` from `offset` on, each atomically to all other updates by this
    /// method, by [`Span::compare_swap_bytes`], and, on aligned numbers, by [`Span::fetch_op`] and
    /// [`Span::compare_swap`].
    ///
    /// `origin` holds the operands, whole elements of any alignment; `fetched`, if given, is as long and
    /// receives what was there. `place` is the place of the first element (see [`Stripes`]). Padding at the
    /// target stays as it is, and is anything in `fetched`.
    ///
    /// # Errors
    /// The standard does not define `op` on `ty`; lengths are wrong; elements lie outside. Nothing is done
    /// then.
    #[allow(clippy::too_many_arguments, reason = "all of them are the operation")]
    pub fn update(
        &self,
        stripes: &Stripes,
        place: u64,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        if !reduce_valid(op, ty) {
            return Err(TransportError::Undefined { operation: format!("{op:?}"), ty });
        }
        with_basic!(ty, T => self.update_as::<T>(Some((stripes, place)), op, offset, origin, fetched))
    }

    /// [`Span::update`] of one element, known at compile time; returns what was there. None, and nothing is done, where it
    /// needs a lock: use [`Span::update`].
    ///
    /// # Errors
    /// The element lies outside.
    #[inline]
    pub fn update_one<T: Basic>(&self, offset: usize, op: ReduceOp, origin: T) -> TransportResult<Option<T>> {
        let at = self.at(offset, size_of::<T>())?;
        // SAFETY: `at` is valid for an element (Span::at), alive as long as `self`; memory of spans is written by CPU
        // atomics and raw copies only (module documentation).
        Ok(unsafe { T::update(at, op, origin) })
    }

    /// Stores `origin` if the element at `offset` has the bytes of `compare`, as one CPU atomic; returns what was there.
    /// None, and nothing is done, where it needs a lock: use [`Span::compare_swap_bytes`].
    ///
    /// # Errors
    /// The element lies outside.
    #[inline]
    pub fn compare_swap_one<T: Swappable>(
        &self,
        offset: usize,
        compare: T,
        origin: T,
    ) -> TransportResult<Option<T>> {
        let at = self.at(offset, size_of::<T>())?;
        // SAFETY: as in `update_one`.
        Ok(unsafe { compare_swap_at(at, compare, origin) })
    }

    /// [`Span::update`] where no locks are at hand: elements that need one are refused.
    ///
    /// # Errors
    /// Elements are wider than 8 bytes or not aligned to their size; lengths are wrong; elements lie outside.
    pub fn apply(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        with_basic!(ty, T => self.update_as::<T>(None, op, offset, origin, fetched))
    }

    /// Stores `origin` if the element of `ty` at `offset` has the bytes of `compare`, atomically as
    /// [`Span::update`]; `old` receives what was there. All three are one element long.
    ///
    /// # Errors
    /// The standard does not define it on `ty` ([`swap_valid`]); lengths are wrong; the element lies outside.
    #[allow(clippy::too_many_arguments, reason = "all of them are the operation")]
    pub fn compare_swap_bytes(
        &self,
        stripes: &Stripes,
        place: u64,
        ty: DataType,
        offset: usize,
        compare: &[u8],
        origin: &[u8],
        old: &mut [u8],
    ) -> TransportResult<()> {
        if !swap_valid(ty) {
            return Err(TransportError::Undefined { operation: "compare-and-swap".into(), ty });
        }
        let size = ty.size();
        let at = self.at(offset, size)?;
        if compare.len() != size || origin.len() != size || old.len() != size {
            return Err(TransportError::Range { offset, bytes: size, len: self.len() });
        }
        // SAFETY: `at` is valid for an element (Span::at), alive as long as `self`; memory of spans is
        // written by CPU atomics and raw copies only (module documentation).
        if unsafe { cell::compare_swap(at, compare, origin, old) } {
            return Ok(());
        }
        let _held = stripes.lock(place);
        // SAFETY: as above for `at`; the slices are as long as the element and exclusively ours or read-only. No other
        // thread updates the element while its lock is held.
        unsafe {
            ptr::copy_nonoverlapping(at.cast_const(), old.as_mut_ptr(), size);
            if old == compare {
                ptr::copy_nonoverlapping(origin.as_ptr(), at, size);
            }
        }
        Ok(())
    }

    /// [`Span::update`] for a caller with exclusive access to these elements: plain loads and stores, many elements at a
    /// time.
    ///
    /// # Errors
    /// `origin` is not whole elements; elements lie outside.
    pub fn apply_exclusive(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        origin: &[u8],
    ) -> TransportResult<()> {
        let target = self.at(offset, origin.len())?;
        if !ty.divides(origin.len()) {
            return Err(TransportError::Range { offset, bytes: origin.len(), len: self.len() });
        }
        // SAFETY: `target` is in bounds for as many whole elements as `origin` holds, as just checked; the caller has exclusive
        // access.
        unsafe { reduce_exclusive(op, ty, target, origin) };
        Ok(())
    }

    fn update_as<T: Basic>(
        &self,
        locks: Option<(&Stripes, u64)>,
        op: ReduceOp,
        offset: usize,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        let size = size_of::<T>();
        let whole =
            origin.len().is_multiple_of(size) && fetched.as_ref().is_none_or(|f| f.len() == origin.len());
        let (true, Ok(start)) = (whole, self.at(offset, origin.len())) else {
            return Err(TransportError::Range { offset, bytes: origin.len(), len: self.len() });
        };
        if sub_word::in_words::<T>(start, origin.len()) {
            // SAFETY: in bounds (Span::at), alive as long as `self`; memory of spans is written by CPU atomics and raw copies only.
            return unsafe { sub_word::update::<T>(locks, op, start, origin, fetched) };
        }
        let mut results = fetched.map(|f| f.chunks_exact_mut(size));
        for (i, operand) in origin.chunks_exact(size).enumerate() {
            let operand = element(operand);
            // SAFETY: i is below the number of whole elements in bounds (Span::at), alive as long as `self`.
            let at = unsafe { start.add(i * size) };
            // SAFETY: valid as just said; memory of spans is written by CPU atomics and raw copies only.
            let old = match (unsafe { T::update(at, op, operand) }, locks) {
                (Some(old), _) => old,
                (None, Some((stripes, place))) => {
                    let _held = stripes.lock(place.wrapping_add((i * size) as u64));
                    // SAFETY: as above; no other thread updates the element while its lock is held.
                    unsafe { update_plain(at, op, operand) }
                }
                (None, None) => return Err(Stripes::missing(self, offset, size)),
            };
            if let Some(result) = results.as_mut().and_then(Iterator::next) {
                result.copy_from_slice(old.as_bytes());
            }
        }
        Ok(())
    }
}

/// Stores `origin` if the element at `at` has the bytes of `compare`, as one CPU atomic; returns what was there. None, and nothing is
/// done, where the CPU has no atomic for it.
///
/// # Safety
/// `at` is valid for an element, and all others that write there meanwhile do so by CPU atomics or raw copies.
#[inline(always)]
pub(super) unsafe fn compare_swap_at<T: Swappable>(at: *mut u8, compare: T, origin: T) -> Option<T> {
    if !cell::has_cell(at, size_of::<T>()) {
        return None;
    }
    macro_rules! as_word {
        ($word:ty, $atomic:ty) => {{
            // SAFETY: valid by contract, and aligned as just checked (std::sync::atomic, "Memory model").
            let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
            let (compare, origin) = (convert::<T, $word>(compare), convert::<T, $word>(origin));
            let (Ok(old) | Err(old)) =
                cell.compare_exchange(compare, origin, Ordering::AcqRel, Ordering::Acquire);
            Some(convert(old))
        }};
    }
    match size_of::<T>() {
        1 => as_word!(u8, AtomicU8),
        2 => as_word!(u16, AtomicU16),
        4 => as_word!(u32, AtomicU32),
        8 => as_word!(u64, AtomicU64),
        _ => None,
    }
}

/// The element that begins with the first of some bytes, which are as long.
#[inline(always)]
pub(super) fn element_of<T: Basic>(bytes: &[u8]) -> T {
    element(bytes)
}

/// The value with the same bytes; both types have the same size.
#[inline(always)]
fn convert<A: Basic, B: Basic>(value: A) -> B {
    element(value.as_bytes())
}

/// `element = element op origin` by plain loads and stores, which leave padding alone; returns what was there.
///
/// # Safety
/// `at` is valid for reads and writes of an element, which no other thread updates meanwhile.
#[inline]
pub(super) unsafe fn update_plain<T: Basic>(at: *mut u8, op: ReduceOp, origin: T) -> T {
    // SAFETY: valid by contract; every bit pattern is a T (FromBytes).
    let old = unsafe { at.cast::<T>().read_unaligned() };
    if op != ReduceOp::NoOp {
        let new = T::reduce(op, old, origin);
        for (start, len) in T::TYPE.fields() {
            // SAFETY: fields lie inside the element; `new` is a local.
            unsafe { ptr::copy_nonoverlapping(new.as_bytes().as_ptr().add(*start), at.add(*start), *len) };
        }
    }
    old
}
