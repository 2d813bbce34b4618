//! Several requests at once (MPI-4.1 §3.7.5).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::request::{Awaited, Request, View, Waiter};
use crate::Result;
use crate::waits::Awaits;

/// Waits for all (`MPI_Waitall`, MPI-4.1 §3.7.5); the results are in the order of the requests.
///
/// # Errors
/// The first that a request has; the others are dropped.
pub fn wait_all<T: 'static>(requests: impl IntoIterator<Item = Request<T>>) -> Result<Vec<T>> {
    requests.into_iter().map(Request::wait).collect()
}

/// Waits for one of some requests (`MPI_Waitany`), takes it out, and gives its place and result; `None` of no requests.
///
/// # Errors
/// The request's own, in the result; a peer is gone; the deadline passes.
pub fn wait_any<T: 'static>(requests: &mut Vec<Request<T>>) -> Result<Option<(usize, T)>> {
    await_one("wait_any", requests)?;
    test_any(requests)
}

/// Waits for at least one of some requests (`MPI_Waitsome`), takes out all that are done, and gives their places (before
/// any was taken out) and results.
///
/// # Errors
/// As [`wait_any`].
pub fn wait_some<T: 'static>(requests: &mut Vec<Request<T>>) -> Result<Vec<(usize, T)>> {
    await_one("wait_some", requests)?;
    test_some(requests)
}

/// The first request that is done, taken out, with its place (`MPI_Testany`).
///
/// # Errors
/// As [`wait_any`].
pub fn test_any<T: 'static>(requests: &mut Vec<Request<T>>) -> Result<Option<(usize, T)>> {
    progress(requests)?;
    let Some(slot) = requests.iter().position(Request::is_over) else { return Ok(None) };
    Ok(Some((slot, requests.remove(slot).wait()?)))
}

/// All requests that are done, taken out (`MPI_Testsome`).
///
/// # Errors
/// As [`wait_any`].
pub fn test_some<T: 'static>(requests: &mut Vec<Request<T>>) -> Result<Vec<(usize, T)>> {
    progress(requests)?;
    let mut done = Vec::new();
    let mut left = Vec::with_capacity(requests.len());
    for (slot, request) in std::mem::take(requests).into_iter().enumerate() {
        if request.is_over() {
            done.push((slot, request));
        } else {
            left.push(request);
        }
    }
    *requests = left;
    done.into_iter().map(|(slot, request)| Ok((slot, request.wait()?))).collect()
}

/// All results if all are there (`MPI_Testall`): the requests are then taken.
///
/// # Errors
/// As [`wait_any`].
pub fn test_all<T: 'static>(requests: &mut Vec<Request<T>>) -> Result<Option<Vec<T>>> {
    progress(requests)?;
    if !requests.iter().all(Request::is_over) {
        return Ok(None);
    }
    wait_all(std::mem::take(requests)).map(Some)
}

fn progress<T: 'static>(requests: &[Request<T>]) -> Result<()> {
    let Some(first) = requests.first() else { return Ok(()) };
    first.engine().try_progress()?;
    first.engine().failure().cloned().map_or(Ok(()), Err)
}

/// Waits until one of some requests is done, and leaves them as they are. Of no requests, returns at once.
///
/// # Errors
/// A peer is gone; the deadline passes.
pub fn await_any<T: 'static>(requests: &[&Request<T>]) -> Result<()> {
    await_first("wait_any", &requests.iter().map(|request| request.view()).collect::<Vec<_>>())
}

/// What a thread waits for by [`await_any_of`] while others may complete the request, or take it back.
pub fn waiter<T: 'static>(request: &Request<T>) -> Waiter<T> {
    request.waiter()
}

/// [`await_any`] of requests that others have.
///
/// # Errors
/// As [`await_any`].
pub fn await_any_of<T: 'static>(waiters: &[Waiter<T>]) -> Result<()> {
    await_first("wait_any", &waiters.iter().map(Waiter::view).collect::<Vec<_>>())
}

/// A request that may be part of several others ([`all_of`]).
#[derive(Debug)]
pub struct Part<T: 'static> {
    request: Request<T>,
    is_taken: AtomicBool,
}

impl<T: 'static> Part<T> {
    /// So far, of none.
    pub fn new(request: Request<T>) -> Arc<Self> {
        Arc::new(Self { request, is_taken: AtomicBool::new(false) })
    }

    /// As [`Request::is_done`].
    pub fn is_done(&self) -> bool {
        self.request.is_done()
    }

    fn inner(&self) -> &dyn Awaited<T> {
        self.request.view().inner
    }
}

/// A request that is done when all its parts are. An error of theirs is the first's that takes it. Nothing of no parts.
pub fn all_of<T: 'static>(parts: Vec<Arc<Part<T>>>) -> Option<Request<()>> {
    let member = parts.first()?.request.member().clone();
    Some(Request::new(&member, "wait_all", All(parts)))
}

/// What [`all_of`] awaits.
struct All<T: 'static>(Vec<Arc<Part<T>>>);

impl<T: 'static> All<T> {
    fn under_way(&self) -> Option<&Part<T>> {
        self.0.iter().map(|part| &**part).find(|part| !part.is_done())
    }
}

impl<T: 'static> Awaited<()> for All<T> {
    fn is_done(&self) -> bool {
        self.under_way().is_none()
    }

    fn take(&self) -> Option<Result<()>> {
        if !self.is_done() {
            return None;
        }
        let fresh = self.0.iter().filter(|part| !part.is_taken.swap(true, Ordering::AcqRel));
        // All are taken, whatever the first came to.
        let results: Vec<_> = fresh.filter_map(|part| part.inner().take()).collect();
        Some(results.into_iter().try_for_each(|result| result.map(drop)))
    }

    fn register(&self, waker: &Waker) -> bool {
        self.under_way().is_some_and(|part| part.inner().register(waker) || self.register(waker))
    }

    fn what(&self) -> Awaits {
        let part = self.under_way().or(self.0.first().map(|part| &**part));
        part.map_or_else(|| String::from("nothing").into(), |part| part.inner().what())
    }
}

fn await_one<T: 'static>(operation: &'static str, requests: &[Request<T>]) -> Result<()> {
    await_first(operation, &requests.iter().map(Request::view).collect::<Vec<_>>())
}

fn await_first<T: 'static>(operation: &'static str, requests: &[View<'_, T>]) -> Result<()> {
    let Some(first) = requests.first() else { return Ok(()) };
    let what = || {
        let awaits = first.inner.what();
        match requests.len() {
            1 => awaits,
            several => format!("one of {several} requests, the first of which awaits {awaits}").into(),
        }
    };
    let done = || requests.iter().any(View::is_over).then_some(Ok(()));
    first.engine.wait_until(operation, &what, None, done)
}
