//! Put, get and accumulates (MPI-4.1 §12.3): arguments become descriptions of operations. What is short has been tried before
//! (`short.rs`).

use std::ffi::{c_int, c_void};

use transom::{DataType, Layout, ReduceOp, Transfer, Update};

use super::scope::{displacement, moved, target};
use super::{WinObject, peek};
use crate::abi::{Aint, Datatype, ERR_TYPE, Op, Win};
use crate::buffer::{Shaped, bytes, bytes_mut, count, foreign};
use crate::failure::{Failure, Result};
use crate::op;
use crate::types::{self, committed};

/// Where an operation goes.
#[derive(Debug, Clone, Copy)]
struct At {
    rank: usize,
    displacement: usize,
}

impl At {
    #[inline]
    fn new(win: &WinObject, rank: c_int, at: Aint) -> Result<Self> {
        Ok(Self { rank: target(rank)?, displacement: displacement(win, at)? })
    }
}

/// A buffer of the program's: address, count, datatype.
pub(super) type Here = (*const c_void, i64, Datatype);
/// The other side: rank, displacement, count, datatype.
pub(super) type There = (c_int, Aint, i64, Datatype);

/// What is left of an operation with a request.
pub(super) type Started = Option<transom::Request<()>>;

/// A put or get, with a request or without.
pub(super) fn transfer(
    win: Win,
    (address, n, ty): Here,
    (rank, displacement, target_n, target_ty): There,
    (puts, requested): (bool, bool),
) -> Result<Started> {
    let win = peek(win)?;
    let At { rank: target, displacement } = At::new(win, rank, displacement)?;
    if let Some(len) = moved((n, ty), (target_n, target_ty)) {
        let memory = foreign(address.cast_mut(), len)?;
        let transfer = Transfer { target, displacement, memory, layouts: None, puts, requested };
        return Ok(win.epochs().transfer(transfer)?);
    }
    let (here, there) = (committed(ty)?, committed(target_ty)?);
    let here = Shaped::new(address, count(n)?, &here.datatype)?;
    let layouts = Some((here.layout(), Layout::new(count(target_n)?, &there.datatype)));
    let memory = foreign(here.address, here.len)?;
    Ok(win.epochs().transfer(Transfer { target, displacement, memory, layouts, puts, requested })?)
}

/// An accumulate, fetching to `result` or not, with a request or without.
pub(super) fn update(
    win: Win,
    (origin, n, ty): Here,
    result: Option<Here>,
    (rank, displacement, target_n, target_ty): There,
    (op, requested): (Op, bool),
) -> Result<Started> {
    let win = peek(win)?;
    let At { rank: target, displacement } = At::new(win, rank, displacement)?;
    // Nothing is computed of nothing.
    let op = if target_n == 0 && result.is_some() { ReduceOp::NoOp } else { op::of_accumulates(op)? };
    let to = committed(target_ty)?;
    // An operation that changes nothing has no operands: what is said of them means nothing (§12.3.4).
    let from = if op == ReduceOp::NoOp && result.is_some() { None } else { Some(committed(ty)?) };
    let from = match &from {
        Some(from) => Shaped::new(origin, count(n)?, &from.datatype)?,
        None => Shaped::new(std::ptr::null(), 0, &to.datatype)?,
    };
    let into_ty = result.map(|(_, _, ty)| committed(ty)).transpose()?;
    let into = match (result, &into_ty) {
        (Some((address, n, _)), Some(ty)) => Some(Shaped::new(address, count(n)?, &ty.datatype)?),
        _ => None,
    };
    let operands = (bytes(from.address, from.len)?, from.layout());
    let result = match &into {
        Some(into) => Some((foreign(into.address, into.len)?, into.layout())),
        None => None,
    };
    let layout = Layout::new(count(target_n)?, &to.datatype);
    Ok(win.epochs().update(Update { target, displacement, op, operands, result, layout, requested })?)
}

/// `MPI_Put`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn put(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    win: Win,
) -> Result<()> {
    let there = (rank, displacement, target_n, target_ty);
    transfer(win, (origin, n, ty), there, (true, false)).map(drop)
}

/// `MPI_Get`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn get(
    origin: *mut c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    win: Win,
) -> Result<()> {
    let there = (rank, displacement, target_n, target_ty);
    transfer(win, (origin, n, ty), there, (false, false)).map(drop)
}

/// `MPI_Accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn accumulate(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    target_n: i64,
    target_ty: Datatype,
    op: Op,
    win: Win,
) -> Result<()> {
    let there = (rank, displacement, target_n, target_ty);
    update(win, (origin, n, ty), None, there, (op, false)).map(drop)
}

/// `MPI_Get_accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn get_accumulate(
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
) -> Result<()> {
    let (there, result) =
        ((rank, displacement, target_n, target_ty), (result.cast_const(), result_n, result_ty));
    update(win, (origin, n, ty), Some(result), there, (op, false)).map(drop)
}

/// The element of an operation on one: a predefined datatype.
fn element(ty: Datatype) -> Result<DataType> {
    match types::basic(ty) {
        Some(ty) => Ok(ty),
        None => Err(not_predefined(ty)),
    }
}

#[cold]
fn not_predefined(ty: Datatype) -> Failure {
    match types::get(ty) {
        Ok(_) => Failure::new(ERR_TYPE, "the operation is on one element of a predefined datatype"),
        Err(failure) => failure,
    }
}

/// `MPI_Fetch_and_op`.
pub fn fetch_and_op(
    origin: *const c_void,
    result: *mut c_void,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    op: Op,
    win: Win,
) -> Result<()> {
    const MOST: usize = 32;
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    let (op, ty) = (op::of_accumulates(op)?, element(ty)?);
    let room = bytes_mut(result, ty.size())?;
    // MPI_NO_OP has no operand.
    let value = if op == ReduceOp::NoOp { &[0; MOST] } else { bytes(origin, ty.size())? };
    Ok(win.epochs().fetch_op_raw(at.rank, at.displacement, (op, ty), value, room)?)
}

/// `MPI_Compare_and_swap`.
pub fn compare_and_swap(
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    ty: Datatype,
    rank: c_int,
    displacement: Aint,
    win: Win,
) -> Result<()> {
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    let ty = element(ty)?;
    let (value, compare) = (bytes(origin, ty.size())?, bytes(compare, ty.size())?);
    let room = bytes_mut(result, ty.size())?;
    Ok(win.epochs().compare_and_swap_raw(at.rank, at.displacement, ty, (compare, value), room)?)
}
