//! The short cut: operations on consecutive elements of memory that is mapped here, in an epoch that covers the target.
//!
//! What such an operation needs stands ready in a line for each target: whether the target is covered now, where its memory
//! is, how elements are updated. An operation is a look-up, a few comparisons and a copy or an atomic instruction. Whatever
//! is not so plain is refused without being done, and goes by `operation/pipeline.rs`, which finds all errors.
//!
//! Lines are kept true by those who change what they say: epochs that open and close ([`ShortCut::cover`],
//! [`ShortCut::uncover`]), and operations that go another way ([`ShortCut::touch`]). Windows that count their operations, and
//! memory that comes and goes (dynamic windows), have no lines.

mod line;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use transom_transport::{Basic, BitTable, DataType, Mapped, Memory, ReduceOp, Sections, Swappable};

use crate::epoch::Coverage;
use crate::memory::RawBuffer;
use crate::window::Peer;
pub(crate) use line::Line;
use line::{NOTHING, OTHERS, STORES_OF_THREADS};

/// Lines of a window, at the most: targets whose ranks differ by a multiple of it share one, which the first has for good.
const LINES: usize = 128;

/// The lines of one window.
#[derive(Debug)]
pub struct ShortCut {
    /// Two at least: a line that is not in use has its neighbour's tag. All when the first is used.
    lines: BitTable<Line>,
    /// How many those are.
    targets: usize,
    sections: Arc<Sections>,
    /// What a flush has to do when an epoch begins: [`STORES_OF_THREADS`] if several threads share epochs.
    pending: AtomicU32,
    /// Whether locks are nothing but their words.
    plain_locks: bool,
}

impl ShortCut {
    /// Lines for so many targets that may be mapped. No line is ready.
    pub(crate) fn new(targets: usize, sections: Arc<Sections>, plain_locks: bool) -> Self {
        let lines = BitTable::new(Line::new);
        Self { lines, targets: targets.min(LINES), sections, pending: AtomicU32::new(NOTHING), plain_locks }
    }

    /// For how many targets there are lines.
    pub(crate) fn targets(&self) -> usize {
        self.targets
    }

    /// Several threads will share epochs: then no line is written by operations.
    pub(crate) fn share(&self) {
        self.pending.store(STORES_OF_THREADS, Ordering::Relaxed);
    }

    /// Whether several threads share epochs.
    pub(crate) fn is_shared(&self) -> bool {
        self.pending() == STORES_OF_THREADS
    }

    /// What a flush has to do when an epoch begins.
    #[inline(always)]
    pub(crate) fn pending(&self) -> u32 {
        self.pending.load(Ordering::Relaxed)
    }

    /// The memory of a target that is covered.
    #[inline(always)]
    fn covered(&self, target: usize) -> Option<&Memory> {
        self.lines.at(target).covered(target)
    }

    /// Copies `data` to the target. False, and nothing is done, if that is not all there is to do; likewise below.
    #[inline(always)]
    pub fn put(&self, target: usize, displacement: usize, data: &[u8]) -> bool {
        let line = self.lines.at(target);
        let Some(memory) = line.covered(target) else { return false };
        line.stores(&self.sections);
        memory.put(displacement, data)
    }

    /// Copies from the target to `data`.
    #[inline(always)]
    pub fn get(&self, target: usize, displacement: usize, data: &mut [u8]) -> bool {
        let Some(memory) = self.covered(target) else { return false };
        memory.get(displacement, data)
    }

    /// [`ShortCut::put`] of memory that the program keeps; in an epoch of lock or lock_all, where that is asked for.
    #[inline(always)]
    pub fn put_raw<const PASSIVELY: bool>(
        &self,
        target: usize,
        displacement: usize,
        data: RawBuffer,
    ) -> bool {
        let line = self.lines.at(target);
        let Some(memory) = line.covered_if::<PASSIVELY>(target) else { return false };
        line.stores(&self.sections);
        data.put_to(memory, displacement)
    }

    /// [`ShortCut::get`] to memory that the program keeps, likewise.
    #[inline(always)]
    pub fn get_raw<const PASSIVELY: bool>(
        &self,
        target: usize,
        displacement: usize,
        data: RawBuffer,
    ) -> bool {
        let Some(memory) = self.lines.at(target).covered_if::<PASSIVELY>(target) else { return false };
        data.get_from(memory, displacement)
    }

