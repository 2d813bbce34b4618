//! Blocks of one length.

use std::ffi::c_int;

use transom::raw;

use super::{are_apart, few, now, of_one_group};
use crate::abi::Comm;
use crate::buffer::{Triple, bytes, bytes_mut};
use crate::collective;

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
