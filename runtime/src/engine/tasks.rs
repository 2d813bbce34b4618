//! Nonblocking work: futures that the engine drives after each poll, in whichever thread polls, and the promises that they
//! complete.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use slab::Slab;

use super::Engine;
use crate::{Error, Result};

/// A future, and what it completes.
struct Task {
    of: Completes,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Task {
    fn is_pending(&mut self, context: &mut Context<'_>) -> bool {
        self.future.as_mut().poll(context).is_pending()
    }
}

/// The address of a promise that a task completes, while that is there; nothing else is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completes(usize);

/// The futures that the engine drives, and the wakers of awaiting tasks.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: Mutex<Vec<Task>>,
    len: AtomicUsize,
    /// Sends that wait for space in a queue, which no event announces.
    full: AtomicUsize,
    /// To be woken when no lock is held any more.
    wakeups: Mutex<Vec<Waker>>,
    woken: AtomicBool,
    /// Awaiting tasks of the user's, to be woken for failures and deadlines.
    awaiting: Mutex<Slab<Waker>>,
    awaited: AtomicUsize,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("len", &self.len).field("full", &self.full).finish_non_exhaustive()
    }
}

/// A send waits for space in a queue until this is dropped.
pub(crate) struct FullQueue<'e>(&'e Tasks);

