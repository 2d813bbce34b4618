//! Replacing and reading many small elements: whatever their type, these move bytes, so that a word of the CPU takes several
//! elements at once, each of which is still replaced or read as a whole.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::Stripes;
use crate::{DataType, ReduceOp, TransportResult};

/// Up to so many bytes are replaced or read under the lock of their place, so that nobody sees a part of them: more than the
/// standard's atomicity, which is of single elements (MPI-4.1 §12.7.2), but programs send small structures as bytes.
const TOGETHER: usize = 64;

/// Whether elements of `ty` at `at` can be replaced or read in words: none of them, aligned, lies in two.
pub(super) fn in_words(op: ReduceOp, ty: DataType, at: *const u8, bytes: usize) -> bool {
    let moves = matches!(op, ReduceOp::Replace | ReduceOp::NoOp);
    // Wider ones may have padding, and gain nothing.
    moves && bytes > ty.size() && matches!(ty.size(), 1 | 2 | 4) && (at as usize).is_multiple_of(ty.size())
}

/// Replaces (or, with [`ReduceOp::NoOp`], reads) as many bytes as `origin` has; `fetched`, as long, receives what was there.
///
/// # Safety
/// `at` is valid for reads and writes of so many bytes, and everybody else who writes there meanwhile does so by CPU atomics
/// or raw copies.
pub(super) unsafe fn replace(
    locks: Option<(&Stripes, u64)>,
    op: ReduceOp,
    at: *mut u8,
    origin: &[u8],
    mut fetched: Option<&mut [u8]>,
) -> TransportResult<()> {
    let _held = match locks {
        Some((stripes, place)) if origin.len() <= TOGETHER => Some(stripes.lock(place)?),
        _ => None,
    };
    let mut done = 0;
    while let Some(rest) = origin.get(done..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `done` is below the length, for which `at` is valid.
        let here = unsafe { at.add(done) };
        let fits = |width: &usize| *width <= rest.len() && (here as usize).is_multiple_of(*width);
        let width = [8, 4, 2].into_iter().find(fits).unwrap_or(1);
        let mut old = [0; 8];
        macro_rules! step {
            ($word:ty, $atomic:ty) => {{
                // SAFETY: valid for the word, which is aligned; accesses by others as the contract says
                // (std::sync::atomic, "Memory model").
                let cell = unsafe { <$atomic>::from_ptr(here.cast()) };
                let mut new = [0; size_of::<$word>()];
                new.copy_from_slice(&rest[..width]);
                let was = match op {
                    ReduceOp::Replace => cell.swap(<$word>::from_ne_bytes(new), Ordering::AcqRel),
                    _ => cell.load(Ordering::Acquire),
                };
                old[..width].copy_from_slice(&was.to_ne_bytes());
            }};
        }
        match width {
            8 => step!(u64, AtomicU64),
            4 => step!(u32, AtomicU32),
            2 => step!(u16, AtomicU16),
            _ => step!(u8, AtomicU8),
        }
        if let Some(to) = fetched.as_mut().and_then(|fetched| fetched.get_mut(done..done + width)) {
            to.copy_from_slice(&old[..width]);
        }
        done += width;
    }
    Ok(())
}
