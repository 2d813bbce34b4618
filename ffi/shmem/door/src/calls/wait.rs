//! Waiting for one word of this PE's to change (OpenSHMEM 1.5 §9.11).

use std::ffi::c_int;
use std::sync::atomic::{AtomicI16, AtomicI32, AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::failure::{end_because, or_end};
use crate::world::world;

/// A comparison (`SHMEM_CMP_…`).
#[derive(Debug, Clone, Copy)]
pub enum Compare {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

impl Compare {
    /// The comparison of a constant of shmem.h.
    pub fn new(call: &'static str, cmp: c_int) -> Self {
        match cmp {
            1 => Self::Eq,
            2 => Self::Ne,
            3 => Self::Gt,
            4 => Self::Ge,
            5 => Self::Lt,
            6 => Self::Le,
            _ => end_because(
                call,
                &format!("a comparison of {cmp}: one of SHMEM_CMP_EQ, NE, GT, GE, LT, LE is meant"),
            ),
        }
    }

    fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Self::Eq => left == right,
            Self::Ne => left != right,
            Self::Gt => left > right,
            Self::Ge => left >= right,
            Self::Lt => left < right,
            Self::Le => left <= right,
        }
    }
}

/// Integers that others change.
pub trait Word: PartialOrd + Copy + std::fmt::Display + 'static {
    /// What is there now, and with it everything that was there before it.
    ///
    /// # Safety
    /// Valid for reads, and aligned; others write it whole.
    unsafe fn load(place: *mut Self) -> Self;
}

macro_rules! words {
    ($($ty:ty, $atomic:ty;)*) => { $(
        impl Word for $ty {
            #[inline(always)]
            unsafe fn load(place: *mut Self) -> Self {
                // SAFETY: by contract (AtomicI64::from_ptr and so on).
                unsafe { <$atomic>::from_ptr(place) }.load(Ordering::Acquire)
            }
        }
    )* };
}
words! { i16, AtomicI16; u16, AtomicU16; i32, AtomicI32; u32, AtomicU32; i64, AtomicI64; u64, AtomicU64; }

/// Whether a word is as wanted.
///
/// # Safety
/// As of [`Word::load`]; checked here for the alignment.
#[inline(always)]
pub unsafe fn holds<T: Word>(call: &'static str, place: *mut T, compare: Compare, value: T) -> bool {
    if place.is_null() || !place.is_aligned() {
        end_because(call, &format!("no word of {} bytes is at {place:p}", size_of::<T>()));
    }
    // SAFETY: by contract.
    compare.holds(unsafe { T::load(place) }, value)
}

/// `shmem_wait_until`.
#[inline(always)]
pub unsafe fn wait_until<T: Word>(call: &'static str, ivar: *mut T, cmp: c_int, value: T) {
    let compare = Compare::new(call, cmp);
    // SAFETY: by contract.
    if !unsafe { holds(call, ivar, compare, value) } {
        wait_longer(call, ivar, compare, value);
    }
}

#[inline(never)]
fn wait_longer<T: Word>(call: &'static str, ivar: *mut T, compare: Compare, value: T) {
    let what = || format!("the word at {ivar:p} to be {compare:?} {value}");
    // SAFETY: by the caller of the exported function, who waits.
    let ready = || Ok(unsafe { holds(call, ivar, compare, value) });
    or_end(call, world(call).shmem.await_that(call, &what, ready));
}

/// `shmem_wait`: until it is another.
pub unsafe fn wait<T: Word>(call: &'static str, ivar: *mut T, value: T) {
    // SAFETY: by contract. 2 is SHMEM_CMP_NE.
    unsafe { wait_until(call, ivar, 2, value) };
}

/// `shmem_test`.
pub unsafe fn test<T: Word>(call: &'static str, ivar: *mut T, cmp: c_int, value: T) -> c_int {
    let compare = Compare::new(call, cmp);
    // SAFETY: by contract.
    c_int::from(look_twice(call, || unsafe { holds(call, ivar, compare, value) }.then_some(())).is_some())
}

/// What `look` finds, at once or after others have been served.
pub fn look_twice<R>(call: &'static str, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    look().or_else(|| {
        or_end(call, world(call).shmem.progress());
        look()
    })
}

/// `shmem_signal_fetch`.
pub unsafe fn signal_fetch(call: &'static str, word: *const u64) -> u64 {
    if word.is_null() || !word.is_aligned() {
        end_because(call, &format!("no signal is at {word:p}"));
    }
    or_end(call, world(call).shmem.progress());
    // SAFETY: a signal of this PE's, by contract.
    unsafe { u64::load(word.cast_mut()) }
}

/// `shmem_signal_wait_until`.
pub unsafe fn signal_wait_until(call: &'static str, word: *mut u64, cmp: c_int, value: u64) -> u64 {
    // SAFETY: by contract.
    unsafe {
        wait_until(call, word, cmp, value);
        u64::load(word)
    }
}
