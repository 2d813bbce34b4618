//! Messages that are taken before they are received (MPI-4.1 §3.8.2, §3.8.3).

use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::Mutex;
use transom::{Message as Taken, NULL_RANK, raw};

use super::receive::{received, store};
use super::{Envelope, source, status as of, tag};
use crate::abi::{ERR_REQUEST, MESSAGE_NO_PROC, MESSAGE_NULL, Message, PROC_NULL, Request, Status};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::Result;
use crate::handlers::Site;
use crate::place::{Place, flag};
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
fn take(message: Place<Message>) -> Result<Option<Held>> {
    let handle = message.get()?;
    let taken = if handle == MESSAGE_NO_PROC { None } else { MESSAGES.remove(handle.0)?.lock().take() };
    message.set(MESSAGE_NULL)?;
    Ok(taken)
}

/// The buffer for the message of a handle.
fn room_of(message: Place<Message>, room: Triple) -> Result<Buffer> {
    if message.get()? == MESSAGE_NO_PROC { Buffer::none() } else { Buffer::new(room) }
}

/// Of a receive from the null process.
fn of_nobody() -> Status {
    Status { source: PROC_NULL, ..Status::EMPTY }
}

/// `MPI_Mprobe`.
pub fn mprobe(from: Envelope, message: Place<Message>, status: Place<Status>) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let taken = comm.messages().mprobe(source(&comm, from.rank)?, tag(from.tag))?;
    give(Ok(of(&comm, taken.status())), status)?;
    message.set(handle(taken, comm)?)
}

/// `MPI_Improbe`.
pub fn improbe(
    from: Envelope,
    found: Place<c_int>,
    message: Place<Message>,
    status: Place<Status>,
) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let taken = comm.messages().improbe(source(&comm, from.rank)?, tag(from.tag))?;
    found.set(flag(taken.is_some()))?;
    let Some(taken) = taken else { return Ok(()) };
    give(Ok(of(&comm, taken.status())), status)?;
    message.set(handle(taken, comm)?)
}

/// `MPI_Mrecv`.
pub fn mrecv(room: Triple, message: Place<Message>, status: Place<Status>) -> Result<()> {
    let room = room_of(message, room)?;
    let Some((taken, comm)) = take(message)? else { return give(Ok(of_nobody()), status) };
    let of_message = taken.status();
    let data = taken.recv::<u8>().map(|(data, _)| data);
    give(received(&comm, of_message, store(data, &room)), status)
}

/// `MPI_Imrecv`.
pub fn imrecv(room: Triple, message: Place<Message>, request: Place<Request>) -> Result<()> {
    let room = room_of(message, room)?;
    let Some((taken, comm)) = take(message)? else {
        return request.set(request::done_with(of_nobody())?);
    };
    let pending = filled(raw::imrecv(taken, room.room()?), move |(data, status)| {
        received(&comm, status, store(data, &room))
    });
    request.set(request::running(pending, Site::None)?)
}
