//! Arguments of one-sided operations: target, displacement, layouts.

use std::ffi::{c_int, c_void};

use transom::{Flavour, NULL_RANK};

use super::WinObject;
use crate::abi::{Aint, BYTE, Datatype, ERR_DISP, ERR_RANK, PROC_NULL};
use crate::failure::{Result, fail};
use crate::types;

/// The target's side of an operation as the arguments of a call say it.
#[derive(Debug, Clone, Copy)]
pub struct There {
    pub rank: c_int,
    pub displacement: Aint,
    pub n: i64,
    pub ty: Datatype,
}

impl There {
    /// The target's side of four arguments.
    #[inline(always)]
    pub fn new(rank: c_int, displacement: Aint, n: i64, ty: Datatype) -> Self {
        Self { rank, displacement, n, ty }
    }
}

/// An operation on one element as the arguments of a call say it: addresses of an operand and of the result, and the target's side.
#[derive(Debug, Clone, Copy)]
pub struct One {
    pub operand: *const c_void,
    pub result: *mut c_void,
    pub ty: Datatype,
    pub rank: c_int,
    pub displacement: Aint,
}

impl One {
    /// An operation of five arguments.
    #[inline(always)]
    pub fn new(
        operand: *const c_void,
        result: *mut c_void,
        ty: Datatype,
        rank: c_int,
        displacement: Aint,
    ) -> Self {
        Self { operand, result, ty, rank, displacement }
    }
}

/// A target rank; `MPI_PROC_NULL` is the null rank.
#[inline]
pub fn target(rank: c_int) -> Result<usize> {
    match usize::try_from(rank) {
        Ok(rank) => Ok(rank),
        Err(_) if rank == PROC_NULL => Ok(NULL_RANK),
        Err(_) => fail(ERR_RANK, format!("rank {rank} as a target")),
    }
}

/// A displacement; in a dynamic window an address.
#[inline]
pub fn displacement(win: &WinObject, displacement: Aint) -> Result<usize> {
    match usize::try_from(displacement) {
        Ok(displacement) => Ok(displacement),
        Err(_) if win.window().flavour() == Flavour::Dynamic => Ok(displacement.cast_unsigned()),
        Err(_) => fail(ERR_DISP, format!("a displacement of {displacement}")),
    }
}

/// Bytes of a transfer of the same predefined datatype on both sides: what programs do most.
#[inline]
pub fn plain(origin: (i64, Datatype), target: (i64, Datatype)) -> Option<usize> {
    if origin != target {
        return None;
    }
    usize::try_from(origin.0).ok()?.checked_mul(types::plain_size(origin.1)?)
}

/// As [`plain`], of a put or get; also of predefined datatypes one of which is bytes, which programs give for any other.
#[inline]
pub fn moved(origin: (i64, Datatype), target: (i64, Datatype)) -> Option<usize> {
    match plain(origin, target) {
        None if origin.1 == BYTE || target.1 == BYTE => {
            let bytes = |(n, ty)| usize::try_from(n).ok()?.checked_mul(types::plain_size(ty)?);
            bytes(origin).filter(|len| bytes(target) == Some(*len))
        }
        len => len,
    }
}
