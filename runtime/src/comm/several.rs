//! Several requests at once (MPI-4.1 §3.7.5).

use super::request::{Request, View, Waiter};
use crate::Result;

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
