//! Contexts: streams of operations, each completed by itself (OpenSHMEM 1.5 §9.5), and the order of operations (§9.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use transom_transport::memory::store_load_fence;

use super::{Shmem, Team};
use crate::Result;

/// Nothing has gone another way than by loads, stores and the CPU's atomics.
const NOTHING: u32 = 0;
/// Something has, and is perhaps not complete.
const OTHERS: u32 = 1;
/// Several threads issue operations: what one has seen complete another may have under way.
const ALWAYS: u32 = 2;

/// A communication context: its operations are completed by [`Shmem::quiet`] of this context.
#[derive(Debug)]
pub struct Context {
    team: Arc<Team>,
    /// The team's first PE, and the step to the next, and how many there are.
    regular: (usize, isize, usize),
    /// What a quiet has to do.
    pending: AtomicU32,
    /// Several threads may use it.
    multiple: bool,
}

impl Context {
    pub(super) fn new(team: Arc<Team>, multiple: bool) -> Self {
        Self { regular: team.regular(), team, pending: AtomicU32::new(NOTHING), multiple }
    }

    /// The team whose PEs its operations count.
    pub fn team(&self) -> &Arc<Team> {
        &self.team
    }

    /// The world's number of a PE of its team, if there is such a one.
    #[inline(always)]
    pub fn pe(&self, pe: usize) -> Option<usize> {
        let (start, stride, size) = self.regular;
        (pe < size).then(|| start.wrapping_add_signed(stride.wrapping_mul(pe as isize)))
    }

    /// Something goes another way than by the short cut.
    pub(super) fn touch(&self) {
        let pending = if self.multiple { ALWAYS } else { OTHERS };
        if self.pending.load(Ordering::Relaxed) != pending {
            self.pending.store(pending, Ordering::Release);
        }
    }
}

impl Shmem {
    /// Completes the operations of a context: they are at their targets, and visible to all PEs (`shmem_ctx_quiet`).
    ///
    /// # Errors
    /// An operation failed; a peer is gone.
    #[inline(always)]
    pub fn quiet(&self, context: &Context) -> Result<()> {
        // Stores are visible in their order; what is left to do is to order later loads after them.
        store_load_fence();
        if context.pending.load(Ordering::Relaxed) == NOTHING {
            return Ok(());
        }
        self.complete(context)
    }

    /// Orders the operations of a context: those that follow come after those before, at each PE (`shmem_ctx_fence`).
    ///
    /// # Errors
    /// As [`Shmem::quiet`].
    #[inline(always)]
    pub fn fence(&self, context: &Context) -> Result<()> {
        // Stores of x86 are in order; elsewhere this is what orders them.
        std::sync::atomic::fence(Ordering::Release);
        if context.pending.load(Ordering::Relaxed) == NOTHING {
            return Ok(());
        }
        self.complete(context)
    }

    #[cold]
    #[inline(never)]
    fn complete(&self, context: &Context) -> Result<()> {
        if !context.multiple {
            context.pending.store(NOTHING, Ordering::Relaxed);
        }
        self.segments().try_for_each(|segment| segment.core().flush_all("quiet"))
    }

    /// Has every context's operations complete.
    pub(super) fn complete_all(&self) -> Result<()> {
        store_load_fence();
        self.segments().try_for_each(|segment| segment.core().flush_all("quiet"))
    }
}