    /// Updates elements at the target; what was there goes to `fetched`, which is as long as `operands`.
    #[inline(always)]
    pub fn update(
        &self,
        target: usize,
        displacement: usize,
        what: (ReduceOp, DataType),
        operands: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> bool {
        let Some(memory) = self.covered(target) else { return false };
        memory.update(&self.sections, displacement, what, operands, fetched)
    }

    /// Adds to a word of the target; returns what was there. None, and nothing is done, if that is not all there is to do.
    #[inline(always)]
    pub fn add(&self, target: usize, displacement: usize, operand: u64) -> Option<u64> {
        self.covered(target)?.add(&self.sections, displacement, operand)
    }

    /// Compares and swaps a word of the target; returns what was there. None, and nothing is done, if that is not all there is to
    /// do.
    #[inline(always)]
    pub fn swap(&self, target: usize, displacement: usize, compare: u64, value: u64) -> Option<u64> {
        self.covered(target)?.swap(&self.sections, displacement, compare, value)
    }

    /// Compares and swaps an element of the target; what was there goes to `old`.
    #[inline(always)]
    pub fn compare_swap(
        &self,
        target: usize,
        displacement: usize,
        ty: DataType,
        (compare, value): (&[u8], &[u8]),
        old: &mut [u8],
    ) -> bool {
        let Some(memory) = self.covered(target) else { return false };
        memory.compare_swap(&self.sections, displacement, ty, (compare, value), old)
    }

    /// Updates one element of the target; returns what was there.
    #[inline(always)]
    pub(crate) fn update_one<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Option<T> {
        self.covered(target)?.update_one(&self.sections, displacement, op, operand)
    }

    /// Compares and swaps one element of the target; returns what was there.
    #[inline(always)]
    pub(crate) fn compare_swap_one<T: Swappable>(
        &self,
        target: usize,
        displacement: usize,
        values: (T, T),
    ) -> Option<T> {
        self.covered(target)?.compare_swap_one(&self.sections, displacement, values)
    }

    /// Completes the operations to a target in a passive epoch, if all went by this way.
    #[inline(always)]
    pub fn flush(&self, target: usize) -> bool {
        let line = self.lines.at(target);
        line.covers_passively(target) && line.flush(&self.sections)
    }

    /// The same in an epoch of any kind.
    #[inline(always)]
    pub(crate) fn flush_any(&self, target: usize) -> bool {
        let line = self.lines.at(target);
        line.covered(target).is_some() && line.flush(&self.sections)
    }

    /// Whether locks are nothing but their words, where these are mapped.
    #[inline(always)]
    pub(crate) fn has_plain_locks(&self) -> bool {
        self.plain_locks
    }

    /// The line of a target whose lock is taken by its words alone.
    #[inline(always)]
    pub(crate) fn lock_line(&self, target: usize) -> Option<&Line> {
        self.plain_locks.then(|| self.lines.at(target))
    }

    /// Whether a target has a line of its own, or can have none.
    pub(crate) fn is_ready(&self, target: usize) -> bool {
        let line = self.lines.at(target);
        !line.is_vacant() || line.is_owned_by(target)
    }

    /// Whether a target has a line of its own.
    #[inline(always)]
    pub(crate) fn is_owned_by(&self, target: usize) -> bool {
        self.lines.at(target).is_owned_by(target)
    }

    /// Has a target's memory stand ready: `fill` fills it in.
    pub(crate) fn prepare(&self, target: usize, peer: Arc<Peer>, fill: impl FnOnce(&Mapped)) {
        self.lines.grow(self.targets);
        self.lines.at(target).prepare(peer, fill);
    }

    /// An epoch covers a target from now on.
    pub(crate) fn cover(&self, target: usize, coverage: Coverage) {
        let line = self.lines.at(target);
        if line.is_owned_by(target) && line.covered(target).is_none() {
            line.cover(target, coverage, self.pending());
        }
    }

    /// No epoch covers a target any more.
    pub(crate) fn uncover(&self, target: usize) {
        self.lines.at(target).uncover(target);
    }

    /// An operation to a target has gone another way: a flush has to complete that.
    pub(crate) fn touch(&self, target: usize) {
        let line = self.lines.at(target);
        if line.is_owned_by(target) {
            line.set_pending(OTHERS);
        }
    }
}
