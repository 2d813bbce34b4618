//! The way of blocking collectives of one group on short data of a predefined datatype: no plan is made, and nothing is kept. What it
//! does not do is left to the long way, which finds out what is wrong, if anything is.

mod blocks;
mod parts;
mod reductions;

use std::ffi::{c_int, c_void};

use smallvec::SmallVec;
use transom::raw;

pub use self::blocks::{allgather, alltoall, gather, scatter};
pub use self::parts::{allgatherv, alltoallv};
pub use self::reductions::{allreduce, exscan, reduce, reduce_scatter, reduce_scatter_block, scan};
use crate::abi::Comm;
use crate::buffer::{Triple, bytes, bytes_mut};
use crate::call::{When, call};
use crate::handlers::ErrorObject;
use crate::world::{Held, hold, is_running};

/// One for each rank, without an allocation where these are few.
type Few<T> = SmallVec<[T; 8]>;

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

/// Whether two places of so many bytes have none in common.
#[inline]
fn are_apart(one: *const c_void, other: *const c_void, len: usize) -> bool {
    one.addr().abs_diff(other.addr()) >= len
}
