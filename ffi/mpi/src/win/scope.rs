//! Arguments of one-sided operations: target, displacement, layouts.

use std::ffi::c_int;

use transom::{Flavour, NULL_RANK};

use super::WinObject;
use crate::abi::{Aint, BYTE, Datatype, ERR_DISP, ERR_RANK, PROC_NULL};
use crate::failure::{Result, fail};
use crate::types;

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
