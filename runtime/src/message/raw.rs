//! Messages of bytes, for language bindings. Errors and meaning are those of the methods of [`Communicator`].

use super::isend;
use super::receive;
use super::send::{self, Mode};
use super::{Matched, Message, Source, Status, Tag};
use crate::{Communicator, RawBuffer, Request, Result};

pub use super::slot::{SlotHold, SlotReceive};

/// Receives that can be in slots at a time.
pub const SLOTS: usize = crate::engine::RECEIVE_SLOTS;

/// Sends bytes; complete when they may be reused, or when they are received if `synchronous` (`MPI_Send`,
/// `MPI_Ssend`).
///
/// # Errors
/// As [`Communicator::send`].
pub fn send(comm: &Communicator, dest: usize, tag: i32, data: &[u8], synchronous: bool) -> Result<()> {
    let (name, mode) = if synchronous { ("ssend", Mode::Synchronous) } else { ("send", Mode::Standard) };
    send::send(comm, name, (dest, tag), data, mode)
}

/// [`send()`] of a message that can be handed over at once; false, and nothing is done, if it cannot, or anything is wrong.
#[inline]
pub fn send_now(comm: &Communicator, dest: usize, tag: i32, data: &[u8]) -> bool {
    send::send_now(comm, (dest, tag), data)
}

/// [`send()`], nonblocking (`MPI_Isend`, `MPI_Issend`).
pub fn isend(
    comm: &Communicator,
    dest: usize,
    tag: i32,
    data: Vec<u8>,
    synchronous: bool,
) -> Request<Vec<u8>> {
    let (name, mode) = nonblocking(synchronous);
    isend::isend(comm, name, (dest, tag), data, mode)
}

fn nonblocking(synchronous: bool) -> (&'static str, Mode) {
    if synchronous { ("issend", Mode::Synchronous) } else { ("isend", Mode::Standard) }
}

/// [`isend`] of a buffer of the program's, which it keeps and does not change until the request is complete.
pub fn isend_from(
    comm: &Communicator,
    dest: usize,
    tag: i32,
    data: RawBuffer,
    synchronous: bool,
) -> Request<RawBuffer> {
    let (name, mode) = nonblocking(synchronous);
    isend::isend(comm, name, (dest, tag), data, mode)
}

/// Receives a message of any length (`MPI_Recv`).
///
/// # Errors
/// As [`Communicator::recv`]; those of a message that has come are in the result, beside what it says of itself.
pub fn recv(comm: &Communicator, source: Source, tag: Tag) -> Result<Matched<Vec<u8>>> {
    let message = comm.matched("recv", source, tag)?;
    let status = message.status();
    Ok((message.recv_as("recv").map(|(data, _)| data), status))
}

/// Whether a message could be received so: an error of the arguments, before anything is done.
///
/// # Errors
/// As [`Communicator::recv`], of the arguments.
pub fn check_receive(comm: &Communicator, source: Source, tag: Tag) -> Result<()> {
    super::pattern(comm.channel(), "recv", source, tag).map(drop)
}

/// Checks the arguments of a send.
///
/// # Errors
/// As [`Communicator::send`], of the arguments; the receiver is known to be gone.
pub fn check_send(comm: &Communicator, dest: usize, tag: i32) -> Result<()> {
    super::send::Sending::new(comm.channel(), "send", dest, tag).map(drop)
}

/// Receives a message to a buffer (`MPI_Recv`).
///
/// # Errors
/// As [`Communicator::recv_into`]; those of a message that has come are in the result, beside what it says of itself.
pub fn recv_into(comm: &Communicator, source: Source, tag: Tag, buffer: &mut [u8]) -> Result<Matched<()>> {
    comm.receive_into("recv_into", (source, tag), buffer)
}

/// [`recv_into`] of a message that comes soon; none, and nothing is done, if it does not, or anything is wrong.
#[inline]
pub fn recv_now(comm: &Communicator, source: Source, tag: Tag, buffer: &mut [u8]) -> Option<Status> {
    comm.receive_now(source, tag, buffer)
}

/// Starts to receive at most `max` bytes (`MPI_Irecv`). If the message that comes is lost, the result says why, and which it
/// was.
pub fn irecv(comm: &Communicator, source: Source, tag: Tag, max: usize) -> Request<Matched<Vec<u8>>> {
    receive::start_receive(comm, "irecv", (source, tag), max, Ok)
}

/// Starts to receive a message that has been taken, if it has at most `max` bytes (`MPI_Imrecv`). If it is lost, the result
/// says why.
pub fn imrecv(message: Message, max: usize) -> Request<Matched<Vec<u8>>> {
    message.start_receive(max)
}

/// [`irecv`] to a buffer of the program's, which it keeps and does not access until the request is complete. `finish` is called by
/// who takes the result, with the part that the message fills.
pub fn irecv_into<R: Send + 'static>(
    comm: &Communicator,
    source: Source,
    tag: Tag,
    buffer: RawBuffer,
    finish: impl Fn(Matched<RawBuffer>) -> Result<R> + Send + Sync + 'static,
) -> Request<R> {
    receive::start_receive(comm, "irecv", (source, tag), buffer, finish)
}

/// [`imrecv`] to a buffer of the program's, likewise.
pub fn imrecv_into(message: Message, buffer: RawBuffer) -> Request<Matched<RawBuffer>> {
    message.start_receive(buffer)
}
