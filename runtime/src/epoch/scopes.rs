//! The calls that open an epoch, run a body in it, and close it.

use std::marker::PhantomData;

use super::access::Access;
use super::{Epoch, active, fence};
use crate::window::Core;
use crate::{Assert, Class, Element, Local, LockKind, Result, Window};

impl<T: Element> Window<T> {
    /// Locks `target`, runs `body` in an access epoch to it, completes all operations there and unlocks
    /// (`MPI_Win_lock`, `MPI_Win_unlock`, MPI-4.1 §12.5.3). The target does nothing for it. Locks are fair: ranks are
    /// served in the order in which they ask.
    ///
    /// # Errors
    /// `target` is no rank; an epoch is open that does not go with it; the error of `body`, or of an operation that
    /// could not be completed.
    #[inline]
    pub fn lock<'env, R>(
        &self,
        kind: LockKind,
        target: usize,
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        self.lock_with(kind, target, Assert::NONE, body)
    }

    /// [`Window::lock`] with an assertion: `NOCHECK` takes no lock, since no other rank holds or wants one that conflicts.
    ///
    /// # Errors
    /// As [`Window::lock`]; another assertion.
    #[inline]
    pub fn lock_with<'env, R>(
        &self,
        kind: LockKind,
        target: usize,
        assert: Assert,
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        within(&Access::lock(&self.core, kind, target, assert)?, body)
    }

    /// Runs `body` in an access epoch to all ranks, with shared locks (`MPI_Win_lock_all`, §12.5.3). Not collective.
    ///
    /// A target's lock is taken when the target is first accessed.
    ///
    /// # Errors
    /// As [`Window::lock`].
    #[inline]
    pub fn lock_all<'env, R>(&self, body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>) -> Result<R> {
        self.lock_all_with(Assert::NONE, body)
    }

    /// [`Window::lock_all`] with an assertion: `NOCHECK` takes no locks.
    ///
    /// # Errors
    /// As [`Window::lock_with`].
    #[inline]
    pub fn lock_all_with<'env, R>(
        &self,
        assert: Assert,
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        within(&Access::lock_all(&self.core, assert)?, body)
    }

    /// Runs `body` between two fences (`MPI_Win_fence`, §12.5.1). Collective: after the first fence every rank's window
    /// may be accessed, after the second everything is complete everywhere.
    ///
    /// # Errors
    /// As [`Window::lock`] and [`crate::Communicator::barrier`].
    pub fn fence<'env, R>(&self, body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>) -> Result<R> {
        self.fence_with(Assert::NONE, Assert::NONE, body)
    }

    /// [`Window::fence`] with assertions for the fence before `body` and the one after it. (That nothing precedes the
    /// first and nothing succeeds the second need not be said.)
    ///
    /// # Errors
    /// As [`Window::fence`]; an assertion that is not of fences, or contradicts `body`.
    pub fn fence_with<'env, R>(
        &self,
        before: Assert,
        after: Assert,
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        let core = &self.core;
        let checked = before.check("fence").and_then(|()| after.check("fence"));
        checked.map_err(|e| core.name(e))?;
        if before.has(Assert::NOSUCCEED) || after.has(Assert::NOPRECEDE) {
            let message = "operations lie between these two fences: NOSUCCEED is for the second, NOPRECEDE for the first";
            return Err(core.error(Class::Assert, "fence", message));
        }
        let access = Access::fence(core)?;
        fence::synchronise(core, before)?;
        let result = within(&access, body);
        // Whatever happened here, the others come to their second fence.
        let fenced = fence::synchronise(core, after);
        let result = result?;
        fenced.map(|()| result)
    }

    /// Runs `body` in an access epoch to the ranks of `group`, each of which exposes its window to this rank meanwhile
    /// (`MPI_Win_start`, `MPI_Win_complete`, §12.5.2). The first operation to a rank waits for its post.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let window = job.allocate::<u32>(1)?;
    ///     if job.rank() == 0 {
    ///         window.start(&[1], |epoch| epoch.put_value(1, 0, 5))?;
    ///     } else {
    ///         window.expose(&[0], |_| Ok(()))?;
    ///         assert_eq!(window.local().get(0)?, 5);
    ///     }
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such rank, or one twice; an epoch is open that does not go with it; the error of `body`, or of an operation.
    pub fn start<'env, R>(
        &self,
        group: &[usize],
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        self.start_with(group, Assert::NONE, body)
    }

    /// [`Window::start`] with an assertion: `NOCHECK` does not wait for the posts, which say so, too.
    ///
    /// # Errors
    /// As [`Window::start`]; another assertion.
    pub fn start_with<'env, R>(
        &self,
        group: &[usize],
        assert: Assert,
        body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        within(&Access::start(&self.core, group, assert)?, body)
    }

    /// Exposes this rank's window to the ranks of `group`, runs `body`, and waits until all of them have completed
    /// their accesses (`MPI_Win_post`, `MPI_Win_wait`, §12.5.2).
    ///
    /// # Errors
    /// As [`Window::start`]; a peer is gone.
    pub fn expose<R>(&self, group: &[usize], body: impl FnOnce(Local<'_, T>) -> Result<R>) -> Result<R> {
        self.expose_with(group, Assert::NONE, body)
    }

    /// [`Window::expose`] with assertions of post.
    ///
    /// # Errors
    /// As [`Window::expose`]; an assertion that is not of posts.
    pub fn expose_with<R>(
        &self,
        group: &[usize],
        assert: Assert,
        body: impl FnOnce(Local<'_, T>) -> Result<R>,
    ) -> Result<R> {
        let core = &self.core;
        assert.check("post").map_err(|e| core.name(e))?;
        let group = active::check_group(core, "post", group)?;
        active::post(core, &group, assert)?;
        let exposed = Exposed { core, group: &group };
        let result = body(self.local());
        std::mem::forget(exposed);
        // Whatever happened here, the others access the window.
        let waited = active::wait(core, &group);
        let result = result?;
        waited.map(|()| result)
    }
}

/// An exposure epoch that ends when its body panics.
struct Exposed<'a> {
    core: &'a Core,
    group: &'a [usize],
}

impl Drop for Exposed<'_> {
    fn drop(&mut self) {
        active::close_post(self.core, self.group);
    }
}

/// Runs `body`, then completes the epoch whatever `body` returned. (If it panics, `access` is completed by its drop.)
#[inline]
fn within<'env, T, R>(access: &Access<'_>, body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>) -> Result<R> {
    let result = body(&Epoch { access, _buffers: PhantomData, _elements: PhantomData });
    let closed = access.close();
    let result = result?;
    closed.map(|()| result)
}
