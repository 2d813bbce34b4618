//! `MPI_Reduce_local` (MPI-4.1 §6.9.7).

use std::ffi::c_void;

use super::reduction::Reduction;
use crate::abi::Op;
use crate::buffer::{Buffer, Triple};
use crate::failure::Result;

/// `MPI_Reduce_local`.
pub fn reduce_local(from: *const c_void, to: Triple, op: Op) -> Result<()> {
    let (from, ty, to) = (Buffer::new(to.at(from))?, to.ty, Buffer::new(to)?);
    let reduction = Reduction::new(op, ty, &from)?;
    let (left, mut right) = (reduction.load(&from)?, reduction.load(&to)?);
    (reduction.combine)(&left, &mut right);
    reduction.store(&to, &right)
}
