//! Epochs as calls, for programs translated from MPI: what types check in [`crate::Epoch`] is checked at run time here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::access::Access;
use super::{active, fence};
use crate::window::Core;
use crate::{Assert, Class, Element, LockKind, NULL_RANK, Result};

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
    locks: RefCell<BTreeMap<usize, Access<'w>>>,
    all: RefCell<Option<Access<'w>>>,
    started: RefCell<Option<Access<'w>>>,
    fenced: RefCell<Option<Access<'w>>>,
    /// Operations were started since the last fence: only then it has begun an epoch (§12.5.1).
    used: Cell<bool>,
    /// The ranks to which the window is posted.
    posted: RefCell<Option<Box<[usize]>>>,
    _elements: PhantomData<T>,
}

impl<'w, T: Element> Explicit<'w, T> {
    pub(crate) fn new(core: &'w Core) -> Self {
        Self {
            core,
            locks: RefCell::default(),
            all: RefCell::new(None),
            started: RefCell::new(None),
            fenced: RefCell::new(None),
            used: Cell::new(false),
            posted: RefCell::new(None),
            _elements: PhantomData,
        }
    }

    /// Opens another epoch by `open`. A fence after which nothing was done has begun no epoch: it makes way, and is as
    /// before if `open` fails.
    fn instead_of_fence<R>(&self, open: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.used.get() {
            return open();
        }
        let Some(fence) = self.fenced.take() else { return open() };
        fence.close()?;
        let opened = open();
        if opened.is_err() {
            *self.fenced.borrow_mut() = Some(Access::fence(self.core)?);
        }
        opened
    }

    /// Opens an epoch to `target` (`MPI_Win_lock`).
    ///
    /// # Errors
    /// No such rank; an epoch is open that does not go with it; another assertion than `NOCHECK`; the hint `no_locks`.
    pub fn lock(&self, kind: LockKind, target: usize, assert: Assert) -> Result<()> {
        let access = self.instead_of_fence(|| Access::lock(self.core, kind, target, assert))?;
        self.locks.borrow_mut().insert(target, access);
        Ok(())
    }

