//! Requests: what goes on while the caller does something else (MPI-4.1 §3.7, §6.12).

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use crate::engine::{Engine, Promise};
use crate::job::Member;
use crate::waits::Awaits;
use crate::{Class, Error, Result};

/// Something with a result to come.
pub(crate) trait Awaited<T>: Send + Sync {
    fn is_done(&self) -> bool;
    /// The result, once, if it is there.
    fn take(&self) -> Option<Result<T>>;
    /// False if it is there already.
    fn register(&self, waker: &Waker) -> bool;
    /// Whether the operation has been taken back.
    fn cancel(&self) -> bool {
        false
    }
    /// Its request is dropped.
    fn leave(&self) {}
    /// For errors of deadlines.
    fn what(&self) -> Awaits;
}

/// What a request awaits, which others may have, too.
struct Held<T>(Arc<dyn Awaited<T>>);

impl<T> Deref for Held<T> {
    type Target = dyn Awaited<T>;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A request as who waits for it sees it.
pub(super) struct View<'a, T> {
    pub inner: &'a dyn Awaited<T>,
    operation: &'static str,
    pub engine: &'a Engine,
}

impl<T> View<'_, T> {
    /// Whether who waits for it gets a result, or an error.
    pub fn is_over(&self) -> bool {
        self.inner.is_done() || self.in_vain().is_some()
    }

    /// Why it is awaited in vain, if so.
    fn in_vain(&self) -> Option<Error> {
        self.engine.in_vain(self.operation, &|| self.inner.what()).filter(|_| !self.inner.is_done())
    }
}

/// What a thread waits for while others may complete the request, or take it back.
pub struct Waiter<T> {
    inner: Arc<dyn Awaited<T>>,
    operation: &'static str,
    member: Arc<Member>,
}

impl<T> Waiter<T> {
    pub(super) fn view(&self) -> View<'_, T> {
        View { inner: &*self.inner, operation: self.operation, engine: &self.member.engine }
    }
}

impl<T: Send> Awaited<T> for (Arc<Promise<T>>, &'static str) {
    fn is_done(&self) -> bool {
        self.0.is_complete()
    }

    fn take(&self) -> Option<Result<T>> {
        self.0.take()
    }

    fn register(&self, waker: &Waker) -> bool {
        self.0.register(waker)
    }

    fn what(&self) -> Awaits {
        format!("the end of {}", self.1).into()
    }
}

type Map<T, U> = Box<dyn FnOnce(T) -> Result<U> + Send>;

struct Mapped<T, U> {
    inner: Held<T>,
    map: Mutex<Option<Map<T, U>>>,
}

impl<T, U> Awaited<U> for Mapped<T, U> {
    fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    fn take(&self) -> Option<Result<U>> {
        let result = self.inner.take()?;
        let map = self.map.lock().take();
        match map {
            Some(map) => Some(result.and_then(map)),
            None => Some(Err(Error::new(Class::Argument, "wait", "the request has been completed already"))),
        }
    }

    fn register(&self, waker: &Waker) -> bool {
        self.inner.register(waker)
    }

    fn cancel(&self) -> bool {
        self.inner.cancel()
    }

    fn what(&self) -> Awaits {
        self.inner.what()
    }
}

/// An operation under way, and later its result (`MPI_Request`, MPI-4.1 §3.7).
///
/// It goes on by itself: the progress thread drives it while the program computes. A request is a future, too, on any
/// executor. Dropping the request of a receive takes the receive back; everything else goes on to its end.
///
/// ```
/// transom::local(3, |job| {
///     let barrier = job.ibarrier();
///     let sum = job.iallreduce(transom::Sum, &[job.rank() as u64]);
///     assert_eq!(sum.wait()?, [3]);
///     barrier.wait()
/// })?;
/// # Ok::<(), transom::Error>(())
/// ```
#[must_use = "a request is to be awaited: `wait`, `test` or `.await`"]
pub struct Request<T> {
    inner: Held<T>,
    operation: &'static str,
    /// Keeps the job going.
    member: Arc<Member>,
    /// Of a future that has been polled.
    polled: Option<Box<Polled>>,
}

/// What a future has while a task awaits it.
struct Polled {
    /// Since when.
    since: Instant,
    /// Its slot among the awaiting tasks.
    #[expect(dead_code, reason = "given back when it is dropped")]
    slot: WakerSlot,
}

/// Has its waker woken now and then, until it is dropped.
struct WakerSlot {
    member: Arc<Member>,
    slot: usize,
}

