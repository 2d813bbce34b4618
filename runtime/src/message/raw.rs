//! Messages of bytes, for doors to other languages. Errors and meaning are those of the methods of
//! [`Communicator`].

use super::isend;
use super::receive;
use super::send::{self, Mode};
use super::{Source, Status, Tag};
use crate::{Communicator, Request, Result};

/// Sends bytes; complete when they may be reused, or when they are received if `synchronous` (`MPI_Send`,
/// `MPI_Ssend`).
///
/// # Errors
/// As [`Communicator::send`].
pub fn send(comm: &Communicator, dest: usize, tag: i32, data: &[u8], synchronous: bool) -> Result<()> {
    let (name, mode) = if synchronous { ("ssend", Mode::Synchronous) } else { ("send", Mode::Standard) };
    send::send(comm, name, (dest, tag), data, mode)
}

/// [`send()`], nonblocking (`MPI_Isend`, `MPI_Issend`).
pub fn isend(
    comm: &Communicator,
    dest: usize,
    tag: i32,
    data: Vec<u8>,
    synchronous: bool,
) -> Request<Vec<u8>> {
    let (name, mode) = if synchronous { ("issend", Mode::Synchronous) } else { ("isend", Mode::Standard) };
    isend::isend(comm, name, (dest, tag), data, mode)
}

/// Receives a message of any length (`MPI_Recv`).
///
/// # Errors
/// As [`Communicator::recv`].
pub fn recv(comm: &Communicator, source: Source, tag: Tag) -> Result<(Vec<u8>, Status)> {
    comm.recv(source, tag)
}

/// Receives a message to a buffer (`MPI_Recv`).
///
/// # Errors
/// As [`Communicator::recv_into`].
pub fn recv_into(comm: &Communicator, source: Source, tag: Tag, buffer: &mut [u8]) -> Result<Status> {
    comm.recv_into(source, tag, buffer)
}

/// Starts to receive at most `max` bytes (`MPI_Irecv`).
pub fn irecv(comm: &Communicator, source: Source, tag: Tag, max: usize) -> Request<(Vec<u8>, Status)> {
    receive::irecv(comm, "irecv", (source, tag), max)
}
