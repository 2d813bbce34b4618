//! The way of blocking collectives of one group on short data of a predefined datatype: no plan is made, and nothing is kept. What it
//! does not do is left to the long way, which finds out what is wrong, if anything is.

use std::ffi::{c_int, c_void};

use transom::{raw, reduce_valid};
use transom_transport::memory::reduce_into;

use crate::abi::{Comm, Op};
use crate::buffer::{Triple, bytes, bytes_mut};
use crate::call::{When, call};
use crate::handlers::ErrorObject;
use crate::world::{Held, hold, is_running};
use crate::{collective, op, types};

/// The communicator of a call, if it has one group.
#[inline]
fn of_one_group(comm: Comm) -> Option<Held> {
    if !is_running() {
        return None;
    }
    hold(comm).ok().filter(|comm| comm.inter.is_none())
}

/// Bytes of data of a predefined datatype that are few, and some.
#[inline]
fn few(data: Triple) -> Option<usize> {
    data.plain_len().filter(|len| (1..raw::LONG).contains(len))
}

/// Carries a collective out.
#[inline]
fn now(name: &'static str, comm: Comm, work: impl FnOnce() -> transom::Result<()>) -> Option<c_int> {
    Some(call(name, When::Always, ErrorObject::Comm(comm), || Ok(work()?)))
}

/// `MPI_Barrier`.
#[inline]
pub fn barrier(comm: Comm) -> Option<c_int> {
    let object = of_one_group(comm)?;
    now("MPI_Barrier", comm, || raw::barrier(&object.comm))
}

/// `MPI_Bcast`.
#[inline]
pub fn bcast(data: Triple, root: c_int, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(data)?);
    let root = usize::try_from(root).ok().filter(|root| *root < object.comm.size())?;
    if object.comm.rank() == root {
        let data = bytes(data.address, len).ok()?;
        return now("MPI_Bcast", comm, || raw::broadcast_from(&object.comm, data));
    }
    let data = bytes_mut(data.address, len).ok()?;
    now("MPI_Bcast", comm, || raw::broadcast_into(&object.comm, root, data))
}

/// `MPI_Allreduce`.
#[inline]
pub fn allreduce(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let (op, ty) = (op::predefined(op)?, types::basic(to.ty)?);
    if !raw::allreduce_is_short(len) {
        return None;
    }
    let (in_place, apart) =
        (collective::in_place(operands), operands.addr().abs_diff(to.address.addr()) >= len);
    if !(in_place || apart) || ty.size() * (to.n as usize) != len || !reduce_valid(op, ty) {
        return None;
    }
    let result = bytes_mut(to.address, len).ok()?;
    if !in_place {
        result.copy_from_slice(bytes(operands, len).ok()?);
    }
    let combine = move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left);
    now("MPI_Allreduce", comm, || raw::allreduce_in_place(&object.comm, result, &combine))
}

/// `MPI_Alltoall`.
#[inline]
pub fn alltoall(from: Triple, to: Triple, comm: Comm) -> Option<c_int> {
    let (object, block) = (of_one_group(comm)?, few(to)?);
    let len = block.checked_mul(object.comm.size())?;
    let (given, taken) = (from.address.addr(), to.address.addr());
    let are_apart = given.abs_diff(taken) >= len;
    if collective::in_place(from.address) || few(from)? != block || !are_apart {
        return None;
    }
    let (given, taken) = (bytes(from.address, len).ok()?, bytes_mut(to.address, len).ok()?);
    now("MPI_Alltoall", comm, || raw::alltoall_equal(&object.comm, given, taken))
}
