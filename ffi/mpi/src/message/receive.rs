//! Receives and probes (MPI-4.1 §3.2.4, §3.7.2, §3.8.1, §3.11).

use std::ffi::c_int;

use transom::raw::SlotReceive;
use transom::{RawBuffer, Source, Tag, raw};

use super::{Envelope, buffer, dest, send, source, status as of, tag};
use crate::abi::{ANY_SOURCE, Comm, PROC_NULL, Request, SUCCESS, Status};
use crate::buffer::{Buffer, Triple, bytes_mut, raw_buffer};
use crate::comm::CommObject;
use crate::comm::inter::Inter;
use crate::failure::{Failure, Result};
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::request::calls::give;
use crate::request::{self, Outcome, Pending, filled, slots};
use crate::world;

/// What came of a message whose data went where the program wanted it, or did not.
pub fn received(inter: Option<&Inter>, of_message: transom::Status, stored: Result<()>) -> Outcome {
    let status = of(inter, of_message);
    match stored {
        Ok(()) => Ok(status),
        Err(failure) => Err(failure.of_message(status)),
    }
}

/// Puts what came where the program wants it.
pub(super) fn store(data: transom::Result<Vec<u8>>, recv_buffer: &Buffer) -> Result<()> {
    recv_buffer.unpack(&data?)
}

/// That a message came to its place, or did not.
pub fn in_place<B>(came: transom::Result<B>) -> Result<()> {
    Ok(came.map(drop)?)
}

/// Starts a receive.
pub fn begin(comm: &CommObject, recv_buffer: Buffer, from: c_int, with: c_int) -> Result<Pending> {
    let (from, with) = (source(comm, from)?, tag(with));
    Ok(match recv_buffer.raw()? {
        Some(place) => begin_in_place(comm, (from, with), place),
        None => {
            let inter = comm.inter.clone();
            let started = raw::irecv(comm.messages(), from, with, recv_buffer.capacity()?);
            filled(started, move |(data, status)| {
                received(inter.as_deref(), status, store(data, &recv_buffer))
            })
        }
    })
}

/// Starts a receive of bytes.
fn begin_in_place(comm: &CommObject, (from, with): (Source, Tag), place: RawBuffer) -> Pending {
    let inter = comm.inter.clone();
    raw::irecv_into(comm.messages(), from, with, place, move |(came, status)| {
        Ok(received(inter.as_deref(), status, in_place(came)))
    })
}

/// `MPI_Recv`.
pub fn recv(recv_buffer: Triple, from: Envelope, status: Pointer<Status>) -> Result<()> {
    let comm = world::hold(from.comm)?;
    let recv_buffer = buffer(from.rank, recv_buffer)?;
    give(await_one(&comm, recv_buffer, source(&comm, from.rank)?, tag(from.tag))?, status)
}

/// `MPI_Recv` of plain data that has come, or comes soon: none else, and nothing is done.
#[inline]
pub fn recv_now(recv_buffer: Triple, from: Envelope, status: Pointer<Status>) -> Option<c_int> {
    let len = recv_buffer.plain_len()?;
    let source = match usize::try_from(from.rank) {
        Ok(rank) => Source::Rank(rank),
        Err(_) if from.rank == ANY_SOURCE => Source::Any,
        Err(_) => return None,
    };
    if !world::is_running() || status.is_null() && !status.is_ignored() {
        return None;
    }
    let comm = world::hold(from.comm).ok().filter(|comm| comm.inter.is_none())?;
    let bytes = bytes_mut(recv_buffer.address, len).ok()?;
    let of_message = raw::recv_now(&comm.comm, source, tag(from.tag), bytes)?;
    give(Ok(of(None, of_message)), status).ok().map(|()| SUCCESS)
}

/// Waits for a message.
fn await_one(comm: &CommObject, mut recv_buffer: Buffer, from: Source, with: Tag) -> Result<Outcome> {
    let (stored, of_message) = match recv_buffer.plain_mut()? {
        Some(bytes) => {
            let (stored, of_message) = raw::recv_into(comm.messages(), from, with, bytes)?;
            (stored.map_err(Failure::from), of_message)
        }
        None => {
            let (data, of_message) = raw::recv(comm.messages(), from, with)?;
            (store(data, &recv_buffer), of_message)
        }
    };
    Ok(received(comm.inter.as_deref(), of_message, stored))
}

/// `MPI_Irecv` of plain data from one rank, if a slot is free: none else, and nothing is done.
#[inline]
pub fn irecv_now(recv_buffer: Triple, from: Envelope, request: Pointer<Request>) -> Option<c_int> {
    let len = recv_buffer.plain_len().filter(|_| !request.is_null())?;
    let source = usize::try_from(from.rank).ok()?;
    if !world::is_running() {
        return None;
    }
    let comm = world::peek(from.comm).ok().filter(|comm| comm.inter.is_none())?;
    let buffer = raw_buffer(recv_buffer.address, len).ok()?;
    let receive = SlotReceive::post(&comm.comm, source, tag(from.tag), buffer)?;
    request.replace(slots::handle(receive, from));
    Some(SUCCESS)
}

