//! Epochs as calls, for programs translated from MPI: what types check in [`crate::Epoch`] is checked at run time here.

use std::cell::Ref;
use std::marker::PhantomData;
use std::sync::Arc;

use super::access::Access;
use super::opened::{Found, Opened};
use super::{active, fence};
use crate::window::Core;
use crate::{Assert, Class, Element, LockKind, Result};

/// Epochs of a window that are opened and closed by calls (MPI-4.1 §12.5). Closed at the latest when this value goes.
///
/// Origin buffers are copied by the call, gets are complete when the call returns: no buffer is borrowed. Errors are as
/// those of [`crate::Epoch`], and [`Class::RmaSync`] for a call in a wrong order: an operation without an epoch that covers
/// it, an epoch that does not go with another, an end of what was not begun.
///
/// ```
/// use transom::{Assert, Class, LockKind};
/// transom::local(2, |job| {
///     let window = job.allocate::<u32>(1)?;
///     let rma = window.explicit();
///     assert_eq!(rma.put(0, 0, &[1]).unwrap_err().class(), Class::RmaSync);
///     rma.lock(LockKind::Exclusive, 0, Assert::NONE)?;
///     rma.put(0, 0, &[1])?;
///     rma.unlock(0)?;
///     rma.fence(Assert::NOPRECEDE)?;
///     rma.put(1, 0, &[2])?;
///     rma.fence(Assert::NOSUCCEED)?;
///     drop(rma);
///     window.free()
/// })?;
/// # Ok::<(), transom::Error>(())
/// ```
#[derive(Debug)]
pub struct Explicit<'w, T> {
    core: &'w Core,
    opened: Opened<'w>,
    _elements: PhantomData<T>,
}

impl<'w, T: Element> Explicit<'w, T> {
    pub(crate) fn new(core: &'w Core) -> Self {
        Self { core, opened: Opened::alone(), _elements: PhantomData }
    }

    pub(crate) fn shared(core: &'w Core) -> Self {
        Self { core, opened: Opened::shared(), _elements: PhantomData }
    }

    /// Opens another epoch by `open`. A fence after which nothing was done has begun no epoch: it makes way, and is as
    /// before if `open` fails.
    fn instead_of_fence<R>(&self, open: impl FnOnce() -> Result<R>) -> Result<R> {
        let fence = self.opened.with(|opened| if opened.used { None } else { opened.fenced.take() });
        let Some(fence) = fence else { return open() };
        fence.close()?;
        let opened = open();
        if opened.is_err() {
            self.opened.keep_fence(Access::fence(self.core)?);
        }
        opened
    }

    /// Opens an epoch to `target` (`MPI_Win_lock`).
    ///
    /// # Errors
    /// No such rank; an epoch is open that does not go with it; another assertion than `NOCHECK`; the hint `no_locks`.
    pub fn lock(&self, kind: LockKind, target: usize, assert: Assert) -> Result<()> {
        let access = self.instead_of_fence(|| Access::lock(self.core, kind, target, assert))?;
        self.opened.keep_lock(target, access);
        Ok(())
    }

    /// Completes everything at `target` and closes the epoch (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// No lock of `target` is held; an operation failed.
    pub fn unlock(&self, target: usize) -> Result<()> {
        match self.opened.with(|opened| opened.take_lock(target)) {
            Some(access) => access.close(),
            None => {
                self.core.target("unlock", target)?;
                let message = "no lock of this rank is held: call lock first";
                Err(self.core.error(Class::RmaSync, "unlock", message).with_target(target))
            }
        }
    }

    /// Opens an epoch to all ranks (`MPI_Win_lock_all`).
    ///
    /// # Errors
    /// As [`Explicit::lock`].
    pub fn lock_all(&self, assert: Assert) -> Result<()> {
        let access = self.instead_of_fence(|| Access::lock_all(self.core, assert))?;
        self.opened.keep_all(access);
        Ok(())
    }

