//! Operations with requests (MPI-4.1 §12.3.5). Their requests are complete when the call returns: puts and accumulates
//! have copied their operands, gets have their data.

use std::ffi::{c_int, c_void};

use transom::{Explicit, Layout};

use super::access::At;
use super::{WinObject, access, peek};
use crate::abi::{Aint, Datatype, Op, Request, Win};
use crate::buffer::{Shaped, bytes, bytes_mut, count};
use crate::failure::Result;
use crate::place::Place;
use crate::request;
use crate::types::committed;

/// Whether an epoch allows requests; nothing of the null rank is ever asked.
fn check(win: &WinObject, operation: &'static str, rank: usize) -> Result<()> {
    Ok(win.epochs(|epochs: &Explicit<'_, u8>| epochs.check_requests(operation, rank))?)
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
    let object = peek(win)?;
    let at = At::new(object, rank, displacement)?;
    check(object, "rput", at.rank)?;
    let (from, to) = (committed(ty)?, committed(target_ty)?);
    let from = Shaped::new(origin, count(n)?, &from.datatype)?;
    let to = Layout::new(count(target_n)?, &to.datatype);
    let data = bytes(from.address, from.len)?;
    object.epochs(|epochs| epochs.put_as(at.rank, at.displacement, data, from.layout(), to))?;
    request.set(request::done()?)
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
    let object = peek(win)?;
    let at = At::new(object, rank, displacement)?;
    check(object, "rget", at.rank)?;
    let (to, from) = (committed(ty)?, committed(target_ty)?);
    let to = Shaped::new(origin, count(n)?, &to.datatype)?;
    let from = Layout::new(count(target_n)?, &from.datatype);
    let room = bytes_mut(to.address, to.len)?;
    object.epochs(|epochs| epochs.get_as(at.rank, at.displacement, room, to.layout(), from))?;
    request.set(request::done()?)
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
    let object = peek(win)?;
    check(object, "raccumulate", At::new(object, rank, displacement)?.rank)?;
    access::accumulate(origin, n, ty, rank, displacement, target_n, target_ty, op, win)?;
    request.set(request::done()?)
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
    let object = peek(win)?;
    check(object, "rget_accumulate", At::new(object, rank, displacement)?.rank)?;
    let into = (result, result_n, result_ty);
    access::get_accumulate(
        origin,
        n,
        ty,
        into.0,
        into.1,
        into.2,
        rank,
        displacement,
        target_n,
        target_ty,
        op,
        win,
    )?;
    request.set(request::done()?)
}
