//! The calls that open an epoch, run a body in it, and close it.

use std::marker::PhantomData;

use super::Epoch;
use crate::epoch::access::Access;
use crate::epoch::sync::{By, synchronise, with_group};
use crate::window::Core;
use crate::{Assert, Class, Element, Local, LockKind, Result, Window};

impl<T: Element> Window<T> {
    /// Locks `target`, runs `body` in an access epoch to it, completes all operations there and unlocks
    /// (`MPI_Win_lock`, `MPI_Win_unlock`, MPI-4.1 §12.5.3). The target does nothing for it. Locks are fair: ranks are
    /// served in the order in which they ask.
    ///
    /// Over a network the lock is taken when an operation needs it, by a flush, or with the end of the epoch, so that a short
    /// epoch is one message: a lock that guards more than RMA to its target guards that from a flush on.
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
        let core = &self.core;
        core.lock(kind, target, assert, By::Scope)?;
        within(Scope { core, only: Some(target), close: |core, target| core.unlock(target, By::Scope) }, body)
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
        let core = &self.core;
        core.lock_all(assert, By::Scope)?;
        within(Scope { core, only: None, close: |core, _| core.unlock_all(By::Scope) }, body)
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
        core.open_fence(By::Scope)?;
        let scope = Scope { core, only: None, close: |core, _| core.close_fence(true) };
        synchronise(core, before)?;
        let result = within(scope, body);
        // Whatever happened here, the others come to their second fence.
        let fenced = synchronise(core, after);
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
        let core = &self.core;
        core.start(group, assert, By::Scope)?;
        within(Scope { core, only: None, close: |core, _| core.complete_start(By::Scope) }, body)
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
        with_group(core, "post", group, |group| {
            core.post(group, assert)?;
            let exposed = Exposed { core, group };
            let result = body(self.local());
            std::mem::forget(exposed);
            // Whatever happened here, the others access the window.
            let waited = core.wait(group);
            let result = result?;
            waited.map(|()| result)
        })
    }
}

/// An exposure epoch that ends when its body panics.
struct Exposed<'a> {
    core: &'a Core,
    group: &'a [usize],
}

impl Drop for Exposed<'_> {
    fn drop(&mut self) {
        self.core.close_post(self.group);
    }
}

/// An open access epoch, which ends with it.
struct Scope<'w> {
    core: &'w Core,
    /// The only target that it covers.
    only: Option<usize>,
    close: fn(&Core, usize) -> Result<()>,
}

impl Scope<'_> {
    #[inline(always)]
    fn end(&self) -> Result<()> {
        (self.close)(self.core, self.only.unwrap_or_default())
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "an epoch ended by unwinding is not complete");
        }
    }
}

/// Runs `body`, then completes the epoch whatever `body` returned, or if it panics.
#[inline(always)]
fn within<'env, T, R>(scope: Scope<'_>, body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<R>) -> Result<R> {
    let access = Access { core: scope.core, only: scope.only };
    let result = body(&Epoch { access, _buffers: PhantomData, _elements: PhantomData });
    let closed = std::mem::ManuallyDrop::new(scope).end();
    let result = result?;
    closed.map(|()| result)
}
