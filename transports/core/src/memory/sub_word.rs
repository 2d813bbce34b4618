//! Elements smaller than a word, many at once: one atomic instruction updates all that a word holds, each of them as a
//! whole. An atomic instruction for each would take most of the time.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::Stripes;
use crate::elements::cell::element;
use crate::{Basic, ReduceOp, TransportResult};

/// Up to so many bytes are replaced or read under the lock of their place, so that no thread sees a part of them: more than
/// the standard's atomicity, which is of single elements (MPI-4.1 §12.7.2), but programs send small structures as bytes.
const WHOLE: usize = 64;
/// Bytes of the widest word.
const WORD: usize = size_of::<u64>();

/// Whether several elements at `at` can be updated by the word: aligned, none of them lies in two.
pub(super) fn in_words<T: Basic>(at: *const u8, bytes: usize) -> bool {
    // Wider ones may have padding, and gain nothing.
    let size = size_of::<T>();
    bytes > size && matches!(size, 1 | 2 | 4) && (at as usize).is_multiple_of(size)
}

/// Applies `op` to the elements from `at` on, as many as `origin` has, in words; `fetched`, as long, receives what was there.
///
/// # Safety
/// `at` is valid for reads and writes of so many bytes, and all others that write there meanwhile do so by CPU atomics or
/// raw copies. [`in_words`] says yes.
pub(super) unsafe fn update<T: Basic>(
    locks: Option<(&Stripes, u64)>,
    op: ReduceOp,
    at: *mut u8,
    origin: &[u8],
    fetched: Option<&mut [u8]>,
) -> TransportResult<()> {
    let moves = matches!(op, ReduceOp::Replace | ReduceOp::NoOp);
    let _held = match locks {
        Some((stripes, place)) if moves && origin.len() <= WHOLE => Some(stripes.lock(place)),
        _ => None,
    };
    let head = ((at as usize).next_multiple_of(WORD) - at as usize).min(origin.len());
    let (first, rest) = origin.split_at(head);
    let (middle, last) = rest.split_at(rest.len() - rest.len() % WORD);
    let (to_first, to_rest) = split(fetched, head);
    let (to_middle, to_last) = split(to_rest, middle.len());
    // SAFETY: three parts of that for which `at` is valid; the second begins at a multiple of a word, for that is where the first
    // ends, unless it is empty.
    unsafe {
        parts::<T>(op, at, first, to_first);
        whole::<T>(op, at.add(head), middle, to_middle);
        parts::<T>(op, at.add(head + middle.len()), last, to_last);
    }
    Ok(())
}

fn split(fetched: Option<&mut [u8]>, at: usize) -> (Option<&mut [u8]>, Option<&mut [u8]>) {
    fetched.map(|fetched| fetched.split_at_mut(at)).unzip()
}

/// [`update`] of whole words.
///
/// # Safety
/// As for [`update`]; `at` is a multiple of a word, and `origin` is whole words.
unsafe fn whole<T: Basic>(op: ReduceOp, at: *mut u8, origin: &[u8], fetched: Option<&mut [u8]>) {
    /// # Safety
    /// As for [`whole`].
    #[inline(always)]
    unsafe fn each(
        at: *mut u8,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
        step: impl Fn(&AtomicU64, [u8; WORD]) -> u64,
    ) {
        let (words, _) = origin.as_chunks::<WORD>();
        // SAFETY: valid for the word, which is aligned (as for `parts`).
        let cell = |i: usize| unsafe { AtomicU64::from_ptr(at.add(i * WORD).cast()) };
        let Some(fetched) = fetched else {
            for (i, operands) in words.iter().enumerate() {
                step(cell(i), *operands);
            }
            return;
        };
        let (olds, _) = fetched.as_chunks_mut::<WORD>();
        for (i, (operands, old)) in words.iter().zip(olds).enumerate() {
            *old = step(cell(i), *operands).to_ne_bytes();
        }
    }
    // An operation known to the compiler makes one vector instruction for all the elements of a word.
    macro_rules! with_op {
        ($($op:ident)*) => { match op {
            // Nothing is fetched: a store is as atomic, and lock-free.
            ReduceOp::Replace if fetched.is_none() => each(at, origin, None, |cell, operands| {
                cell.store(u64::from_ne_bytes(operands), Ordering::Release);
                0
            }),
            ReduceOp::Replace => each(at, origin, fetched, |cell, operands| {
                cell.swap(u64::from_ne_bytes(operands), Ordering::AcqRel)
            }),
            ReduceOp::NoOp => each(at, origin, fetched, |cell, _| cell.load(Ordering::Acquire)),
            $(ReduceOp::$op => each(at, origin, fetched, |cell, operands| {
                change(cell, |word| reduce::<T>(ReduceOp::$op, word, &operands))
            }),)*
        } };
    }
    // SAFETY: by contract, whatever the operation.
    unsafe { with_op!(Sum Prod Min Max Land Lor Lxor Band Bor Bxor MinLoc MaxLoc) }
}

