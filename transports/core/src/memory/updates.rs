//! How the elements of one window at one rank are updated: each by an atomic instruction, or many at once under a lock.
//!
//! Atomic instructions are lock-free: a thread that is preempted delays no other. Under a lock, long accumulates are vector
//! instructions, in a tenth of the time. So a window begins with atomic instructions, and switches to locks when it sees
//! long accumulates:
//!
//! - `ATOMIC`: by atomic instructions, inside a section ([`Sections`]) in which the state is checked first.
//! - `SWITCHING`: by atomic instructions under the lock of the place. A thread that saw `ATOMIC` may still be inside.
//! - `LOCKED`: none is, so the holder of the lock has the elements to itself.
//!
//! The switch never waits: if a thread is inside, because it was preempted there or died, the state stays `SWITCHING` until
//! another thread checks again.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::sections::{Section, Sections};
use super::stream::turns_pay;
use super::stripes::{Held, LOCKS};
use super::{Span, Stripes, Words};
use crate::{DataType, ReduceOp, TransportError, TransportResult, barrier, reduce_valid};

const ATOMIC: u32 = 0;
const SWITCHING: u32 = 1;
const LOCKED: u32 = 2;

/// Bytes of the widest element.
const ELEMENT: usize = 32;
/// Elements that begin in the same so many bytes have one lock, if the user has no wish.
const GRANULE: usize = 16 << 10;
/// What is updated under locks that are taken at once: so many bytes, if a lock is not for more.
const AT_ONCE: usize = 64 << 10;
/// The widest range that has a lock of its own: others should not wait for longer.
const LARGEST: usize = 1 << 20;
/// Up to so many bytes are updated in one piece.
const WHOLE: usize = 64;
/// Accumulates of more bytes are of several elements: a lock for all costs less than an atomic instruction for each.
const LONG: usize = ELEMENT + 1;
/// Accumulates of more bytes than an innermost cache holds, with their operands, go in turns of direction, where that pays.
const TURNS: usize = 24 << 10;
/// So many bytes of long accumulates are worth the switch to locks.
const SWITCH_AFTER: usize = 16 << 10;

/// The state of a window's elements at one rank, and the locks that it needs.
#[derive(Debug)]
pub struct Updates {
    state: Words<1>,
    granules: Stripes,
    /// Elements that begin in the same so many bytes have locks that are taken at once: a power of two.
    at_once: usize,
    /// Of elements that no CPU atomic covers.
    stripes: Stripes,
    /// Accumulates of so many bytes count as long, and so many bytes of them are worth the switch to locks.
    switch_after: (usize, usize),
    /// Bytes of long accumulates by this process since it last tried to switch.
    long: AtomicUsize,
    /// The last accumulate that was longer than the caches went from its end to its beginning. Threads may disagree: it is a hint.
    backwards: AtomicBool,
}

/// What an accumulate does to elements of a span.
#[derive(Debug, Clone, Copy)]
pub struct Reduction<'a> {
    /// What is computed.
    pub op: ReduceOp,
    /// Of what type the elements are.
    pub ty: DataType,
    /// Whole elements, of any alignment.
    pub operands: &'a [u8],
}

impl Updates {
    /// With the state in the first 4 bytes of `state`, which begin as zero; `granules` and `stripes` are different locks.
    ///
    /// The user may wish for locks of ranges of `granularity` bytes: then they are used as soon as several elements are
    /// accumulated at once, or never if that is no more than an element has. 0 is no wish. The same at all processes.
    ///
    /// # Errors
    /// `state` is too short, or not aligned to 4 bytes.
    pub fn new(
        state: &Span,
        granules: Stripes,
        stripes: Stripes,
        granularity: usize,
    ) -> TransportResult<Self> {
        let state = Words::new(state, 0)?;
        let (switch_after, granule) = match granularity {
            0 => ((LONG, SWITCH_AFTER), GRANULE),
            1..=ELEMENT => ((usize::MAX, usize::MAX), GRANULE),
            wished => ((LONG, 0), wished.min(LARGEST).next_power_of_two()),
        };
        let (granules, long) = (granules.coarser(granule).joined(), AtomicUsize::new(0));
        let at_once = granule * (AT_ONCE / granule).clamp(1, LOCKS);
        Ok(Self { state, granules, at_once, stripes, switch_after, long, backwards: AtomicBool::new(false) })
    }

