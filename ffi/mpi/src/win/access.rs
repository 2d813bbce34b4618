//! Put, get and accumulates (MPI-4.1 §12.3): arguments become descriptions of operations. What is short has been tried before
//! (`short.rs`).

use std::ffi::{c_int, c_void};

use transom::{DataType, Layout, ReduceOp, Transfer, Update};

use super::scope::{One, There, displacement, moved, target};
use super::{WinObject, peek};
use crate::abi::{Aint, Datatype, ERR_TYPE, Op, Win};
use crate::buffer::{Triple, TypedBuffer, bytes, bytes_mut, count, raw_buffer};
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

/// What is left of an operation with a request.
pub(super) type Started = Option<transom::Request<()>>;

/// A put or get, with a request or without.
pub(super) fn transfer(
    win: Win,
    here: Triple,
    there: There,
    (puts, requested): (bool, bool),
) -> Result<Started> {
    let win = peek(win)?;
    let At { rank: target, displacement } = At::new(win, there.rank, there.displacement)?;
    if let Some(len) = moved((here.n, here.ty), (there.n, there.ty)) {
        let memory = raw_buffer(here.address, len)?;
        let transfer = Transfer { target, displacement, memory, layouts: None, puts, requested };
        return Ok(win.epochs().transfer(transfer)?);
    }
    let (from, to) = (committed(here.ty)?, committed(there.ty)?);
    let here = here.typed(&from)?;
    let layouts = Some((here.layout(), Layout::new(count(there.n)?, &to.datatype)));
    let memory = raw_buffer(here.address, here.len)?;
    Ok(win.epochs().transfer(Transfer { target, displacement, memory, layouts, puts, requested })?)
}

/// A put or get without a request. Apart from the others for what is most common: a result that may have a request is moved, by wide
/// loads of what was just stored, which wait for all stores before: in an epoch of start for the signal of a post.
fn transfer_now(win: Win, here: Triple, there: There, puts: bool) -> Result<()> {
    let Some(len) = moved((here.n, here.ty), (there.n, there.ty)) else {
        return transfer(win, here, there, (puts, false)).map(drop);
    };
    let win = peek(win)?;
    let At { rank, displacement } = At::new(win, there.rank, there.displacement)?;
    Ok(win.epochs().transfer_bytes(rank, displacement, raw_buffer(here.address, len)?, puts)?)
}

/// An accumulate, fetching to `result` or not, with a request or without.
pub(super) fn update(
    win: Win,
    origin: Triple,
    result: Option<Triple>,
    there: There,
    (op, requested): (Op, bool),
) -> Result<Started> {
    let win = peek(win)?;
    let At { rank: target, displacement } = At::new(win, there.rank, there.displacement)?;
    // Nothing is computed of nothing.
    let op = if there.n == 0 && result.is_some() { ReduceOp::NoOp } else { op::of_accumulates(op)? };
    let to = committed(there.ty)?;
    // An operation that changes nothing has no operands: what is said of them means nothing (§12.3.4).
    let from = if op == ReduceOp::NoOp && result.is_some() { None } else { Some(committed(origin.ty)?) };
    let from = match &from {
        Some(from) => origin.typed(from)?,
        None => TypedBuffer::new(std::ptr::null(), 0, &to.datatype)?,
    };
    let into_ty = result.map(|result| committed(result.ty)).transpose()?;
    let into = match (result, &into_ty) {
        (Some(result), Some(ty)) => Some(result.typed(ty)?),
        _ => None,
    };
    let operands = (bytes(from.address, from.len)?, from.layout());
    let result = match &into {
        Some(into) => Some((raw_buffer(into.address, into.len)?, into.layout())),
        None => None,
    };
    let layout = Layout::new(count(there.n)?, &to.datatype);
    Ok(win.epochs().update(Update { target, displacement, op, operands, result, layout, requested })?)
}

/// `MPI_Put`.
pub fn put(origin: Triple, there: There, win: Win) -> Result<()> {
    transfer_now(win, origin, there, true)
}

/// `MPI_Get`.
pub fn get(origin: Triple, there: There, win: Win) -> Result<()> {
    transfer_now(win, origin, there, false)
}

/// `MPI_Accumulate`.
pub fn accumulate(origin: Triple, there: There, op: Op, win: Win) -> Result<()> {
    update(win, origin, None, there, (op, false)).map(drop)
}

/// `MPI_Get_accumulate`.
pub fn get_accumulate(origin: Triple, result: Triple, there: There, op: Op, win: Win) -> Result<()> {
    update(win, origin, Some(result), there, (op, false)).map(drop)
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
pub fn fetch_and_op(one: One, op: Op, win: Win) -> Result<()> {
    const MOST: usize = 32;
    let win = peek(win)?;
    let at = At::new(win, one.rank, one.displacement)?;
    let (op, ty) = (op::of_accumulates(op)?, element(one.ty)?);
    let room = bytes_mut(one.result, ty.size())?;
    // MPI_NO_OP has no operand.
    let value = if op == ReduceOp::NoOp { &[0; MOST] } else { bytes(one.operand, ty.size())? };
    Ok(win.epochs().fetch_op_raw(at.rank, at.displacement, (op, ty), value, room)?)
}

/// `MPI_Compare_and_swap`: the operand of `one` is what is compared.
pub fn compare_and_swap(value: *const c_void, one: One, win: Win) -> Result<()> {
    let win = peek(win)?;
    let at = At::new(win, one.rank, one.displacement)?;
    let ty = element(one.ty)?;
    let (value, compare) = (bytes(value, ty.size())?, bytes(one.operand, ty.size())?);
    let room = bytes_mut(one.result, ty.size())?;
    Ok(win.epochs().compare_and_swap_raw(at.rank, at.displacement, ty, (compare, value), room)?)
}
