//! Contexts: streams of operations, each completed by itself (OpenSHMEM 1.5 §9.5), and the order of operations (§9.12).
//!
//! The default context has the windows themselves; each other one a view of them, with its own account of what is under way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use transom_transport::memory::store_load_fence;

use super::segment::SEGMENTS;
use super::{Segment, Shmem, Team};
use crate::epoch::Access;
use crate::operation::{self, Order};
use crate::window::Core;
use crate::{Assert, Result};

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
    /// Views of the segments, made when something goes another way than by stores. None of the default context.
    views: Option<[OnceLock<Box<Core>>; SEGMENTS]>,
    /// What a fence has left to the next operations to these PEs.
    fenced: Mutex<BTreeMap<usize, Order>>,
    /// Whether it has left anything.
    is_fenced: AtomicBool,
}

/// How an operation goes, as far as order is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By a put, or by whatever the way is.
    Put,
    /// By messages, where a network keeps the order of puts and messages: an update of an element.
    Update,
}

impl Context {
    /// A context; `own` if it is to have an account of its own.
    pub(super) fn new(team: Arc<Team>, multiple: bool, own: bool) -> Self {
        Self {
            regular: team.regular(),
            team,
            pending: AtomicU32::new(NOTHING),
            multiple,
            views: own.then_some([const { OnceLock::new() }; SEGMENTS]),
            fenced: Mutex::default(),
            is_fenced: AtomicBool::new(false),
        }
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

    /// Access to a segment's part at a PE, counted here.
    pub(super) fn access<'a>(
        &'a self,
        segment: &'a Segment,
        call: &'static str,
        pe: usize,
    ) -> Result<Access<'a>> {
        let window = segment.core();
        let Some(views) = &self.views else { return Ok(Access { core: window, only: None }) };
        let view = &views[segment.slot()];
        let core = match view.get() {
            Some(core) => core,
            None => {
                let made = segment.view()?;
                // Of two threads that make one at once one is first.
                view.get_or_init(|| made)
            }
        };
        window.lend(call, pe, core)?;
        Ok(Access { core, only: None })
    }

    /// The account of what it has under way in a segment, if there is one.
    fn core<'a>(&'a self, segment: &'a Segment) -> Option<&'a Core> {
        match &self.views {
            None => Some(segment.core()),
            Some(views) => views[segment.slot()].get().map(|core| &**core),
        }
    }

    fn fenced(&self, pe: usize, order: Order) {
        self.fenced.lock().entry(pe).and_modify(|known| *known = (*known).max(order)).or_insert(order);
        self.is_fenced.store(true, Ordering::Release);
    }

    /// Takes what a fence has left to be done before an operation to a PE. Whether it is.
    #[cold]
    #[inline(never)]
    fn take_fenced(&self, pe: usize, way: Way) -> bool {
        let mut fenced = self.fenced.lock();
        if way == Way::Update && fenced.get(&pe) == Some(&Order::KeptByMessages) {
            return false;
        }
        let found = fenced.remove(&pe).is_some();
        self.is_fenced.store(!fenced.is_empty(), Ordering::Release);
        found
    }
}

impl Drop for Context {
    /// Its operations are complete, or lost with the job.
    fn drop(&mut self) {
        for core in self.views.iter_mut().flatten().filter_map(OnceLock::get_mut) {
            if let Err(error) = core.unlock_all(crate::epoch::By::Calls) {
                tracing::error!(%error, "a context was dropped with operations that failed");
            }
        }
    }
}

impl Segment {
    /// A view of it for a context, in an epoch that never ends.
    fn view(&self) -> Result<Box<Core>> {
        let view = Box::new(self.core().view());
        view.promise_threads(!self.is_multiple());
        view.lock_all(Assert::NOCHECK, crate::epoch::By::Calls)?;
        Ok(view)
    }
}

impl Shmem {
    /// Completes the operations of a context: they are at their targets, and visible to all PEs (`shmem_ctx_quiet`). Those of other
    /// contexts are not waited for.
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

    /// Completes the operations of a context at some PEs of the world (`shmem_ctx_pe_quiet`).
    ///
    /// # Errors
    /// No such PE; as [`Shmem::quiet`].
    pub fn pe_quiet(
        &self,
        context: &Context,
        call: &'static str,
        pes: impl Iterator<Item = usize>,
    ) -> Result<()> {
        store_load_fence();
        for pe in pes {
            self.check_pe(call, pe)?;
            for core in self.cores(context).filter(|core| core.peers.made(pe).is_some()) {
                core.flush(pe)?;
            }
        }
        Ok(())
    }

    /// Orders the operations of a context: those that follow come after those before, at each PE (`shmem_ctx_fence`). It waits for
    /// nothing but, where a PE on this node has no mapped memory, messages to that; where a network keeps no order, the next operation to the same
    /// PE does.
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
        self.order(context)
    }

    #[cold]
    #[inline(never)]
    fn complete(&self, context: &Context) -> Result<()> {
        if !context.multiple {
            context.pending.store(NOTHING, Ordering::Relaxed);
        }
        if context.is_fenced.load(Ordering::Relaxed) && !context.multiple {
            context.fenced.lock().clear();
            context.is_fenced.store(false, Ordering::Relaxed);
        }
        self.cores(context).try_for_each(|core| core.flush_all("quiet"))
    }

    /// The accounts of a context.
    fn cores<'a>(&'a self, context: &'a Context) -> impl Iterator<Item = &'a Core> {
        self.segments().filter_map(|segment| context.core(segment))
    }

    #[cold]
    #[inline(never)]
    fn order(&self, context: &Context) -> Result<()> {
        for core in self.cores(context) {
            for pe in core.touched() {
                let Some(peer) = core.peers.made(pe) else { continue };
                match operation::order(core, peer) {
                    Order::Kept => {}
                    // The next access may be a store, of which nobody is told.
                    _ if core.member.engine.routes.shares_memory(peer.world) => core.flush(pe)?,
                    order => context.fenced(pe, order),
                }
            }
        }
        Ok(())
    }

    /// Before an operation to a PE: what a fence has left to it.
    #[inline]
    pub(super) fn settle(&self, context: &Context, pe: usize, way: Way) -> Result<()> {
        if context.is_fenced.load(Ordering::Acquire) && context.take_fenced(pe, way) {
            self.cores(context).try_for_each(|core| core.flush(pe))?;
        }
        Ok(())
    }
}
