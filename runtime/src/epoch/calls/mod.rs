//! Epochs as calls, for programs translated from MPI: what types check in [`crate::Epoch`] is checked at run time here.

mod door;
mod layouts;
mod operations;
mod requests;

use std::marker::PhantomData;

use super::access::Access;
use super::sync::{By, Coverage, with_group};
use crate::window::Core;
use crate::{Assert, Element, LockKind, Result};
pub use door::{NotYet, Transfer, Update};

/// Epochs of a window that are opened and closed by calls (MPI-4.1 §12.5). Closed at the latest when this value goes.
///
/// Origin buffers are copied by the call, gets are complete when the call returns: no buffer is borrowed. Errors are as
/// those of [`crate::Epoch`], and [`crate::Class::RmaSync`] for a call in a wrong order: an operation without an epoch that covers
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
    access: Access<'w>,
    _elements: PhantomData<T>,
}

impl<'w, T: Element> Explicit<'w, T> {
    pub(crate) fn new(core: &'w Core) -> Self {
        Self { access: Access { core, only: None }, _elements: PhantomData }
    }

    /// The window.
    #[inline(always)]
    fn core(&self) -> &'w Core {
        self.access.core
    }

    /// Opens an epoch to `target` (`MPI_Win_lock`). Over a network the lock may be taken later, as by [`crate::Window::lock`].
    ///
    /// # Errors
    /// No such rank; an epoch is open that does not go with it; another assertion than `NOCHECK`; the hint `no_locks`.
    pub fn lock(&self, kind: LockKind, target: usize, assert: Assert) -> Result<()> {
        let core = self.core();
        core.instead_of_fence(|| core.lock(kind, target, assert, By::Calls))
    }

    /// Completes everything at `target` and closes the epoch (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// No lock of `target` is held; an operation failed.
    pub fn unlock(&self, target: usize) -> Result<()> {
        self.core().unlock(target, By::Calls)
    }

    /// Opens an epoch to all ranks (`MPI_Win_lock_all`).
    ///
    /// # Errors
    /// As [`Explicit::lock`].
    pub fn lock_all(&self, assert: Assert) -> Result<()> {
        let core = self.core();
        core.instead_of_fence(|| core.lock_all(assert, By::Calls))
    }

    /// Completes everything and closes the epoch (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn unlock_all(&self) -> Result<()> {
        self.core().unlock_all(By::Calls)
    }

    /// Completes what was done since the last fence, everywhere, and begins what follows (`MPI_Win_fence`). Collective.
    ///
    /// # Errors
    /// Another epoch is open; an assertion that is not of fences, or does not hold; an operation failed. After an error of
    /// an operation the fence has taken place all the same.
    pub fn fence(&self, assert: Assert) -> Result<()> {
        self.core().fence(assert)
    }

    /// Opens an access epoch to the ranks of `group`, each from its post on (`MPI_Win_start`). Does not wait: the first
    /// operation to a rank waits for its post.
    ///
    /// # Errors
    /// No such rank, or one twice; an epoch is open that does not go with it; another assertion than `NOCHECK`.
    pub fn start(&self, group: &[usize], assert: Assert) -> Result<()> {
        let core = self.core();
        core.instead_of_fence(|| core.start(group, assert, By::Calls))
    }

    /// Completes the operations of the epoch that [`Explicit::start`] opened, and closes it (`MPI_Win_complete`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn complete(&self) -> Result<()> {
        self.core().complete_start(By::Calls)
    }

    /// Opens an exposure epoch to the ranks of `group` (`MPI_Win_post`). Does not wait.
    ///
    /// # Errors
    /// No such rank, or one twice; an epoch is open that does not go with it; an assertion that is not of posts.
    pub fn post(&self, group: &[usize], assert: Assert) -> Result<()> {
        let core = self.core();
        assert.check("post").map_err(|e| core.name(e))?;
        with_group(core, "post", group, |group| {
            core.instead_of_fence(|| core.post(group, assert))?;
            core.keep_posted(group);
            Ok(())
        })
    }

    /// Waits until every rank of the group has completed its accesses, and closes the exposure epoch (`MPI_Win_wait`).
    ///
    /// # Errors
    /// No such epoch is open; a peer is gone; the deadline passes. The epoch is then closed, too.
    pub fn wait(&self) -> Result<()> {
        let core = self.core();
        core.take_posted("wait", |group| core.wait(group))
    }

    /// [`Explicit::wait`] if it need not wait (`MPI_Win_test`). Returns whether the epoch has ended.
    ///
    /// # Errors
    /// As [`Explicit::wait`].
    pub fn test(&self) -> Result<bool> {
        let core = self.core();
        core.take_posted("test", |group| {
            let ended = core.test(group);
            if !matches!(ended, Ok(true)) {
                core.keep_posted(group);
            }
            ended
        })
    }

    /// Completes all operations to `target`, here and there (`MPI_Win_flush`).
    ///
    /// # Errors
    /// No epoch of lock or lock_all; an operation failed.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        if self.core().shortcut.flush(target) {
            return Ok(());
        }
        self.flush_otherwise(target)
    }

    #[inline(never)]
    fn flush_otherwise(&self, target: usize) -> Result<()> {
        let core = self.core();
        match core.peers.made(target) {
            Some(peer) if peer.coverage() == Coverage::Passive => core.flush_peer(target, peer),
            _ => core.check_flush(target).and_then(|()| core.flush(target)),
        }
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
        self.flush_every("flush_all")
    }

    /// [`Explicit::flush_local`] to every target (`MPI_Win_flush_local_all`).
    ///
    /// # Errors
    /// As [`Explicit::flush`].
    pub fn flush_local_all(&self) -> Result<()> {
        self.flush_every("flush_local_all")
    }

    fn flush_every(&self, operation: &'static str) -> Result<()> {
        self.core().check_passive(operation)?;
        self.core().flush_all(operation)
    }
}

impl<T> Drop for Explicit<'_, T> {
    fn drop(&mut self) {
        self.access.core.end_calls();
    }
}
