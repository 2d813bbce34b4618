//! The fence: all ranks' operations are complete, at all targets (MPI-4.1 §12.5.1).

use std::sync::atomic::Ordering;

use super::By;
use super::table::Accessing;
use crate::collective::{Kind, pass};
use crate::window::Core;
use crate::{Assert, Class, Result};

/// Every rank has come to this fence, and what it did before is visible.
pub(crate) fn synchronise(core: &Core, assert: Assert) -> Result<()> {
    if !assert.has(Assert::NOSTORE) {
        core.publish("fence")?;
    }
    // Where nothing precedes and nothing follows, no rank need wait for another.
    if !assert.has(Assert::NOPRECEDE | Assert::NOSUCCEED) {
        // These two are given by all ranks or by none (§12.5.5): a rank that does otherwise is told.
        let kind = if assert.has(Assert::NOPRECEDE) {
            Kind::FirstFence
        } else if assert.has(Assert::NOSUCCEED) {
            Kind::LastFence
        } else {
            Kind::Fence
        };
        pass(core, kind).map_err(|e| core.name(e))?;
    }
    core.refresh("fence")
}

impl Core {
    /// Opens an epoch to all targets between fences.
    pub(crate) fn open_fence(&self, by: By) -> Result<()> {
        self.access.open.open_fence().map_err(|e| self.name(e))?;
        self.begin_whole(&[], Assert::NONE, by);
        Ok(())
    }

    /// Completes what was done in it, and closes it. Stores to mapped memory are ordered by the fence that follows, if one does: then
    /// its messages tell the other rank of the epoch's end.
    pub(crate) fn close_fence(&self, followed: bool) -> Result<()> {
        let result = self.complete_touched("fence", followed);
        self.end_whole(|_, _| ());
        self.access.open.close_access();
        result
    }

    /// The fence of calls: completes what was done since the last one, everywhere, and begins what follows. Collective.
    pub(crate) fn fence(&self, assert: Assert) -> Result<()> {
        assert.check("fence").map_err(|e| self.name(e))?;
        let open = self.is_open(Accessing::Fence, By::Calls);
        if open && self.is_fence_used() && assert.has(Assert::NOPRECEDE) {
            let message =
                "operations were started since the last fence, and NOPRECEDE says that there are none";
            return Err(self.error(Class::Assert, "fence", message));
        }
        let ended = if open { self.close_fence(true) } else { Ok(()) };
        if let Err(error) = self.access.open.check_none("fence") {
            return ended.and(self.send_all_carried("fence")).and(Err(self.name(error)));
        }
        // Whatever happened here, the others come to their fence.
        let fenced = synchronise(self, assert);
        if let Some(regions) = self.exposure.regions() {
            regions.leave_nothing();
        }
        ended.and(fenced)?;
        if assert.has(Assert::NOSUCCEED) { Ok(()) } else { self.open_fence(By::Calls) }
    }

    fn is_fence_used(&self) -> bool {
        self.access.fence_used.load(Ordering::Acquire)
    }

    /// Opens another epoch by `open`. A fence of calls after which nothing was done has begun no epoch: it makes way, and is as
    /// before if `open` fails.
    #[inline]
    pub(crate) fn instead_of_fence(&self, open: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.access.open.accessing() != Accessing::Fence {
            return open();
        }
        self.instead_of_open_fence(open)
    }

    #[inline(never)]
    fn instead_of_open_fence(&self, open: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.is_open(Accessing::Fence, By::Calls) || self.is_fence_used() {
            return open();
        }
        self.close_fence(false)?;
        open().inspect_err(|_| drop(self.open_fence(By::Calls)))
    }

    /// Whether no epoch is open but that of a fence of calls in which nothing was done.
    pub(crate) fn is_closed(&self) -> bool {
        let unused = self.is_open(Accessing::Fence, By::Calls) && !self.is_fence_used();
        unused || self.access.open.check_none("free").is_ok()
    }

    /// Ends an epoch of lock_all, start or fence that calls have opened.
    pub(super) fn end_whole_by_calls(&self) -> Result<()> {
        if self.access.opened.by() != By::Calls {
            return Ok(());
        }
        match self.access.open.accessing() {
            Accessing::Fence => self.close_fence(false),
            Accessing::Start => self.complete_start(By::Calls),
            Accessing::LockAll => self.unlock_all(By::Calls),
            Accessing::Nothing | Accessing::Locks => Ok(()),
        }
    }
}