    /// Completes everything and closes the epoch (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn unlock_all(&self) -> Result<()> {
        match self.opened.take_all() {
            Some(access) => access.close(),
            None => {
                let message = "no lock_all epoch is open: call lock_all first";
                Err(self.core.error(Class::RmaSync, "unlock_all", message))
            }
        }
    }

    /// Completes what was done since the last fence, everywhere, and begins what follows (`MPI_Win_fence`). Collective.
    ///
    /// # Errors
    /// Another epoch is open; an assertion that is not of fences, or does not hold; an operation failed. After an error of
    /// an operation the fence has taken place all the same.
    pub fn fence(&self, assert: Assert) -> Result<()> {
        let core = self.core;
        assert.check("fence").map_err(|e| core.name(e))?;
        if self.opened.with(|opened| opened.used) && assert.has(Assert::NOPRECEDE) {
            let message =
                "operations were started since the last fence, and NOPRECEDE says that there are none";
            return Err(core.error(Class::Assert, "fence", message));
        }
        let ended = match self.opened.with(|opened| opened.fenced.take()) {
            Some(access) => self.opened.close(access),
            None => Ok(()),
        };
        self.opened.with(|opened| opened.used = false);
        core.epochs.check_none("fence").map_err(|e| core.name(e))?;
        // Whatever happened here, the others come to their fence.
        let fenced = fence::synchronise(core, assert);
        ended.and(fenced)?;
        if !assert.has(Assert::NOSUCCEED) {
            self.opened.keep_fence(Access::fence(core)?);
        }
        Ok(())
    }

    /// Opens an access epoch to the ranks of `group`, each from its post on (`MPI_Win_start`). Does not wait: the first
    /// operation to a rank waits for its post.
    ///
    /// # Errors
    /// No such rank, or one twice; an epoch is open that does not go with it; another assertion than `NOCHECK`.
    pub fn start(&self, group: &[usize], assert: Assert) -> Result<()> {
        let access = self.instead_of_fence(|| Access::start(self.core, group, assert))?;
        self.opened.keep_started(access);
        Ok(())
    }

    /// Completes the operations of the epoch that [`Explicit::start`] opened, and closes it (`MPI_Win_complete`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn complete(&self) -> Result<()> {
        match self.opened.with(|opened| opened.started.take()) {
            Some(access) => self.opened.close(access),
            None => {
                let message = "no access epoch of start is open: call start first";
                Err(self.core.error(Class::RmaSync, "complete", message))
            }
        }
    }

    /// Opens an exposure epoch to the ranks of `group` (`MPI_Win_post`). Does not wait.
    ///
    /// # Errors
    /// No such rank, or one twice; an epoch is open that does not go with it; an assertion that is not of posts.
    pub fn post(&self, group: &[usize], assert: Assert) -> Result<()> {
        assert.check("post").map_err(|e| self.core.name(e))?;
        let group = active::check_group(self.core, "post", group)?;
        self.instead_of_fence(|| active::post(self.core, &group, assert))?;
        self.opened.with(|opened| opened.posted = Some(group));
        Ok(())
    }

    /// Waits until every rank of the group has completed its accesses, and closes the exposure epoch (`MPI_Win_wait`).
    ///
    /// # Errors
    /// No such epoch is open; a peer is gone; the deadline passes. The epoch is then closed, too.
    pub fn wait(&self) -> Result<()> {
        match self.opened.with(|opened| opened.posted.take()) {
            Some(group) => active::wait(self.core, &group),
            None => Err(self.not_posted("wait")),
        }
    }

    /// [`Explicit::wait`] if it need not wait (`MPI_Win_test`). Returns whether the epoch has ended.
    ///
    /// # Errors
    /// As [`Explicit::wait`].
    pub fn test(&self) -> Result<bool> {
        let Some(group) = self.opened.with(|opened| opened.posted.take()) else {
            return Err(self.not_posted("test"));
        };
        let ended = active::test(self.core, &group);
        if !matches!(ended, Ok(true)) {
            self.opened.with(|opened| opened.posted = Some(group));
        }
        ended
    }

    fn not_posted(&self, operation: &'static str) -> crate::Error {
        let message = "no exposure epoch is open: call post first";
        self.core.error(Class::RmaSync, operation, message)
    }

    /// Whether no epoch is open but an unused one of a fence.
    pub(super) fn is_closed(&self) -> bool {
        self.opened.with(|opened| opened.is_closed())
    }

    /// The window.
    pub(super) fn core(&self) -> &'w Core {
        self.core
    }

    /// The epoch of lock_all, if this thread alone has one open: what programs access most in.
    #[inline(always)]
    pub(super) fn at_once(&self) -> Option<Ref<'_, Access<'w>>> {
        let Opened::Alone(opened) = &self.opened else { return None };
        Ref::filter_map(opened.borrow(), |opened| opened.all.as_deref()).ok()
    }

    /// Adds to a word at hand in the epoch of lock_all, if that is all there is to do; returns what was there.
    #[inline(always)]
    pub(super) fn add_at_once(&self, target: usize, displacement: usize, operand: u64) -> Option<u64> {
        match &self.opened {
            Opened::Alone(opened) => opened.borrow().all.as_ref()?.add_at_hand(target, displacement, operand),
            Opened::Shared(shared) => shared.all().as_ref()?.add_at_hand(target, displacement, operand),
        }
    }

    /// Calls `use_it` with the epoch that covers `target`.
    #[inline]
    pub(super) fn access<R>(
        &self,
        operation: &'static str,
        target: usize,
        use_it: impl FnOnce(&Access<'w>) -> Result<R>,
    ) -> Result<R> {
        let opened = match &self.opened {
            Opened::Alone(opened) => opened.borrow(),
            Opened::Shared(shared) => {
                return match &*shared.all() {
                    Some(access) => use_it(access),
                    None => self.access_shared(operation, target, use_it),
                };
            }
        };
        if let Some(access) = &opened.all {
            return use_it(access);
        }
        let Some(found) = opened.find(target) else { return Err(self.no_access(operation, target)) };
        let done = use_it(found.access());
        let begun = found.is_fence() && done.is_ok();
        drop(opened);
        if begun {
            self.opened.with(|opened| opened.used = true);
        }
        done
    }

    /// As [`Explicit::access`], where other threads come and go meanwhile.
    #[inline(never)]
    fn access_shared<R>(
        &self,
        operation: &'static str,
        target: usize,
        use_it: impl FnOnce(&Access<'w>) -> Result<R>,
    ) -> Result<R> {
        let found = self.opened.with(|opened| opened.find(target).map(Found::share));
        let Some(found) = found else { return Err(self.no_access(operation, target)) };
        let done = use_it(found.access());
        if found.is_fence() && done.is_ok() {
            self.opened.with(|opened| opened.used = true);
        }
        done
    }

    #[cold]
    fn no_access(&self, operation: &'static str, target: usize) -> crate::Error {
        match self.core.target(operation, target) {
            Err(error) => error,
            Ok(None) => {
                let message = "no epoch is open: an operation to the null rank needs one, too";
                self.core.error(Class::RmaSync, operation, message)
            }
            Ok(Some(_)) => {
                let message =
                    "no access epoch to this rank is open: call lock, lock_all, start or fence first";
                self.core.error(Class::RmaSync, operation, message).with_target(target)
            }
        }
    }

    /// Calls `use_it` with every passive-target epoch.
    fn passive(&self, operation: &'static str, use_it: impl Fn(&Access<'w>) -> Result<()>) -> Result<()> {
        let mut any = false;
        let used = |access: &Arc<Access<'w>>| {
            any = true;
            use_it(access)
        };
        match &self.opened {
            Opened::Alone(opened) => opened.borrow().passive().try_for_each(used)?,
            Opened::Shared(_) => {
                let epochs: Vec<_> = self.opened.with(|opened| opened.passive().cloned().collect());
                epochs.iter().try_for_each(used)?;
            }
        }
        if any {
            return Ok(());
        }
        let message = "no epoch of lock or lock_all is open: flush is for those";
        Err(self.core.error(Class::RmaSync, operation, message))
    }

    /// Completes all operations to `target`, here and there (`MPI_Win_flush`).
    ///
    /// # Errors
    /// No epoch of lock or lock_all; an operation failed.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        match &self.opened {
            Opened::Alone(opened) => {
                let opened = opened.borrow();
                if let Some(access) = opened.all.as_ref().or_else(|| opened.lock(target)) {
                    return access.flush(target);
                }
            }
            Opened::Shared(shared) => {
                if let Some(access) = &*shared.all() {
                    return access.flush(target);
                }
                if let Some(access) = self.opened.with(|opened| opened.lock(target).cloned()) {
                    return access.flush(target);
                }
            }
        }
        self.core.target("flush", target)?;
        let message = "no epoch of lock or lock_all covers this rank: flush is for those";
        Err(self.core.error(Class::RmaSync, "flush", message).with_target(target))
    }

    /// Completes all operations to `target` here (`MPI_Win_flush_local`).
    ///
    /// # Errors
    /// As [`Explicit::flush`].
    pub fn flush_local(&self, target: usize) -> Result<()> {
        self.flush(target)
    }

    /// [`Explicit::flush`] to every target (`MPI_Win_flush_all`).
    ///
    /// # Errors
    /// As [`Explicit::flush`].
    pub fn flush_all(&self) -> Result<()> {
        self.passive("flush_all", Access::flush_all)
    }

    /// [`Explicit::flush_local`] to every target (`MPI_Win_flush_local_all`).
    ///
    /// # Errors
    /// As [`Explicit::flush`].
    pub fn flush_local_all(&self) -> Result<()> {
        self.passive("flush_local_all", Access::flush_all)
    }
}

impl<T> Drop for Explicit<'_, T> {
    fn drop(&mut self) {
        if let Some(group) = self.opened.with(|opened| opened.posted.take()) {
            tracing::error!(?group, "an exposure epoch was not ended by wait");
            active::close_post(self.core, &group);
        }
    }
}
