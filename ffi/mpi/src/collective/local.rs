//! `MPI_Reduce_local` (MPI-4.1 §6.9.7).

use std::ffi::c_void;

use super::reduction::Reduction;
use crate::abi::{Datatype, Op};
use crate::buffer::Buffer;
use crate::failure::Result;

/// `MPI_Reduce_local`.
pub fn reduce_local(from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op) -> Result<()> {
    let (from, to) = (Buffer::new(from, n, ty)?, Buffer::new(to, n, ty)?);
    let reduction = Reduction::new(op, ty, &from)?;
    let (left, mut right) = (reduction.load(&from)?, reduction.load(&to)?);
    (reduction.combine)(&left, &mut right);
    reduction.store(&to, &right)
}
