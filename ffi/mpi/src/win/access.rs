//! Put, get and accumulates (MPI-4.1 §12.3). The first lines of each are the way of predefined datatypes; others go
//! through layouts.

use std::ffi::{c_int, c_void};

use transom::{DataType, Layout, ReduceOp};

use super::scope::{displacement, moved, plain, target};
use super::{WinObject, peek};
use crate::abi::{Aint, Datatype, ERR_TYPE, Op, Win};
use crate::buffer::{Shaped, bytes, bytes_mut, count, foreign};
use crate::failure::{Failure, Result};
use crate::op;
use crate::types::{self, committed};

/// Where an operation goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub rank: usize,
    pub displacement: usize,
}

impl At {
    #[inline]
    pub fn new(win: &WinObject, rank: c_int, at: Aint) -> Result<Self> {
        Ok(Self { rank: target(rank)?, displacement: displacement(win, at)? })
    }
}

/// `MPI_Put`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline]
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
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    if let Some(len) = moved((n, ty), (target_n, target_ty)) {
        let from = foreign(origin.cast_mut(), len)?;
        return Ok(win.epochs(|epochs| epochs.put_foreign(at.rank, at.displacement, from))?);
    }
    let (from, to) = (committed(ty)?, committed(target_ty)?);
    let from = Shaped::new(origin, count(n)?, &from.datatype)?;
    let to = Layout::new(count(target_n)?, &to.datatype);
    let data = foreign(from.address, from.len)?;
    Ok(win.epochs(|epochs| epochs.put_foreign_as(at.rank, at.displacement, data, from.layout(), to))?)
}

/// `MPI_Get`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline]
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
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    if let Some(len) = moved((n, ty), (target_n, target_ty)) {
        let to = foreign(origin, len)?;
        return Ok(win.epochs(|epochs| epochs.get_foreign(at.rank, at.displacement, to))?);
    }
    let (to, from) = (committed(ty)?, committed(target_ty)?);
    let to = Shaped::new(origin, count(n)?, &to.datatype)?;
    let from = Layout::new(count(target_n)?, &from.datatype);
    let room = foreign(to.address, to.len)?;
    Ok(win.epochs(|epochs| epochs.get_foreign_as(at.rank, at.displacement, room, to.layout(), from))?)
}

/// `MPI_Accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline]
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
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    let op = op::of_accumulates(op)?;
    if let (Some(len), Some(basic)) = (plain((n, ty), (target_n, target_ty)), types::basic(ty)) {
        let data = bytes(origin, len)?;
        return Ok(win.epochs(|epochs| epochs.accumulate_raw(at.rank, at.displacement, op, basic, data))?);
    }
    let (from, to) = (committed(ty)?, committed(target_ty)?);
    let from = Shaped::new(origin, count(n)?, &from.datatype)?;
    let to = Layout::new(count(target_n)?, &to.datatype);
    let data = bytes(from.address, from.len)?;
    Ok(win.epochs(|epochs| epochs.accumulate_as(at.rank, at.displacement, op, data, from.layout(), to))?)
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
    let win = peek(win)?;
    let at = At::new(win, rank, displacement)?;
    // Nothing is computed of nothing.
    let op = if target_n == 0 { ReduceOp::NoOp } else { op::of_accumulates(op)? };
    let into = committed(result_ty)?;
    let to = committed(target_ty)?;
    // An operation that changes nothing has no operands: what is said of them means nothing (§12.3.4).
    let from = if op == ReduceOp::NoOp { None } else { Some(committed(ty)?) };
    let from = match &from {
        Some(from) => Shaped::new(origin, count(n)?, &from.datatype)?,
        None => Shaped::new(std::ptr::null(), 0, &to.datatype)?,
    };
    let into = Shaped::new(result, count(result_n)?, &into.datatype)?;
    let to = Layout::new(count(target_n)?, &to.datatype);
    let (data, room) = (bytes(from.address, from.len)?, bytes_mut(into.address, into.len)?);
    let (target, displacement) = (at.rank, at.displacement);
    Ok(win.epochs(|epochs| {
        epochs.get_accumulate_as(target, displacement, op, data, from.layout(), room, into.layout(), to)
    })?)
}

/// The element of an operation on one: a predefined datatype.
#[inline]
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
#[inline]
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
    Ok(win.epochs(|epochs| epochs.fetch_op_raw(at.rank, at.displacement, op, ty, value, room))?)
}

/// `MPI_Compare_and_swap`.
#[inline]
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
    Ok(win.epochs(|epochs| epochs.compare_and_swap_raw(at.rank, at.displacement, ty, compare, value, room))?)
}
