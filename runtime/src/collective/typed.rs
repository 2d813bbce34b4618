//! Collectives that move elements: lengths may differ by rank, so that each is the standard's plain and `v` form in one.

use zerocopy::IntoBytes;

use super::raw;
use crate::{Class, Communicator, Element, Error, Request, Result};

/// Bytes that a rank sent, as elements.
pub(crate) fn elements<T: Element>(operation: &'static str, bytes: &[u8]) -> Result<Vec<T>> {
    let size = size_of::<T>().max(1);
    if !bytes.len().is_multiple_of(size) {
        let message =
            format!("{} bytes came, not whole elements of {size}: is it another type?", bytes.len());
        return Err(Error::new(Class::Type, operation, message));
    }
    let mut elements = vec![T::new_zeroed(); bytes.len() / size];
    elements.as_mut_bytes().copy_from_slice(bytes);
    Ok(elements)
}

fn blocks<T: Element>(operation: &'static str, blocks: Vec<Vec<u8>>) -> Result<Vec<Vec<T>>> {
    blocks.iter().map(|block| elements(operation, block)).collect()
}

fn bytes<T: Element>(data: &[T]) -> Vec<u8> {
    data.as_bytes().to_vec()
}

fn all_bytes<T: Element>(blocks: &[Vec<T>]) -> Vec<Vec<u8>> {
    blocks.iter().map(|block| bytes(block)).collect()
}

impl Communicator {
    /// Waits until every rank has called it (`MPI_Barrier`, MPI-4.1 §6.3). Collective.
    ///
    /// # Errors
    /// A peer is gone or calls another collective; the deadline passes.
    pub fn barrier(&self) -> Result<()> {
        raw::barrier(self)
    }

    /// [`Communicator::barrier`], nonblocking (`MPI_Ibarrier`, §6.12.1).
    pub fn ibarrier(&self) -> Request<()> {
        raw::ibarrier(self)
    }

    /// Copies `data` of rank `root` to `data` of every rank (`MPI_Bcast`, §6.4). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; `root` is not a rank; lengths differ.
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        let bytes = data.as_mut_bytes();
        if self.rank() == root {
            return raw::broadcast_from(self, bytes);
        }
        let (len, room) = (super::long::broadcast_to(self, root, bytes)?, bytes.len());
        if len == room {
            return Ok(());
        }
        let message = format!("rank {root} sends {len} bytes, here is room for {room}");
        Err(self.channel().error(Class::Count, "broadcast", message))
    }

    /// The root's elements at every rank, nonblocking (`MPI_Ibcast`); what others give is ignored.
    pub fn ibroadcast<T: Element>(&self, root: usize, data: &[T]) -> Request<Vec<T>> {
        raw::ibroadcast(self, root, bytes(data)).map(|bytes| elements("broadcast", &bytes))
    }

    /// Every rank's `data` at the root, by rank (`MPI_Gather`, `MPI_Gatherv`, §6.5). Lengths may differ. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; `root` is not a rank.
    pub fn gather<T: Element>(&self, root: usize, data: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        raw::gather(self, root, bytes(data))?.map(|all| blocks("gather", all)).transpose()
    }

    /// [`Communicator::gather`], nonblocking (`MPI_Igatherv`).
    pub fn igather<T: Element>(&self, root: usize, data: &[T]) -> Request<Option<Vec<Vec<T>>>> {
        raw::igather(self, root, bytes(data)).map(|all| all.map(|all| blocks("gather", all)).transpose())
    }

    /// A block of the root's for each rank (`MPI_Scatter`, `MPI_Scatterv`, §6.6). Only the root gives blocks, one for
    /// each rank; lengths may differ. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; `root` is not a rank; a wrong number of blocks, at the root.
    pub fn scatter<T: Element>(&self, root: usize, data: Option<&[Vec<T>]>) -> Result<Vec<T>> {
        elements("scatter", &raw::scatter(self, root, data.map(all_bytes))?)
    }

    /// [`Communicator::scatter`], nonblocking (`MPI_Iscatterv`).
    pub fn iscatter<T: Element>(&self, root: usize, data: Option<&[Vec<T>]>) -> Request<Vec<T>> {
        raw::iscatter(self, root, data.map(all_bytes)).map(|bytes| elements("scatter", &bytes))
    }

    /// Every rank's `data`, by rank (`MPI_Allgather`, `MPI_Allgatherv`, §6.7). Lengths may differ. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    pub fn allgather<T: Element>(&self, data: &[T]) -> Result<Vec<Vec<T>>> {
        blocks("allgather", raw::allgather(self, bytes(data))?)
    }

    /// [`Communicator::allgather`], nonblocking (`MPI_Iallgatherv`).
    pub fn iallgather<T: Element>(&self, data: &[T]) -> Request<Vec<Vec<T>>> {
        raw::iallgather(self, bytes(data)).map(|all| blocks("allgather", all))
    }

    /// Block j of rank i becomes block i of rank j (`MPI_Alltoall`, `MPI_Alltoallv`, §6.8). Lengths may differ. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; a wrong number of blocks.
    pub fn alltoall<T: Element>(&self, data: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        blocks("alltoall", raw::alltoall(self, all_bytes(data))?)
    }

    /// [`Communicator::alltoall`], nonblocking (`MPI_Ialltoallv`).
    pub fn ialltoall<T: Element>(&self, data: &[Vec<T>]) -> Request<Vec<Vec<T>>> {
        raw::ialltoall(self, all_bytes(data)).map(|all| blocks("alltoall", all))
    }
}
