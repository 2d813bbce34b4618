//! What stands ready for one target.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use transom_transport::memory::store_load_fence;
use transom_transport::{Mapped, Memory, Sections};

use crate::epoch::Coverage;
use crate::window::Peer;

/// What a flush has to do: nothing.
pub(super) const NOTHING: u32 = 0;
/// To order stores, of which there are none afterwards.
pub(super) const STORES: u32 = 1;
/// To order stores, of which others may always make more: several threads share the epoch.
pub(super) const STORES_OF_THREADS: u32 = 2;
/// To complete operations that a transport has under way, or that were sent as messages.
pub(super) const OTHERS: u32 = 3;

/// The line of one target: of those that lead to it the first that is mapped. Several threads may use it; those that open
/// and close epochs write it.
#[derive(Debug)]
// Two lines, which the prefetcher of x86 loads together: threads that access several targets do not meet.
#[repr(C, align(128))]
pub(crate) struct Line {
    pending: AtomicU32,
    memory: Mapped,
    /// The target.
    peer: OnceLock<Arc<Peer>>,
}

const _: () = assert!(size_of::<Line>() == 128);

impl Line {
    /// The line of targets that leave `index` as a remainder, of which none is covered.
    pub(super) fn new(index: usize) -> Self {
        Self { pending: AtomicU32::new(NOTHING), memory: Mapped::new(index), peer: OnceLock::new() }
    }

    /// The memory of a target that an epoch covers.
    #[inline(always)]
    pub(super) fn covered(&self, target: usize) -> Option<&Memory> {
        self.memory.covered(target)
    }

    /// The same if it is one of lock or lock_all, where that is asked for.
    #[inline(always)]
    pub(super) fn covered_if<const PASSIVELY: bool>(&self, target: usize) -> Option<&Memory> {
        if PASSIVELY { self.memory.covered_passively(target) } else { self.memory.covered(target) }
    }

    /// Whether an epoch of lock or lock_all covers it.
    #[inline(always)]
    pub(super) fn covers_passively(&self, target: usize) -> bool {
        self.memory.is_covered_passively(target)
    }

    /// The target, if the line is its own and no epoch covers it.
    #[inline(always)]
    pub(crate) fn free_peer(&self, target: usize) -> Option<&Arc<Peer>> {
        if self.memory.is_free(target) { self.peer.get() } else { None }
    }

    /// The target, if a passive epoch covers it, to which everything has gone by the short cut.
    #[inline(always)]
    pub(crate) fn plain_peer(&self, target: usize) -> Option<&Arc<Peer>> {
        if self.covers_passively(target) && self.pending() != OTHERS { self.peer.get() } else { None }
    }

    /// Whether the line is the target's.
    #[inline(always)]
    pub(super) fn is_owned_by(&self, target: usize) -> bool {
        self.peer.get().is_some() && self.memory.target() == Some(target)
    }

    /// Whether it is nobody's yet.
    pub(super) fn is_vacant(&self) -> bool {
        self.peer.get().is_none()
    }

    /// Has it be a target's from now on, if it is nobody's. `fill` fills its memory.
    pub(super) fn prepare(&self, peer: Arc<Peer>, fill: impl FnOnce(&Mapped)) {
        self.peer.get_or_init(|| {
            fill(&self.memory);
            peer
        });
    }

    #[inline(always)]
    pub(super) fn pending(&self) -> u32 {
        self.pending.load(Ordering::Relaxed)
    }

    /// A store is made. Written only if that is news: threads that share an epoch know it from the beginning, and each keeps
    /// its own account.
    #[inline(always)]
    pub(super) fn stores(&self, sections: &Sections) {
        match self.pending() {
            NOTHING => self.set_pending(STORES),
            STORES_OF_THREADS => sections.stores(),
            _ => {}
        }
    }

    /// Orders stores, if that is all that a flush has to do.
    #[inline(always)]
    pub(super) fn flush(&self, sections: &Sections) -> bool {
        match self.pending() {
            NOTHING => true,
            STORES => {
                self.set_pending(NOTHING);
                store_load_fence();
                true
            }
            STORES_OF_THREADS => {
                sections.order_stores();
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn set_pending(&self, pending: u32) {
        self.pending.store(pending, Ordering::Relaxed);
    }

    /// A target is covered, if the line is its own. `pending`: what a flush has to do at first.
    #[inline(always)]
    pub(crate) fn cover(&self, target: usize, coverage: Coverage, pending: u32) {
        self.set_pending(pending);
        self.memory.cover(target, coverage == Coverage::Passive);
    }

    /// A target is covered no more, if the line is its own.
    #[inline(always)]
    pub(crate) fn uncover(&self, target: usize) {
        self.memory.uncover(target);
    }
}