impl Drop for WakerSlot {
    fn drop(&mut self) {
        self.member.engine.not_awaiting(self.slot);
    }
}

impl<T> std::fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("operation", &self.operation)
            .field("done", &self.inner.is_done())
            .finish_non_exhaustive()
    }
}

impl<T: 'static> Request<T> {
    pub(crate) fn new(
        member: &Arc<Member>,
        operation: &'static str,
        inner: impl Awaited<T> + 'static,
    ) -> Self {
        Self::shared(member, operation, Arc::new(inner))
    }

    /// The same of what others have, too.
    pub(crate) fn shared(member: &Arc<Member>, operation: &'static str, inner: Arc<dyn Awaited<T>>) -> Self {
        Self { inner: Held(inner), operation, member: member.clone(), polled: None }
    }

    /// The request of a promise.
    pub(crate) fn of(member: &Arc<Member>, operation: &'static str, promise: Arc<Promise<T>>) -> Self
    where
        T: Send,
    {
        Self::new(member, operation, (promise, operation))
    }

    /// A request that is done.
    pub(crate) fn done(member: &Arc<Member>, operation: &'static str, result: Result<T>) -> Self
    where
        T: Send,
    {
        let promise = Promise::new();
        promise.complete(&member.engine, result);
        Self::of(member, operation, promise)
    }

    /// The same request with another result. `map` is called by the thread that takes the result.
    pub fn map<U: 'static>(self, map: impl FnOnce(T) -> Result<U> + Send + 'static) -> Request<U> {
        let Self { inner, operation, member, .. } = self;
        Request::new(&member, operation, Mapped { inner, map: Mutex::new(Some(Box::new(map))) })
    }

    /// The result if it is there; makes progress otherwise (`MPI_Test`). After it has given a result the request is
    /// complete, and another call is an error; but for an error that [goes on](Error::goes_on).
    pub fn test(&self) -> Option<Result<T>> {
        if !self.inner.is_done()
            && let Err(error) = self.engine().try_progress()
        {
            return Some(Err(error));
        }
        self.result().or_else(|| self.view().in_vain().map(Err))
    }

    pub(super) fn view(&self) -> View<'_, T> {
        View { inner: &*self.inner, operation: self.operation, engine: self.engine() }
    }

    /// [`View::is_over`].
    pub(super) fn is_over(&self) -> bool {
        self.view().is_over()
    }

    /// What others wait for.
    pub(super) fn waiter(&self) -> Waiter<T> {
        Waiter { inner: self.inner.0.clone(), operation: self.operation, member: self.member.clone() }
    }

    /// Whether the result is there: then [`Request::test`] gives it.
    pub fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    /// Waits for the result (`MPI_Wait`).
    ///
    /// # Errors
    /// The operation's; a peer is gone; the deadline passes.
    pub fn wait(self) -> Result<T> {
        let Self { inner, member, operation, .. } = &self;
        let waited = member.engine.wait_until(operation, &|| inner.what(), None, || inner.take());
        // What has not ended does with the request.
        waited.map_err(Error::and_ended)
    }

    /// Takes back a receive that has not met a message yet, or a send that has not met a receive (`MPI_Cancel`, §3.8.4): its
    /// result is then an error of [`Class::Cancelled`]. False if it is too late, if the request is of something else, or if
    /// the receiver of a send has yet to answer: [`Request::wait`] tells, and does not wait for a receive any more.
    pub fn cancel(&self) -> bool {
        self.inner.cancel()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.member.engine
    }

    pub(super) fn member(&self) -> &Arc<Member> {
        &self.member
    }

    fn result(&self) -> Option<Result<T>> {
        if let Some(result) = self.inner.take() {
            return Some(result);
        }
        let failed = self.engine().failure().cloned();
        failed.map(Err)
    }
}

impl<T: 'static> Future for Request<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let this = &mut *self;
        if let Some(result) = this.test() {
            return Poll::Ready(result);
        }
        if !this.inner.register(context.waker()) {
            return this.result().map_or(Poll::Pending, Poll::Ready);
        }
        // Anew: the waker may be another one.
        let since = this.polled.take().map_or_else(Instant::now, |polled| polled.since);
        if let Err(error) = this.engine().check_wait(this.operation, &|| this.inner.what(), since.elapsed()) {
            return Poll::Ready(Err(error));
        }
        let slot = this.engine().awaiting(context.waker());
        this.polled = Some(Box::new(Polled { since, slot: WakerSlot { member: this.member.clone(), slot } }));
        Poll::Pending
    }
}

impl<T> Unpin for Request<T> {}