impl Drop for FullQueue<'_> {
    fn drop(&mut self) {
        self.0.full.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Tasks {
    /// Whether a send must be retried without an event.
    pub fn has_full_queue(&self) -> bool {
        self.full.load(Ordering::Acquire) > 0
    }

    /// Whether there is nothing to drive.
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Polls a new task, and keeps it if it is not done.
    fn start(&self, mut task: Task) {
        let mut tasks = self.tasks.lock();
        // Counted before the first poll: a thread that finds an event after that poll sees the count, waits for the lock,
        // and drives the task.
        self.len.store(tasks.len() + 1, Ordering::Release);
        if task.is_pending(&mut Context::from_waker(Waker::noop())) {
            tasks.push(task);
        }
        self.len.store(tasks.len(), Ordering::Release);
    }

    /// Polls every task.
    #[inline(never)]
    pub fn drive(&self) {
        let mut tasks = self.tasks.lock();
        let mut context = Context::from_waker(Waker::noop());
        tasks.retain_mut(|task| task.is_pending(&mut context));
        self.len.store(tasks.len(), Ordering::Release);
    }

    /// Wakes those whose promises were kept.
    #[cold]
    fn wake_up(&self) {
        if self.woken.swap(false, Ordering::AcqRel) {
            let wakers = std::mem::take(&mut *self.wakeups.lock());
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether tasks of the user's await something.
    pub fn are_awaited(&self) -> bool {
        self.awaited.load(Ordering::Acquire) > 0
    }

    /// Wakes all that await anything: for a look at failures and deadlines.
    pub fn wake_all(&self) {
        let wakers: Vec<Waker> = self.awaiting.lock().iter().map(|(_, waker)| waker.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Engine {
    /// Has the engine drive a future, which completes that promise, to its end.
    pub fn start(&self, of: Completes, future: impl Future<Output = ()> + Send + 'static) {
        self.tasks.start(Task { of, future: Box::pin(future) });
        if self.tasks.has_full_queue() {
            self.progress.interrupt();
        }
    }

    /// Drops the future that was to complete a promise: nothing is done for it any more when this returns.
    pub fn abandon(&self, of: Completes) {
        let mut tasks = self.tasks.tasks.lock();
        let abandoned = tasks.iter().position(|task| task.of == of).map(|place| tasks.remove(place));
        self.tasks.len.store(tasks.len(), Ordering::Release);
        // What it holds is given back by calls that may want the lock.
        drop(tasks);
        drop(abandoned);
    }

    /// Drives what may go on.
    #[inline]
    pub(super) fn drive(&self, found: usize) {
        if !self.tasks.is_empty() && (found > 0 || self.tasks.has_full_queue()) {
            self.tasks.drive();
        }
    }

    /// Wakes the tasks whose promises are complete. No lock may be held.
    #[inline]
    pub fn wake(&self) {
        // Loaded first: a swap takes the cache line from other cores, and there is rarely a waker.
        if self.tasks.woken.load(Ordering::Acquire) {
            self.tasks.wake_up();
        }
    }

    /// Has tasks woken when no lock is held any more.
    pub fn wake_later(&self, wakers: impl IntoIterator<Item = Waker>) {
        self.tasks.wakeups.lock().extend(wakers);
        self.tasks.woken.store(true, Ordering::Release);
    }

    /// Something has arrived that no transport announces: drives and wakes what waits for it.
    pub fn drive_and_wake(&self) {
        self.drive(1);
        self.wake();
        self.wake_sleepers();
    }

    /// Makes threads that sleep in a call check again: something has changed that no transport announces.
    pub fn wake_sleepers(&self) {
        self.progress.interrupt();
    }

    /// Notes that a send waits for space in a queue, until the result is dropped.
    pub fn note_full_queue(&self) -> FullQueue<'_> {
        self.tasks.full.fetch_add(1, Ordering::AcqRel);
        FullQueue(&self.tasks)
    }

    /// Waits until `attempt`, which finds a queue full, gives something.
    pub async fn wait_for_space<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        let _full = self.note_full_queue();
        std::future::poll_fn(|_| attempt().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Has `waker` woken now and then, until [`Engine::not_awaiting`].
    pub fn awaiting(&self, waker: &Waker) -> usize {
        let mut awaiting = self.tasks.awaiting.lock();
        let place = awaiting.insert(waker.clone());
        if self.tasks.awaited.swap(awaiting.len(), Ordering::AcqRel) == 0 {
            drop(awaiting);
            // The progress thread may be asleep without a limit.
            self.progress.interrupt();
        }
        place
    }

    /// The opposite of [`Engine::awaiting`].
    pub fn not_awaiting(&self, place: usize) {
        let mut awaiting = self.tasks.awaiting.lock();
        awaiting.try_remove(place);
        self.tasks.awaited.store(awaiting.len(), Ordering::Release);
    }

    /// Ends all tasks, and the transports that may be at work for them.
    pub fn drop_tasks(&self) {
        if !self.tasks.is_empty() {
            tracing::warn!(rank = self.rank, "operations are under way at the end: they are dropped");
            self.routes.transports().iter().for_each(|transport| transport.abandon());
            let tasks = std::mem::take(&mut *self.tasks.tasks.lock());
            self.tasks.len.store(0, Ordering::Release);
            drop(tasks);
        }
    }
}

/// A result to come.
#[derive(Debug)]
pub(crate) struct Promise<T> {
    complete: AtomicBool,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    result: Option<Result<T>>,
    wakers: Vec<Waker>,
}

impl<T> Default for Promise<T> {
    fn default() -> Self {
        Self {
            complete: AtomicBool::new(false),
            state: Mutex::new(State { result: None, wakers: Vec::new() }),
        }
    }
}

impl<T> Promise<T> {
    /// A new one.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What the task that completes it is known by.
    pub fn completed_by(self: &Arc<Self>) -> Completes {
        Completes(Arc::as_ptr(self).addr())
    }

    /// Completes it. The first result counts.
    pub fn complete(&self, engine: &Engine, result: Result<T>) {
        let mut state = self.state.lock();
        if self.is_complete() {
            return;
        }
        state.result = Some(result);
        self.complete.store(true, Ordering::Release);
        if !state.wakers.is_empty() {
            engine.wake_later(state.wakers.drain(..));
        }
    }

    #[inline]
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// The result, once.
    pub fn take(&self) -> Option<Result<T>> {
        if !self.is_complete() {
            return None;
        }
        let taken = || Error::new(crate::Class::Argument, "wait", "the request has been completed already");
        Some(self.state.lock().result.take().unwrap_or_else(|| Err(taken())))
    }

    /// Has `waker` woken when the result is there. False if it is there already.
    pub fn register(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if self.is_complete() {
            return false;
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.clear();
            state.wakers.push(waker.clone());
        }
        true
    }
}
