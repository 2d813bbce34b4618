//! Messages that are taken before they are received (MPI-4.1 §3.8.2, §3.8.3).

use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::Mutex;
use transom::{Message as Taken, NULL_RANK, raw};

use super::receive::{in_place, received, store};
use super::{Envelope, source, status as of, tag};
use crate::abi::{ERR_REQUEST, MESSAGE_NO_PROC, MESSAGE_NULL, Message, PROC_NULL, Request, Status};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::Result;
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::request::calls::give;
use crate::request::{self, filled};
use crate::table::Table;
use crate::world;

/// A message, and the communicator that it came over.
type Held = (Taken, Arc<CommObject>);

static MESSAGES: Table<Mutex<Option<Held>>> = Table::new(5, "message", ERR_REQUEST);

fn handle(message: Taken, comm: Arc<CommObject>) -> Result<Message> {
    if message.status().source == NULL_RANK {
        return Ok(MESSAGE_NO_PROC);
    }
    MESSAGES.insert(Arc::new(Mutex::new(Some((message, comm))))).map(Message)
}

/// Takes the message of a handle; nothing of the null process's.
fn take(message: Pointer<Message>) -> Result<Option<Held>> {
    let handle = message.get()?;
    let taken = if handle == MESSAGE_NO_PROC { None } else { MESSAGES.remove(handle.0)?.lock().take() };
    message.set(MESSAGE_NULL)?;
    Ok(taken)
}

/// The buffer for the message of a handle.
fn recv_buffer_of(message: Pointer<Message>, recv_buffer: Triple) -> Result<Buffer> {
    if message.get()? == MESSAGE_NO_PROC { Buffer::none() } else { Buffer::new(recv_buffer) }
}

/// Of a receive from the null process.
fn of_nobody() -> Status {
    Status { source: PROC_NULL, ..Status::EMPTY }
}

/// `MPI_Mprobe`.
pub fn mprobe(from: Envelope, message: Pointer<Message>, status: Pointer<Status>) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let taken = comm.messages().mprobe(source(&comm, from.rank)?, tag(from.tag))?;
    give(Ok(of(comm.inter.as_deref(), taken.status())), status)?;
    message.set(handle(taken, comm)?)
}

/// `MPI_Improbe`.
pub fn improbe(
    from: Envelope,
    found: Pointer<c_int>,
    message: Pointer<Message>,
    status: Pointer<Status>,
) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let taken = comm.messages().improbe(source(&comm, from.rank)?, tag(from.tag))?;
    found.set(flag(taken.is_some()))?;
    let Some(taken) = taken else { return Ok(()) };
    give(Ok(of(comm.inter.as_deref(), taken.status())), status)?;
    message.set(handle(taken, comm)?)
}

/// `MPI_Mrecv`.
pub fn mrecv(recv_buffer: Triple, message: Pointer<Message>, status: Pointer<Status>) -> Result<()> {
    let recv_buffer = recv_buffer_of(message, recv_buffer)?;
    let Some((taken, comm)) = take(message)? else { return give(Ok(of_nobody()), status) };
    let of_message = taken.status();
    let mut place = recv_buffer.clone();
    let stored = match place.plain_mut()? {
        Some(bytes) => in_place(taken.recv_into(bytes)),
        None => store(taken.recv().map(|(data, _)| data), &recv_buffer),
    };
    give(received(comm.inter.as_deref(), of_message, stored), status)
}

/// `MPI_Imrecv`.
pub fn imrecv(recv_buffer: Triple, message: Pointer<Message>, request: Pointer<Request>) -> Result<()> {
    let recv_buffer = recv_buffer_of(message, recv_buffer)?;
    let Some((taken, comm)) = take(message)? else {
        return request.set(request::done_with(of_nobody())?);
    };
    let pending = match recv_buffer.raw()? {
        Some(place) => filled(raw::imrecv_into(taken, place), move |(came, status)| {
            received(comm.inter.as_deref(), status, in_place(came))
        }),
        None => filled(raw::imrecv(taken, recv_buffer.capacity()?), move |(data, status)| {
            received(comm.inter.as_deref(), status, store(data, &recv_buffer))
        }),
    };
    request.set(request::running(pending, ErrorObject::None)?)
}