/// `MPI_Irecv`.
pub fn irecv(recv_buffer: Triple, from: Envelope, request: Pointer<Request>) -> Result<()> {
    let comm = world::peek(from.comm)?;
    let pending = match recv_buffer.plain_len().filter(|_| from.rank != PROC_NULL) {
        Some(len) => {
            let of = (source(comm, from.rank)?, tag(from.tag));
            begin_in_place(comm, of, raw_buffer(recv_buffer.address, len)?)
        }
        None => begin(comm, buffer(from.rank, recv_buffer)?, from.rank, from.tag)?,
    };
    request.set(request::running(pending, ErrorObject::Comm(from.comm))?)
}

/// `MPI_Probe`.
pub fn probe(from: Envelope, status: Pointer<Status>) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let there = comm.messages().probe(source(&comm, from.rank)?, tag(from.tag))?;
    give(Ok(of(comm.inter.as_deref(), there)), status)
}

/// `MPI_Iprobe`.
pub fn iprobe(from: Envelope, found: Pointer<c_int>, status: Pointer<Status>) -> Result<()> {
    let comm = world::comm(from.comm)?;
    let there = comm.messages().iprobe(source(&comm, from.rank)?, tag(from.tag))?;
    found.set(flag(there.is_some()))?;
    there.map_or(Ok(()), |there| give(Ok(of(comm.inter.as_deref(), there)), status))
}

/// A send and a receive at once: data, and a place for data, each with rank and tag.
struct Exchange {
    data: Buffer,
    to: (c_int, c_int),
    recv_buffer: Buffer,
    from: (c_int, c_int),
    /// Whether what comes replaces the data.
    replaces: bool,
}

impl Exchange {
    /// Begins both, if nothing is wrong with the send: else the receive may wait for ever for what another rank sends in the same way. With
    /// `copies` the data to send may change at once.
    fn begin(self, comm: &CommObject, copies: bool) -> Result<(Pending, Pending)> {
        let to = dest(comm, self.to.0)?;
        raw::check_send(comm.messages(), to, self.to.1)?;
        let in_place = if copies || self.replaces { None } else { self.data.raw()? };
        let packed = if in_place.is_none() { self.data.pack()? } else { Vec::new() };
        let received = begin(comm, self.recv_buffer, self.from.0, self.from.1)?;
        let sent = match in_place {
            Some(data) => send::sent(raw::isend_from(comm.messages(), to, self.to.1, data, false)),
            None => send::sent(raw::isend(comm.messages(), to, self.to.1, packed, false)),
        };
        Ok((received, sent))
    }

    fn now(self, comm: &CommObject, status: Pointer<Status>) -> Result<()> {
        let (from, with) = (source(comm, self.from.0)?, tag(self.from.1));
        let to = dest(comm, self.to.0)?;
        raw::check_receive(comm.messages(), from, with)?;
        self.recv_buffer.raw()?;
        let is_sent = match self.data.plain()? {
            Some(data) => raw::send_now(comm.messages(), to, self.to.1, data),
            None => false,
        };
        if is_sent {
            let mut recv_buffer = self.recv_buffer;
            if let (None, Some(bytes)) = (&comm.inter, recv_buffer.plain_mut()?)
                && let Some(of_message) = raw::recv_now(comm.messages(), from, with, bytes)
            {
                return give(Ok(of(None, of_message)), status);
            }
            return give(await_one(comm, recv_buffer, from, with)?, status);
        }
        let (received, sent) = self.begin(comm, false)?;
        let received = request::outcome(received.wait());
        request::outcome(sent.wait())?;
        give(received, status)
    }

    /// With one request: that of the receive, as the data to send has been copied.
    fn later(self, comm: &CommObject, handle: Comm, request: Pointer<Request>) -> Result<()> {
        let (received, sent) = self.begin(comm, true)?;
        request::detach(sent);
        request.set(request::running(received, ErrorObject::Comm(handle))?)
    }
}

/// The two forms of an exchange.
macro_rules! exchanges {
    ($($(#[$doc:meta])* $now:ident, $later:ident: ($($arg:ident: $ty:ty),*) $exchange:block)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $now($($arg: $ty,)* comm: Comm, status: Pointer<Status>) -> Result<()> {
            let object = world::comm(comm)?;
            let exchange: Exchange = $exchange;
            exchange.now(&object, status)
        }

        /// The same, nonblocking.
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $later($($arg: $ty,)* comm: Comm, request: Pointer<Request>) -> Result<()> {
            let object = world::comm(comm)?;
            let exchange: Exchange = $exchange;
            exchange.later(&object, comm, request)
        }
    )*};
}

exchanges! {
    /// `MPI_Sendrecv`.
    sendrecv, isendrecv:
    (data: Triple, to: c_int, send_tag: c_int, recv_buffer: Triple, from: c_int, with: c_int) {
        let (data, recv_buffer) = (buffer(to, data)?, buffer(from, recv_buffer)?);
        Exchange { data, to: (to, send_tag), recv_buffer, from: (from, with), replaces: false }
    }

    /// `MPI_Sendrecv_replace`.
    sendrecv_replace, isendrecv_replace:
    (recv_buffer: Triple, to: c_int, send_tag: c_int, from: c_int, with: c_int) {
        let recv_buffer = buffer(either(to, from), recv_buffer)?;
        let data = recv_buffer.clone();
        Exchange { data, to: (to, send_tag), recv_buffer, from: (from, with), replaces: true }
    }
}

/// One that is somebody, if there is one.
fn either(to: c_int, from: c_int) -> c_int {
    if to == PROC_NULL { from } else { to }
}