    /// Calls `update`, which updates one element at `place` ([`Stripes`]) atomically.
    #[inline]
    pub fn one<R>(&self, sections: &Sections, place: u64, update: impl FnOnce() -> R) -> R {
        if let Some(_inside) = self.section(sections) {
            return update();
        }
        let _held = self.granules.lock(place);
        update()
    }

    /// Waits for the locks of all elements that begin in `bytes` bytes from `place` on, if those are taken at once, and they are updated
    /// under them alone.
    #[inline]
    pub(super) fn lock_all(&self, place: u64, bytes: usize) -> Option<Held<'_>> {
        let first = place as usize & (self.at_once - 1);
        // What is locked stays so.
        let locked = self.state[0].load(Ordering::Acquire) == LOCKED;
        if !locked || bytes > self.at_once - first {
            return None;
        }
        Some(self.granules.lock_range(place, place + bytes.saturating_sub(1) as u64).0)
    }

    /// The word that says how.
    pub(super) fn state(&self) -> &AtomicU32 {
        &self.state[0]
    }

    /// Whether the word says that they are updated by atomic instructions.
    #[inline(always)]
    pub(super) fn is_atomic(state: &AtomicU32) -> bool {
        state.load(Ordering::Acquire) == ATOMIC
    }

    /// Enters where elements are updated by atomic instructions.
    #[inline(always)]
    fn section<'a>(&self, sections: &'a Sections) -> Option<Section<'a>> {
        let section = sections.enter();
        Self::is_atomic(&self.state[0]).then_some(section)
    }

    /// As [`Span::update`].
    ///
    /// # Errors
    /// As of [`Span::update`].
    pub fn many(
        &self,
        sections: &Sections,
        memory: &Span,
        place: u64,
        offset: usize,
        what: Reduction<'_>,
        mut fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        let Reduction { op, ty, operands } = what;
        let size = ty.size();
        if !reduce_valid(op, ty) {
            return Err(TransportError::Undefined { operation: format!("{op:?}"), ty });
        }
        memory.at(offset, operands.len())?;
        let as_long = fetched.as_ref().is_none_or(|fetched| fetched.len() == operands.len());
        if !as_long || !ty.divides(operands.len()) {
            return Err(TransportError::Range { offset, bytes: operands.len(), len: memory.len() });
        }
        let mut some = |piece: Range<usize>| {
            let (place, offset) = (place + piece.start as u64, offset + piece.start);
            let fetched = fetched.as_mut().and_then(|fetched| fetched.get_mut(piece.clone()));
            self.some(sections, memory, (place, offset), (op, ty), &operands[piece], fetched)
        };
        let mut left = 0..operands.len();
        if left.len() > TURNS && turns_pay() && self.turn() {
            while !left.is_empty() {
                let start = self.last_piece(place, size, left.end);
                some(start..left.end)?;
                left.end = start;
            }
        }
        while !left.is_empty() {
            let bytes = self.piece(place + left.start as u64, size, left.len());
            some(left.start..left.start + bytes)?;
            left.start += bytes;
        }
        Ok(())
    }

    /// Whether to begin at the end: where the last one ended is what the caches still hold, if this one is of the same elements.
    fn turn(&self) -> bool {
        let backwards = !self.backwards.load(Ordering::Relaxed);
        self.backwards.store(backwards, Ordering::Relaxed);
        backwards
    }

    /// Bytes of the elements, of `size` bytes, that begin at `place` and before the end of what is locked at once.
    fn piece(&self, place: u64, size: usize, left: usize) -> usize {
        let to_end = self.at_once - (place as usize & (self.at_once - 1));
        if left <= WHOLE.max(to_end) {
            return left;
        }
        (to_end.div_ceil(size) * size).min(left)
    }

    /// Where, of the `len` bytes of elements from `place` on, the first one begins that is locked at once with the last.
    fn last_piece(&self, place: u64, size: usize, len: usize) -> usize {
        let start = (place as usize + len - size) & !(self.at_once - 1);
        start.saturating_sub(place as usize).div_ceil(size) * size
    }

    /// Elements that are locked at once.
    fn some(
        &self,
        sections: &Sections,
        memory: &Span,
        (place, offset): (u64, usize),
        (op, ty): (ReduceOp, DataType),
        operands: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        // What is locked stays so.
        if self.state[0].load(Ordering::Relaxed) != LOCKED
            && let Some(_inside) = self.section(sections)
        {
            return memory.update(&self.stripes, place, op, ty, offset, operands, fetched);
        }
        let last = place + (operands.len() - 1) as u64;
        let _held = self.granules.lock_range(place, last);
        if self.state[0].load(Ordering::Acquire) != LOCKED {
            return memory.update(&self.stripes, place, op, ty, offset, operands, fetched);
        }
        if let Some(fetched) = fetched {
            memory.copy_out(offset, fetched)?;
        }
        memory.apply_exclusive(op, ty, offset, operands)
    }

    /// Whether another accumulate of `bytes` bytes makes the switch to locks worth while. If so it is for the caller to switch:
    /// this begins to count anew.
    #[inline]
    pub fn should_switch(&self, bytes: usize) -> bool {
        let is_due = self.is_due(bytes);
        if is_due {
            self.long.store(0, Ordering::Relaxed);
        } else {
            self.count(bytes);
        }
        is_due
    }

    /// As [`Updates::should_switch`], for who leaves it to others.
    #[inline]
    pub(super) fn is_due(&self, bytes: usize) -> bool {
        bytes >= self.switch_after.0
            && self.state[0].load(Ordering::Relaxed) != LOCKED
            && self.long.load(Ordering::Relaxed).saturating_add(bytes) >= self.switch_after.1
    }

    /// Counts an accumulate of so many bytes. A sum that is lost to another thread is counted later.
    #[inline]
    pub(super) fn count(&self, bytes: usize) {
        if bytes >= self.switch_after.0 && self.state[0].load(Ordering::Relaxed) != LOCKED {
            let long = self.long.load(Ordering::Relaxed).saturating_add(bytes);
            self.long.store(long, Ordering::Relaxed);
        }
    }

    /// Switches from atomic instructions to locks, as far as that can be without waiting. `are_empty` says whether the
    /// sections of all ranks that update these elements are empty ([`Sections::are_empty`]).
    pub fn switch_to_locks(&self, are_empty: impl FnOnce() -> bool) {
        switch_to_locks(&self.state[0], barrier::everywhere, are_empty);
    }
}

/// The word that holds the state: the CPU's, or a model checker's.
trait State {
    /// Stores `to` if it is `from`.
    fn change(&self, from: u32, to: u32);
}

impl State for AtomicU32 {
    fn change(&self, from: u32, to: u32) {
        let _ = self.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
    }
}

/// The order of these steps is the proof: after the barrier every thread that enters sees that the state is not `ATOMIC`,
/// so a thread that is not inside then does not update without the lock.
fn switch_to_locks(state: &impl State, barrier: impl FnOnce() -> bool, are_empty: impl FnOnce() -> bool) {
    state.change(ATOMIC, SWITCHING);
    if barrier() && are_empty() {
        state.change(SWITCHING, LOCKED);
    }
}

#[cfg(test)]
#[path = "updates_tests.rs"]
mod tests;
