//! The calls for one request (MPI-4.1 §3.7.3, §3.7.6, §3.8.4, §3.9).

use std::ffi::c_int;

use super::{COMPLETE, Outcome, RequestObject, get, remove, slots};
use crate::abi::{REQUEST_NULL, Request, Status};
use crate::failure::Result;
use crate::pointer::{Pointer, flag};

/// Gives a program the status of what has ended, well or not, unless it does not want it. Its error field is for calls of
/// several requests.
pub fn give(outcome: Outcome, status: Pointer<Status>) -> Result<()> {
    let (ended, failed) = match outcome {
        Ok(ended) => (ended, Ok(())),
        Err(failure) => (failure.status(), Err(failure)),
    };
    if !status.is_ignored() {
        store(ended, status, 0)?;
    }
    failed
}

/// Stores a status but for its error field (§3.2.5); an empty one whole (§3.7.3).
pub fn store(new: Status, status: Pointer<Status>, index: usize) -> Result<()> {
    if new == Status::EMPTY {
        return status.set_at(index, new);
    }
    let error = status.at(index)?.error;
    status.set_at(index, Status { error, ..new })
}

/// The request of a handle; nothing of `MPI_REQUEST_NULL`.
pub(super) fn object(request: Request) -> Result<Option<std::sync::Arc<RequestObject>>> {
    if request == REQUEST_NULL { Ok(None) } else { get(request).map(Some) }
}

/// Waits for a request, and takes its outcome; its handle is gone unless it is persistent, or goes on.
pub(super) fn end(request: Pointer<Request>, index: usize, object: &RequestObject) -> Result<Outcome> {
    let (outcome, goes_on) = object.take();
    if object.starts().is_none() && !goes_on {
        remove(request.at(index)?)?;
        request.set_at(index, REQUEST_NULL)?;
    }
    Ok(outcome)
}

/// Whether a request is the one that is always complete: then waiting for it is over.
#[inline(always)]
fn is_over(request: Pointer<Request>, status: Pointer<Status>) -> bool {
    let over = request.peek() == Some(COMPLETE);
    if over {
        request.replace(REQUEST_NULL);
        status.give(Status::EMPTY);
    }
    over
}

/// What is over when it is asked for: tried before all else.
pub mod short {
    use std::ffi::c_int;

    use super::is_over;
    use crate::abi::{Request, SUCCESS, Status};
    use crate::pointer::Pointer;

    /// `MPI_Wait`.
    #[inline(always)]
    pub fn wait(request: Pointer<Request>, status: Pointer<Status>) -> Option<c_int> {
        is_over(request, status).then_some(SUCCESS)
    }

    /// `MPI_Test`.
    #[inline(always)]
    pub fn test(request: Pointer<Request>, ended: Pointer<c_int>, status: Pointer<Status>) -> Option<c_int> {
        if ended.is_null() || !is_over(request, status) {
            return None;
        }
        ended.replace(1);
        Some(SUCCESS)
    }
}

/// Waits for the request at a place of a list, and takes its outcome; nothing of a null one.
pub(super) fn end_at(requests: Pointer<Request>, index: usize) -> Result<Outcome> {
    let request = requests.at(index)?;
    if request == COMPLETE {
        requests.replace_at(index, REQUEST_NULL);
        return Ok(Ok(Status::EMPTY));
    }
    if let Some(in_slot) = slots::find(request)
        && let Some(outcome) = in_slot.end(requests, index)?
    {
        return Ok(outcome);
    }
    match object(request)? {
        None => Ok(Ok(Status::EMPTY)),
        Some(object) => end(requests, index, &object),
    }
}

/// `MPI_Wait`.
pub fn wait(request: Pointer<Request>, status: Pointer<Status>) -> Result<()> {
    give(end_at(request, 0)?, status)
}

/// `MPI_Test`.
pub fn test(request: Pointer<Request>, ended: Pointer<c_int>, status: Pointer<Status>) -> Result<()> {
    let handle = request.get()?;
    ended.check()?;
    if let Some(in_slot) = slots::find(handle)
        && let Ok(there) = in_slot.poll()
    {
        ended.set(flag(there))?;
        if !there {
            return Ok(());
        }
        if let Some(outcome) = in_slot.take(request, 0) {
            return give(outcome, status);
        }
    }
    match object(handle)? {
        None => {
            ended.set(flag(true))?;
            give(Ok(Status::EMPTY), status)
        }
        Some(object) if object.poll() => {
            ended.set(flag(true))?;
            give(end(request, 0, &object)?, status)
        }
        Some(_) => ended.set(flag(false)),
    }
}

/// `MPI_Request_get_status`.
pub fn request_get_status(request: Request, ended: Pointer<c_int>, status: Pointer<Status>) -> Result<()> {
    match object(request)? {
        Some(object) if !object.poll() => ended.set(flag(false)),
        object => {
            ended.set(flag(true))?;
            give(object.map_or(Ok(Status::EMPTY), |object| object.peek()), status)
        }
    }
}

/// `MPI_Request_free`.
pub fn request_free(request: Pointer<Request>) -> Result<()> {
    let handle = request.get()?;
    let object = get(handle)?;
    request.set(REQUEST_NULL)?;
    if let Some(general) = object.general() {
        return general.abandon(handle);
    }
    object.abandon();
    remove(handle)
}

/// `MPI_Cancel`.
pub fn cancel(request: Pointer<Request>) -> Result<()> {
    get(request.get()?)?.cancel()
}

/// `MPI_Start`.
pub fn start(request: Pointer<Request>) -> Result<()> {
    get(request.get()?)?.start()
}

/// `MPI_Startall`.
pub fn startall(n: c_int, requests: Pointer<Request>) -> Result<()> {
    for request in requests.list(crate::group::count(n)?)? {
        get(request)?.start()?;
    }
    Ok(())
}
