//! Sends (MPI-4.1 §3.2.1, §3.4, §3.7.2).

use std::ffi::c_int;

use transom::{NULL_RANK, raw};

use super::{Envelope, buffer, buffered, dest};
use crate::abi::{Request, SUCCESS, Status};
use crate::buffer::{Buffer, Triple, bytes};
use crate::comm::CommObject;
use crate::failure::Result;
use crate::handlers::ErrorObject;
use crate::pointer::Pointer;
use crate::request::{self, Pending, filled};
use crate::world;

/// When a send is complete. A ready send is a standard one: that the receive has been posted makes no difference here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Standard,
    Synchronous,
    Buffered,
}

/// `MPI_Send`, if all there is to do is to hand a short message over: none else, and nothing is done.
#[inline]
pub fn send_now(data: Triple, to: Envelope) -> Option<c_int> {
    let len = data.plain_len()?;
    let dest = usize::try_from(to.rank).ok()?;
    if !world::is_running() {
        return None;
    }
    let comm = world::peek(to.comm).ok().filter(|comm| comm.inter.is_none())?;
    let bytes = bytes(data.address, len).ok()?;
    raw::send_now(&comm.comm, dest, to.tag, bytes).then_some(SUCCESS)
}

/// `MPI_Isend`, likewise: what has been handed over is complete.
#[inline]
pub fn isend_now(data: Triple, to: Envelope, request: Pointer<Request>) -> Option<c_int> {
    let sent = if request.is_null() { None } else { send_now(data, to) };
    sent.inspect(|_| request.replace(request::COMPLETE))
}

/// Starts a send.
pub fn begin(comm: &CommObject, data: &Buffer, to: c_int, tag: c_int, mode: Mode) -> Result<Pending> {
    let (messages, to, synchronous) = (comm.messages(), dest(comm, to)?, mode == Mode::Synchronous);
    if mode == Mode::Buffered && to != NULL_RANK {
        let packed = data.pack()?;
        buffered::keep(comm, packed.len(), || raw::isend(messages, to, tag, packed, false))?;
        let done = raw::isend(messages, NULL_RANK, 0, Vec::new(), false);
        return Ok(filled(done, |_| Ok(Status::EMPTY)));
    }
    Ok(match data.raw()? {
        Some(data) => sent(raw::isend_from(messages, to, tag, data, synchronous)),
        None => sent(raw::isend(messages, to, tag, data.pack()?, synchronous)),
    })
}

/// The request of a send.
pub(super) fn sent<B: 'static>(request: transom::Request<B>) -> Pending {
    filled(request, |_| Ok(Status::EMPTY))
}

fn send_as(mode: Mode, data: Triple, to: Envelope) -> Result<()> {
    let (comm, tag) = (world::comm(to.comm)?, to.tag);
    let data = buffer(to.rank, data)?;
    if mode == Mode::Buffered {
        return request::outcome(begin(&comm, &data, to.rank, tag, mode)?.wait()).map(drop);
    }
    let (to, synchronous) = (dest(&comm, to.rank)?, mode == Mode::Synchronous);
    match data.plain()? {
        Some(bytes) => raw::send(comm.messages(), to, tag, bytes, synchronous)?,
        None => raw::send(comm.messages(), to, tag, &data.pack()?, synchronous)?,
    }
    Ok(())
}

fn isend_as(mode: Mode, data: Triple, to: Envelope, request: Pointer<Request>) -> Result<()> {
    let object = world::comm(to.comm)?;
    let pending = begin(&object, &buffer(to.rank, data)?, to.rank, to.tag, mode)?;
    request.set(request::running(pending, ErrorObject::Comm(to.comm))?)
}

macro_rules! sends {
    ($($(#[$doc:meta])* $send:ident, $isend:ident: $mode:ident;)*) => {$(
        $(#[$doc])*
        pub fn $send(data: Triple, to: Envelope) -> Result<()> {
            send_as(Mode::$mode, data, to)
        }

        /// The same, nonblocking.
        pub fn $isend(data: Triple, to: Envelope, request: Pointer<Request>) -> Result<()> {
            isend_as(Mode::$mode, data, to, request)
        }
    )*};
}

sends! {
    /// `MPI_Send`.
    send, isend: Standard;
    /// `MPI_Ssend`.
    ssend, issend: Synchronous;
    /// `MPI_Rsend`.
    rsend, irsend: Standard;
    /// `MPI_Bsend`.
    bsend, ibsend: Buffered;
}
