//! Collectives of teams and active sets on bytes (OpenSHMEM 1.5 §9.10): all are those of communicators, with what is long going from its
//! place to its place.

use std::sync::Arc;

use transom_transport::memory::reduce_into;

use crate::raw::{self, Combine, LONG};
use crate::{Class, Communicator, DataType, Error, ReduceOp, Result};

/// This PE's `source`, for the others, which call [`broadcast_to`] (`shmem_broadcast` at the root).
///
/// # Errors
/// A peer is gone or calls something else.
pub fn broadcast_from(comm: &Communicator, source: &[u8]) -> Result<()> {
    if source.len() >= LONG {
        return raw::broadcast_from(comm, source);
    }
    raw::broadcast(comm, comm.rank(), source.to_vec()).map(drop)
}

/// The root's bytes, as many as `dest` has (`shmem_broadcast` at the others).
///
/// # Errors
/// No such root; there are more or fewer bytes; a peer is gone or calls something else.
pub fn broadcast_to(comm: &Communicator, root: usize, dest: &mut [u8]) -> Result<()> {
    if dest.len() >= LONG {
        return raw::broadcast_into(comm, root, dest);
    }
    store("broadcast", &raw::broadcast(comm, root, Vec::new())?, dest)
}

/// Every PE's `source`, all of one length, one behind the other (`shmem_fcollect`).
///
/// # Errors
/// `dest` is not as long as all; a peer is gone or calls something else.
pub fn fcollect(comm: &Communicator, source: &[u8], dest: &mut [u8]) -> Result<()> {
    if source.is_empty() {
        return comm.barrier();
    }
    if source.len() < LONG {
        let all = raw::allgather(comm, source.to_vec())?;
        return store("fcollect", &all.concat(), dest);
    }
    let mut parts: Vec<&mut [u8]> = dest.chunks_mut(source.len()).collect();
    raw::allgather_into(comm, Some(source), &mut parts)
}

/// The lengths of every PE's part, for [`collect`].
///
/// # Errors
/// A peer is gone or calls something else.
pub fn lengths(comm: &Communicator, own: usize) -> Result<Vec<usize>> {
    let all = raw::allgather(comm, own.to_ne_bytes().to_vec())?;
    let length = |bytes: Vec<u8>| bytes.try_into().map(usize::from_ne_bytes);
    all.into_iter().map(length).collect::<std::result::Result<_, _>>().map_err(|_| other_length("collect"))
}

/// Every PE's `source`, of the lengths that [`lengths`] has told, one behind the other (`shmem_collect`).
///
/// # Errors
/// `dest` is not as long as all; a peer is gone or calls something else.
pub fn collect(comm: &Communicator, lengths: &[usize], source: &[u8], dest: &mut [u8]) -> Result<()> {
    if lengths.iter().max().is_none_or(|longest| *longest < LONG) {
        return store("collect", &raw::allgather(comm, source.to_vec())?.concat(), dest);
    }
    let mut parts = Vec::new();
    let mut rest = dest;
    for len in lengths {
        let (part, behind) = rest.split_at_mut_checked(*len).ok_or_else(|| other_length("collect"))?;
        parts.push(part);
        rest = behind;
    }
    if parts.get(comm.rank()).is_none_or(|own| own.len() != source.len()) {
        return Err(other_length("collect"));
    }
    raw::allgather_into(comm, Some(source), &mut parts)
}

/// Block j of PE i becomes block i of PE j; all of one length (`shmem_alltoall`).
///
/// # Errors
/// Buffers are not of a block for each PE; a peer is gone or calls something else.
pub fn alltoall(comm: &Communicator, source: &[u8], dest: &mut [u8]) -> Result<()> {
    let block = source.len() / comm.size();
    if block == 0 {
        return comm.barrier();
    }
    if block < LONG {
        let blocks = source.chunks(block).map(<[u8]>::to_vec).collect();
        return store("alltoall", &raw::alltoall(comm, blocks)?.concat(), dest);
    }
    let from: Vec<&[u8]> = source.chunks(block).collect();
    let mut to: Vec<&mut [u8]> = dest.chunks_mut(block).collect();
    raw::alltoall_into(comm, &from, &mut to)
}

/// `data` of all PEs combined, at every PE (`shmem_sum_reduce` and so on).
///
/// # Errors
/// The operation is not defined on the type; a peer is gone or calls something else.
pub fn reduce(comm: &Communicator, op: ReduceOp, ty: DataType, data: &mut [u8]) -> Result<()> {
    if !crate::reduce_valid(op, ty) {
        return Err(Error::new(Class::Op, "reduce", format!("{op:?} is not defined on {ty:?}")));
    }
    let combine: Combine = Arc::new(move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left));
    if raw::allreduce_is_long(comm, data.len()) {
        return raw::allreduce_into(comm, None, data, ty.size(), &combine);
    }
    let all = raw::allreduce(comm, data.to_vec(), combine)?;
    store("reduce", &all, data)
}

/// The sum of `data` of all PEs up to this one, or before it if `exclusive`, of which there is none at the first: zero
/// (`shmem_sum_inscan`, `shmem_sum_exscan`).
///
/// # Errors
/// As [`reduce`].
pub fn scan_sum(comm: &Communicator, ty: DataType, data: &mut [u8], exclusive: bool) -> Result<()> {
    let op = ReduceOp::Sum;
    if !crate::reduce_valid(op, ty) {
        return Err(Error::new(Class::Op, "scan", format!("{op:?} is not defined on {ty:?}")));
    }
    let combine: Combine = Arc::new(move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left));
    if !exclusive {
        return store("scan", &raw::scan(comm, data.to_vec(), combine)?, data);
    }
    match raw::exscan(comm, data.to_vec(), combine)? {
        Some(before) => store("scan", &before, data),
        None => {
            data.fill(0);
            Ok(())
        }
    }
}

fn store(operation: &'static str, data: &[u8], dest: &mut [u8]) -> Result<()> {
    if data.len() != dest.len() {
        return Err(other_length(operation));
    }
    dest.copy_from_slice(data);
    Ok(())
}

fn other_length(operation: &'static str) -> Error {
    Error::new(Class::Count, operation, "the PEs have given different numbers of elements")
}
