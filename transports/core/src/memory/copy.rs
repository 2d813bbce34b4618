//! Put and get on mapped memory.

use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::stream::{LONG, copy_long, copy_past_caches};
use super::{Span, Stores};
use crate::TransportResult;

impl Span {
    /// Copies `data` to `offset`: a put.
    #[inline]
    pub fn copy_in(&self, offset: usize, data: &[u8]) -> TransportResult<()> {
        let to = self.at(offset, data.len())?;
        // SAFETY: `to` is valid for data.len() bytes (checked above, kept alive by `owner`); `data` is a
        // valid slice.
        unsafe { copy_small(data.as_ptr(), to, data.len()) };
        Ok(())
    }

    /// The same by such stores, if the CPU has them. `data` is no part of this memory.
    pub fn copy_in_by(&self, stores: Stores, offset: usize, data: &[u8]) -> TransportResult<()> {
        let to = self.at(offset, data.len())?;
        // SAFETY: as in copy_in; whoever has this memory as a slice has it for itself, so `data` is elsewhere.
        unsafe {
            match stores {
                Stores::Cached => ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()),
                Stores::PastCaches => copy_past_caches(data.as_ptr(), to, data.len()),
            }
        }
        Ok(())
    }

    /// Copies from `offset` into `data`: a get.
    #[inline]
    pub fn copy_out(&self, offset: usize, data: &mut [u8]) -> TransportResult<()> {
        let from = self.at(offset, data.len())?;
        // SAFETY: as in copy_in, with the roles exchanged; `data` is exclusively ours.
        unsafe { copy_small(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }
}

/// Copies `len` bytes as [`copy_small`], first of all a word: what programs do most.
///
/// # Safety
/// As for [`copy_small`].
#[inline(always)]
pub(super) unsafe fn copy_word_or(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len == size_of::<u64>() {
        // SAFETY: both are valid for 8 bytes by contract. One load and one store, which are a whole each if they are aligned
        // (Intel SDM vol. 3, §9.1.1), whatever other threads and processes do there, and allowed if they are not.
        unsafe {
            std::arch::asm!(
                "mov {word}, qword ptr [{from}]",
                "mov qword ptr [{to}], {word}",
                word = out(reg) _, from = in(reg) from, to = in(reg) to,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: the same contract.
    unsafe { copy_otherwise(from, to, len) };
}

/// # Safety
/// As for [`copy_small`].
// Cold for its place in the code only.
#[cold]
#[inline(never)]
unsafe fn copy_otherwise(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the same contract.
    unsafe { copy_small(from, to, len) }
}

/// Copies `len` bytes; 1, 2, 4 and 8 aligned bytes as one store.
///
/// # Safety
/// `from` must be valid for reads and `to` for writes of `len` bytes.
#[inline]
unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! one {
        ($word:ty, $atomic:ty) => {{
            if (from as usize | to as usize).is_multiple_of(size_of::<$word>()) {
                // SAFETY: both are valid for `len` bytes by contract and aligned as just checked; an atomic
                // of the size may be used on any such memory (std::sync::atomic, "Memory model").
                unsafe {
                    let value = <$atomic>::from_ptr(from.cast_mut().cast()).load(Ordering::Relaxed);
                    <$atomic>::from_ptr(to.cast()).store(value, Ordering::Release);
                }
                return;
            }
        }};
    }
    match len {
        8 => one!(u64, AtomicU64),
        4 => one!(u32, AtomicU32),
        2 => one!(u16, AtomicU16),
        1 => one!(u8, AtomicU8),
        _ => {}
    }
    // SAFETY: valid for `len` bytes by contract; both allow overlap.
    unsafe { if len < LONG { ptr::copy(from, to, len) } else { copy_long(from, to, len) } }
}