/// Changes a word as a whole; returns what was there.
#[inline(always)]
fn change(cell: &AtomicU64, change: impl Fn(&mut [u8; WORD])) -> u64 {
    let mut was = cell.load(Ordering::Relaxed);
    loop {
        let mut new = was.to_ne_bytes();
        change(&mut new);
        let new = u64::from_ne_bytes(new);
        match cell.compare_exchange_weak(was, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return was,
            Err(now) => was = now,
        }
    }
}

/// [`update`] of less than a word, in the widest pieces that fit.
///
/// # Safety
/// As for [`update`].
unsafe fn parts<T: Basic>(op: ReduceOp, at: *mut u8, origin: &[u8], mut fetched: Option<&mut [u8]>) {
    let mut done = 0;
    while let Some(rest) = origin.get(done..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `done` is below the length, for which `at` is valid.
        let here = unsafe { at.add(done) };
        let fits = |width: &usize| *width <= rest.len() && (here as usize).is_multiple_of(*width);
        let width = [4, 2].into_iter().find(fits).unwrap_or(1);
        let mut old = [0; WORD / 2];
        macro_rules! step {
            ($word:ty, $atomic:ty) => {{
                // SAFETY: valid for the word, which is aligned. Others update parts of it, or more, by atomics of their own
                // width, also from other processes: the language has no rule for that (std::sync::atomic, "Memory model"),
                // processors do: aligned ones within 8 bytes exclude each other whatever their widths.
                let cell = unsafe { <$atomic>::from_ptr(here.cast()) };
                let mut operands = [0; size_of::<$word>()];
                operands.copy_from_slice(&rest[..width]);
                let was = match op {
                    ReduceOp::Replace => cell.swap(<$word>::from_ne_bytes(operands), Ordering::AcqRel),
                    ReduceOp::NoOp => cell.load(Ordering::Acquire),
                    _ => loop {
                        let was = cell.load(Ordering::Acquire);
                        let mut new = was.to_ne_bytes();
                        reduce::<T>(op, &mut new, &operands);
                        let new = <$word>::from_ne_bytes(new);
                        if cell.compare_exchange(was, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                            break was;
                        }
                    },
                };
                old[..width].copy_from_slice(&was.to_ne_bytes());
            }};
        }
        match width {
            4 => step!(u32, AtomicU32),
            2 => step!(u16, AtomicU16),
            _ => step!(u8, AtomicU8),
        }
        if let Some(to) = fetched.as_mut().and_then(|fetched| fetched.get_mut(done..done + width)) {
            to.copy_from_slice(&old[..width]);
        }
        done += width;
    }
}

/// `elements = elements op operands`.
#[inline(always)]
fn reduce<T: Basic>(op: ReduceOp, elements: &mut [u8], operands: &[u8]) {
    let size = size_of::<T>();
    for (at, operand) in elements.chunks_exact_mut(size).zip(operands.chunks_exact(size)) {
        at.copy_from_slice(T::reduce(op, element(at), element(operand)).as_bytes());
    }
}
