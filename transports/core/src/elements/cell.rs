//! Elements of up to 8 bytes that have no atomic instruction of their own: compare-and-exchange of the word
//! they fill.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::Basic;
use crate::ReduceOp;

/// Whether the CPU has an atomic for an element of `size` bytes at `at`.
///
/// The same in every process: mappings are aligned to pages, so they agree on the address modulo 8.
#[inline]
pub(crate) fn has_cell(at: *const u8, size: usize) -> bool {
    size <= 8 && (at as usize).is_multiple_of(size)
}

/// The element that `bytes`, as many as it has, are.
#[inline]
pub(crate) fn element<T: Basic>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).unwrap_or_else(|_| T::new_zeroed())
}

/// Body of [`Update::update`](super::sealed::Update::update) by compare-and-exchange.
///
/// # Safety
/// As there.
#[inline]
pub(super) unsafe fn exchange<T: Basic>(at: *mut u8, op: ReduceOp, origin: T) -> Option<T> {
    if !has_cell(at, size_of::<T>()) {
        return None;
    }
    macro_rules! word {
        ($word:ty, $atomic:ty) => {{
            // SAFETY: valid for an element of this size by contract and aligned as just checked; accesses by
            // others are CPU atomics or raw copies that MPI-4.1 §12.7 makes undefined in value only
            // (std::sync::atomic, "Memory model").
            let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
            let mut old = cell.load(Ordering::Acquire);
            if op == ReduceOp::NoOp {
                return Some(element(&old.to_ne_bytes()));
            }
            loop {
                let value: T = element(&old.to_ne_bytes());
                let mut new = [0; size_of::<$word>()];
                new.copy_from_slice(T::reduce(op, value, origin).as_bytes());
                let new = <$word>::from_ne_bytes(new);
                match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(value),
                    Err(now) => old = now,
                }
            }
        }};
    }
    match size_of::<T>() {
        1 => word!(u8, AtomicU8),
        2 => word!(u16, AtomicU16),
        4 => word!(u32, AtomicU32),
        8 => word!(u64, AtomicU64),
        _ => None,
    }
}

/// `if bytes == compare { bytes = origin }` as one CPU atomic, with what was there in `old`; all three are as
/// long. False, and nothing is done, where the CPU has no atomic for it.
///
/// # Safety
/// As [`Update::update`](super::sealed::Update::update), for `compare.len()` bytes.
pub(crate) unsafe fn compare_swap(at: *mut u8, compare: &[u8], origin: &[u8], old: &mut [u8]) -> bool {
    if !has_cell(at, compare.len()) {
        return false;
    }
    macro_rules! word {
        ($word:ty, $atomic:ty) => {{
            let (Ok(compare), Ok(origin)) = (compare.try_into(), origin.try_into()) else { return false };
            let (compare, origin) = (<$word>::from_ne_bytes(compare), <$word>::from_ne_bytes(origin));
            // SAFETY: as in `exchange`.
            let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
            let (Ok(was) | Err(was)) =
                cell.compare_exchange(compare, origin, Ordering::AcqRel, Ordering::Acquire);
            old.copy_from_slice(&was.to_ne_bytes());
            true
        }};
    }
    match compare.len() {
        1 => word!(u8, AtomicU8),
        2 => word!(u16, AtomicU16),
        4 => word!(u32, AtomicU32),
        8 => word!(u64, AtomicU64),
        _ => false,
    }
}

/// [`Basic`], by compare-and-exchange, for a type with `$reduce` (operation, target, origin).
macro_rules! basic {
    ($t:ty, $ty:ident, $reduce:expr) => {
        impl $crate::elements::sealed::Update for $t {
            #[inline]
            unsafe fn update(at: *mut u8, op: $crate::ReduceOp, origin: Self) -> Option<Self> {
                // SAFETY: the same contract.
                unsafe { $crate::elements::cell::exchange(at, op, origin) }
            }
        }

        impl $crate::Basic for $t {
            const TYPE: $crate::DataType = $crate::DataType::$ty;

            #[inline]
            fn reduce(op: $crate::ReduceOp, target: Self, origin: Self) -> Self {
                let reduce: fn($crate::ReduceOp, Self, Self) -> Self = $reduce;
                reduce(op, target, origin)
            }
        }
    };
}
pub(super) use basic;
