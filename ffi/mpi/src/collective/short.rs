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

/// What combines two operands of a predefined operation on elements of a predefined datatype, of so many bytes.
#[inline]
fn combination(data: Triple, op: Op, len: usize) -> Option<impl Fn(&[u8], &mut [u8]) + Send + Sync> {
    let (op, ty) = (op::predefined(op)?, types::basic(data.ty)?);
    let are_its = usize::try_from(data.n).ok().and_then(|n| n.checked_mul(ty.size())) == Some(len);
    (are_its && reduce_valid(op, ty))
        .then_some(move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left))
}

/// Whether two places of so many bytes have none in common.
#[inline]
fn are_apart(one: *const c_void, other: *const c_void, len: usize) -> bool {
    one.addr().abs_diff(other.addr()) >= len
}

/// The operands, where the results are to be; none if they are there in part.
#[inline]
fn moved<'a>(operands: *const c_void, to: *mut c_void, len: usize) -> Option<&'a mut [u8]> {
    let is_in_place = collective::in_place(operands);
    if !is_in_place && !are_apart(operands, to, len) {
        return None;
    }
    let result = bytes_mut(to, len).ok()?;
    if !is_in_place {
        result.copy_from_slice(bytes(operands, len).ok()?);
    }
    Some(result)
}

/// `MPI_Reduce`.
#[inline]
pub fn reduce(operands: *const c_void, to: Triple, op: Op, root: c_int, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let combine = combination(to, op, len).filter(|_| raw::short::fits(len, 1))?;
    let root = usize::try_from(root).ok().filter(|root| *root < object.comm.size())?;
    if object.comm.rank() == root {
        let result = moved(operands, to.address, len)?;
        return now("MPI_Reduce", comm, || raw::short::reduce(&object.comm, root, result, &combine));
    }
    if collective::in_place(operands) {
        return None;
    }
    let mut data = bytes(operands, len).ok()?.to_vec();
    now("MPI_Reduce", comm, || raw::short::reduce(&object.comm, root, &mut data, &combine))
}

/// `MPI_Allreduce`.
#[inline]
pub fn allreduce(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let combine = combination(to, op, len).filter(|_| raw::short::fits(len, 1))?;
    let result = moved(operands, to.address, len)?;
    now("MPI_Allreduce", comm, || raw::short::allreduce(&object.comm, result, &combine))
}

/// Bytes of a block, and of those of all ranks, of a buffer with one for each.
#[inline]
fn blocks(all: Triple, size: usize) -> Option<(usize, usize)> {
    let block = few(all).filter(|block| raw::short::fits(*block, size))?;
    Some((block, block * size))
}

/// The blocks of all ranks, to which this rank's is copied, unless it is there.
#[inline]
fn with_own<'a>(own: Triple, all: Triple, (block, len): (usize, usize), rank: usize) -> Option<&'a mut [u8]> {
    let is_in_place = collective::in_place(own.address);
    if !is_in_place && (few(own)? != block || !are_apart(own.address, all.address, len)) {
        return None;
    }
    let all = bytes_mut(all.address, len).ok()?;
    if !is_in_place {
        all[rank * block..][..block].copy_from_slice(bytes(own.address, block).ok()?);
    }
    Some(all)
}

/// `MPI_Allgather`.
#[inline]
pub fn allgather(from: Triple, to: Triple, comm: Comm) -> Option<c_int> {
    let object = of_one_group(comm)?;
    let lengths = blocks(to, object.comm.size())?;
    let all = with_own(from, to, lengths, object.comm.rank())?;
    now("MPI_Allgather", comm, || raw::short::allgather(&object.comm, all))
}

/// `MPI_Alltoall`.
#[inline]
pub fn alltoall(from: Triple, to: Triple, comm: Comm) -> Option<c_int> {
    let (object, block) = (of_one_group(comm)?, few(to)?);
    let len = block.checked_mul(object.comm.size())?;
    if collective::in_place(from.address) || few(from)? != block || !are_apart(from.address, to.address, len)
    {
        return None;
    }
    let (given, taken) = (bytes(from.address, len).ok()?, bytes_mut(to.address, len).ok()?);
    now("MPI_Alltoall", comm, || raw::alltoall_equal(&object.comm, given, taken))
}

/// `MPI_Gather`.
#[inline]
pub fn gather(from: Triple, to: Triple, root: c_int, comm: Comm) -> Option<c_int> {
    let object = of_one_group(comm)?;
    let (rank, size) = (object.comm.rank(), object.comm.size());
    let root = usize::try_from(root).ok().filter(|root| *root < size)?;
    if rank == root {
        let lengths = blocks(to, size)?;
        let all = with_own(from, to, lengths, rank)?;
        let own = all[rank * lengths.0..][..lengths.0].to_vec();
        return now("MPI_Gather", comm, || raw::short::gather(&object.comm, root, &own, Some(all)));
    }
    if collective::in_place(from.address) {
        return None;
    }
    let own = bytes(from.address, blocks(from, size)?.0).ok()?;
    now("MPI_Gather", comm, || raw::short::gather(&object.comm, root, own, None))
}

/// `MPI_Scatter`.
#[inline]
pub fn scatter(from: Triple, to: Triple, root: c_int, comm: Comm) -> Option<c_int> {
    let object = of_one_group(comm)?;
    let (rank, size) = (object.comm.rank(), object.comm.size());
    let root = usize::try_from(root).ok().filter(|root| *root < size)?;
    if collective::in_place(to.address) {
        return None;
    }
    let (block, len) = blocks(if rank == root { from } else { to }, size)?;
    if rank != root {
        let own = bytes_mut(to.address, block).ok()?;
        return now("MPI_Scatter", comm, || raw::short::scatter(&object.comm, root, None, own));
    }
    if few(to)? != block || !are_apart(from.address, to.address, len) {
        return None;
    }
    let (all, own) = (bytes(from.address, len).ok()?, bytes_mut(to.address, block).ok()?);
    now("MPI_Scatter", comm, || raw::short::scatter(&object.comm, root, Some(all), own))
}
