//! Operations with requests (MPI-4.1 §12.3.5). Those to memory at hand are complete when the call returns, and so are
//! accumulates that fetch nothing, whose operands are copied.

use super::access::{self, Started, transfer, update};
use super::peek;
use super::scope::{There, target};
use crate::abi::{Op, Request, Status, Win};
use crate::buffer::Triple;
use crate::failure::Result;
use crate::handlers::ErrorObject;
use crate::pointer::Pointer;
use crate::request;

/// Gives the program a request for what is left of an operation.
fn give(started: Started, win: Win, request: Pointer<Request>) -> Result<()> {
    request.set(match started {
        Some(started) => {
            request::running(request::filled(started, |()| Ok(Status::EMPTY)), ErrorObject::Win(win))?
        }
        None => request::done()?,
    })
}

/// `MPI_Rput`.
pub fn rput(origin: Triple, there: There, win: Win, request: Pointer<Request>) -> Result<()> {
    request.check()?;
    let started = transfer(win, origin, there, (true, true))?;
    give(started, win, request)
}

/// `MPI_Rget`.
pub fn rget(origin: Triple, there: There, win: Win, request: Pointer<Request>) -> Result<()> {
    request.check()?;
    let started = transfer(win, origin, there, (false, true))?;
    give(started, win, request)
}

/// `MPI_Raccumulate`.
pub fn raccumulate(origin: Triple, there: There, op: Op, win: Win, request: Pointer<Request>) -> Result<()> {
    request.check()?;
    peek(win)?.epochs().check_requests("raccumulate", target(there.rank)?)?;
    access::accumulate(origin, there, op, win)?;
    give(None, win, request)
}

/// `MPI_Rget_accumulate`.
pub fn rget_accumulate(
    origin: Triple,
    result: Triple,
    there: There,
    op: Op,
    win: Win,
    request: Pointer<Request>,
) -> Result<()> {
    request.check()?;
    let started = update(win, origin, Some(result), there, (op, true))?;
    give(started, win, request)
}
