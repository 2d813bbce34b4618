//! Put, get and accumulates (MPI-4.1 §12.3). The first lines of each are the way of predefined datatypes; others go
//! through layouts.

use std::ffi::{c_int, c_void};

use transom::{DataType, Explicit, Foreign, Layout, ReduceOp};

use super::scope::{displacement, moved, plain, target};
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

/// A put or get: `plain` of bytes, `shaped` between layouts.
#[inline(always)]
pub(super) fn transfer<R>(
    win: Win,
    (address, n, ty): Here,
    (rank, displacement, target_n, target_ty): There,
    plain: impl FnOnce(&Explicit<'_, u8>, usize, usize, Foreign) -> transom::Result<R>,
    shaped: impl FnOnce(&Explicit<'_, u8>, usize, usize, (Foreign, Layout<'_>), Layout<'_>) -> transom::Result<R>,
) -> Result<R> {
    let object = peek(win)?;
    let at = At::new(object, rank, displacement)?;
    if let Some(len) = moved((n, ty), (target_n, target_ty)) {
        let memory = foreign(address.cast_mut(), len)?;
        return Ok(plain(object.epochs(), at.rank, at.displacement, memory)?);
    }
    transfer_shaped(object, at, (address, n, ty), (target_n, target_ty), shaped)
}

#[inline(never)]
fn transfer_shaped<R>(
    win: &WinObject,
    at: At,
    (address, n, ty): Here,
    (target_n, target_ty): (i64, Datatype),
    shaped: impl FnOnce(&Explicit<'_, u8>, usize, usize, (Foreign, Layout<'_>), Layout<'_>) -> transom::Result<R>,
) -> Result<R> {
    let (here, there) = (committed(ty)?, committed(target_ty)?);
    let here = Shaped::new(address, count(n)?, &here.datatype)?;
    let there = Layout::new(count(target_n)?, &there.datatype);
    let memory = foreign(here.address, here.len)?;
    Ok(shaped(win.epochs(), at.rank, at.displacement, (memory, here.layout()), there)?)
}

/// What an accumulate that fetches is given: operation, operands, where what was there goes, where it is.
pub(super) type Fetch<'a> = (ReduceOp, (&'a [u8], Layout<'a>), (Foreign, Layout<'a>), Layout<'a>);

/// An accumulate that fetches.
pub(super) fn fetch<R>(
    win: Win,
    (origin, n, ty): Here,
    (result, result_n, result_ty): Here,
    (rank, displacement, target_n, target_ty): There,
    op: Op,
    work: impl FnOnce(&Explicit<'_, u8>, usize, usize, Fetch<'_>) -> transom::Result<R>,
) -> Result<R> {
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
    let (data, room) = (bytes(from.address, from.len)?, foreign(into.address, into.len)?);
    let what = (op, (data, from.layout()), (room, into.layout()), to);
    Ok(work(win.epochs(), at.rank, at.displacement, what)?)
}

/// `MPI_Put`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
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
    transfer(
        win,
        (origin, n, ty),
        (rank, displacement, target_n, target_ty),
        |epochs, rank, at, data| epochs.put_foreign(rank, at, data),
        |epochs, rank, at, (data, from), to| epochs.put_foreign_as(rank, at, data, from, to),
    )
}

/// `MPI_Get`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
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
    transfer(
        win,
        (origin, n, ty),
        (rank, displacement, target_n, target_ty),
        |epochs, rank, at, room| epochs.get_foreign(rank, at, room),
        |epochs, rank, at, (room, to), from| epochs.get_foreign_as(rank, at, room, to, from),
    )
}

/// `MPI_Accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
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
        return Ok(win.epochs().accumulate_raw(at.rank, at.displacement, op, basic, data)?);
    }
    accumulate_shaped(win, at, op, (origin, n, ty), (target_n, target_ty))
}

#[inline(never)]
fn accumulate_shaped(
    win: &WinObject,
    at: At,
    op: ReduceOp,
    (origin, n, ty): Here,
    (target_n, target_ty): (i64, Datatype),
) -> Result<()> {
    let (from, to) = (committed(ty)?, committed(target_ty)?);
    let from = Shaped::new(origin, count(n)?, &from.datatype)?;
    let to = Layout::new(count(target_n)?, &to.datatype);
    let data = bytes(from.address, from.len)?;
    Ok(win.epochs().accumulate_as(at.rank, at.displacement, op, data, from.layout(), to)?)
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
    fetch(
        win,
        (origin, n, ty),
        (result, result_n, result_ty),
        (rank, displacement, target_n, target_ty),
        op,
        |epochs, rank, at, (op, operands, result, to)| {
            epochs.get_accumulate_foreign_as(rank, at, op, operands, result, to)
        },
    )
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
#[inline(always)]
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
    Ok(win.epochs().fetch_op_raw(at.rank, at.displacement, op, ty, value, room)?)
}

/// `MPI_Compare_and_swap`.
#[inline(always)]
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
    Ok(win.epochs().compare_and_swap_raw(at.rank, at.displacement, ty, compare, value, room)?)
}
