//! Operations with requests (MPI-4.1 §12.3.5). Those to memory at hand are complete when the call returns, and so are
//! accumulates that fetch nothing, whose operands are copied.

use std::ffi::{c_int, c_void};

use super::access::{self, Started, transfer, update};
use super::peek;
use super::scope::target;
use crate::abi::{Aint, Datatype, Op, Request, Status, Win};
use crate::failure::Result;
use crate::handlers::Site;
use crate::place::Place;
use crate::request;

/// Gives the program a request for what is left of an operation.
fn give(started: Started, win: Win, request: Place<Request>) -> Result<()> {
    request.set(match started {
        Some(started) => request::running(request::filled(started, |()| Ok(Status::EMPTY)), Site::Win(win))?,
        None => request::done()?,
    })
}

/// `MPI_Rput`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn rput(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    win: Win,
    request: Place<Request>,
) -> Result<()> {
    request.check()?;
    let there = (rank, displacement, target_n, target_ty);
    let started = transfer(win, (origin, n, ty), there, (true, true))?;
    give(started, win, request)
}

/// `MPI_Rget`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn rget(
    origin: *mut c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    win: Win,
    request: Place<Request>,
) -> Result<()> {
    request.check()?;
    let there = (rank, displacement, target_n, target_ty);
    let started = transfer(win, (origin, n, ty), there, (false, true))?;
    give(started, win, request)
}

/// `MPI_Raccumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn raccumulate(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    op: Op,
    win: Win,
    request: Place<Request>,
) -> Result<()> {
    request.check()?;
    peek(win)?.epochs().check_requests("raccumulate", target(rank)?)?;
    access::accumulate(origin, n, ty, rank, displacement, target_n, target_ty, op, win)?;
    give(None, win, request)
}

/// `MPI_Rget_accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn rget_accumulate(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    result: *mut c_void,
    result_n: i64,
    result_ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    op: Op,
    win: Win,
    request: Place<Request>,
) -> Result<()> {
    request.check()?;
    let (there, result) =
        ((rank, displacement, target_n, target_ty), (result.cast_const(), result_n, result_ty));
    let started = update(win, (origin, n, ty), Some(result), there, (op, true))?;
    give(started, win, request)
}