    /// Completes everything at `target` and closes the epoch (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// No lock of `target` is held; an operation failed.
    pub fn unlock(&self, target: usize) -> Result<()> {
        let access = self.locks.borrow_mut().remove(&target);
        match access {
            Some(access) => access.close(),
            None => {
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
        *self.all.borrow_mut() = Some(access);
        Ok(())
    }

    /// Completes everything and closes the epoch (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn unlock_all(&self) -> Result<()> {
        match self.all.take() {
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
        if self.used.get() && assert.has(Assert::NOPRECEDE) {
            let message =
                "operations were started since the last fence, and NOPRECEDE says that there are none";
            return Err(core.error(Class::Assert, "fence", message));
        }
        let ended = match self.fenced.take() {
            Some(access) => access.close(),
            None => Ok(()),
        };
        self.used.set(false);
        core.epochs.with(|epochs| epochs.check_none("fence")).map_err(|e| core.name(e))?;
        // Whatever happened here, the others come to their fence.
        let fenced = fence::synchronise(core, assert);
        ended.and(fenced)?;
        if !assert.has(Assert::NOSUCCEED) {
            *self.fenced.borrow_mut() = Some(Access::fence(core)?);
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
        *self.started.borrow_mut() = Some(access);
        Ok(())
    }

    /// Completes the operations of the epoch that [`Explicit::start`] opened, and closes it (`MPI_Win_complete`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn complete(&self) -> Result<()> {
        match self.started.take() {
            Some(access) => access.close(),
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
        *self.posted.borrow_mut() = Some(group);
        Ok(())
    }

    /// Waits until every rank of the group has completed its accesses, and closes the exposure epoch (`MPI_Win_wait`).
    ///
    /// # Errors
    /// No such epoch is open; a peer is gone; the deadline passes. The epoch is then closed, too.
    pub fn wait(&self) -> Result<()> {
        match self.posted.take() {
            Some(group) => active::wait(self.core, &group),
            None => Err(self.not_posted("wait")),
        }
    }

    /// [`Explicit::wait`] if it need not wait (`MPI_Win_test`). Returns whether the epoch has ended.
    ///
    /// # Errors
    /// As [`Explicit::wait`].
    pub fn test(&self) -> Result<bool> {
        let mut posted = self.posted.borrow_mut();
        let Some(group) = posted.as_ref() else { return Err(self.not_posted("test")) };
        let ended = active::test(self.core, group)?;
        if ended {
            *posted = None;
        }
        Ok(ended)
    }

    fn not_posted(&self, operation: &'static str) -> crate::Error {
        let message = "no exposure epoch is open: call post first";
        self.core.error(Class::RmaSync, operation, message)
    }

    /// Whether no epoch is open but an unused one of a fence.
    pub(super) fn is_closed(&self) -> bool {
        let passive = self.all.borrow().is_some() || !self.locks.borrow().is_empty();
        let active = self.started.borrow().is_some() || self.posted.borrow().is_some();
        !passive && !active && !self.used.get()
    }

    /// The window.
    pub(super) fn core(&self) -> &'w Core {
        self.core
    }

    /// Calls `use_it` with the epoch that covers `target`.
    #[inline]
    pub(super) fn access<R>(
        &self,
        operation: &'static str,
        target: usize,
        use_it: impl FnOnce(&Access<'w>) -> Result<R>,
    ) -> Result<R> {
        if let Some(access) = self.all.borrow().as_ref() {
            return use_it(access);
        }
        self.access_to_some(operation, target, use_it)
    }

    /// As [`Explicit::access`], without an epoch of lock_all.
    fn access_to_some<R>(
        &self,
        operation: &'static str,
        target: usize,
        use_it: impl FnOnce(&Access<'w>) -> Result<R>,
    ) -> Result<R> {
        if let Some(access) = self.locks.borrow().get(&target) {
            return use_it(access);
        }
        // Any epoch of a lock will do for the null rank.
        if target == NULL_RANK
            && let Some(access) = self.locks.borrow().values().next()
        {
            return use_it(access);
        }
        if let Some(access) = self.started.borrow().as_ref() {
            return use_it(access);
        }
        if let Some(access) = self.fenced.borrow().as_ref() {
            // An operation that is refused has begun nothing.
            let done = use_it(access);
            self.used.set(self.used.get() || done.is_ok());
            return done;
        }
        if self.core.target(operation, target)?.is_none() {
            let message = "no epoch is open: an operation to the null rank needs one, too";
            return Err(self.core.error(Class::RmaSync, operation, message));
        }
        let message = "no access epoch to this rank is open: call lock, lock_all, start or fence first";
        Err(self.core.error(Class::RmaSync, operation, message).with_target(target))
    }

    /// Calls `use_it` with every passive-target epoch.
    fn passive(&self, operation: &'static str, use_it: impl Fn(&Access<'w>) -> Result<()>) -> Result<()> {
        let (all, locks) = (self.all.borrow(), self.locks.borrow());
        if all.is_none() && locks.is_empty() {
            let message = "no epoch of lock or lock_all is open: flush is for those";
            return Err(self.core.error(Class::RmaSync, operation, message));
        }
        all.iter().chain(locks.values()).try_for_each(use_it)
    }

    /// Completes all operations to `target`, here and there (`MPI_Win_flush`).
    ///
    /// # Errors
    /// No epoch of lock or lock_all; an operation failed.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        if let Some(access) = self.all.borrow().as_ref() {
            return access.flush(target);
        }
        if let Some(access) = self.locks.borrow().get(&target) {
            return access.flush(target);
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
        if let Some(group) = self.posted.take() {
            tracing::error!(?group, "an exposure epoch was not ended by wait");
            active::close_post(self.core, &group);
        }
    }
}
