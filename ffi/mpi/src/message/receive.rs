//! Receives and probes (MPI-4.1 §3.2.4, §3.7.2, §3.8.1, §3.11).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::raw;

use super::{buffer, dest, source, status as of, tag};
use crate::abi::{Comm, Datatype, PROC_NULL, Request, Status};
use crate::buffer::Buffer;
use crate::comm::CommObject;
use crate::failure::{Failure, Result};
use crate::handlers::Site;
use crate::place::{Place, flag};
use crate::request::calls::give;
use crate::request::{self, Outcome, Pending, filled};
use crate::world;

/// What came of a message whose data went where the program wanted it, or did not.
pub(super) fn received(comm: &CommObject, of_message: transom::Status, stored: Result<()>) -> Outcome {
    let status = of(comm, of_message);
    match stored {
        Ok(()) => Ok(status),
        Err(failure) => Err(failure.of_message(status)),
    }
}

/// Puts what came where the program wants it.
pub(super) fn store(data: transom::Result<Vec<u8>>, room: &Buffer) -> Result<()> {
    room.unpack(&data?)
}

/// Starts a receive.
pub fn begin(comm: &Arc<CommObject>, room: Buffer, from: c_int, with: c_int) -> Result<Pending> {
    let max = room.room()?;
    let started = raw::irecv(comm.messages(), source(comm, from)?, tag(with), max);
    let comm = comm.clone();
    Ok(filled(started, move |(data, status)| received(&comm, status, store(data, &room))))
}

/// `MPI_Recv`.
pub fn recv(
    room: *mut c_void,
    n: i64,
    ty: Datatype,
    from: c_int,
    with: c_int,
    comm: Comm,
    status: Place<Status>,
) -> Result<()> {
    let comm = world::comm(comm)?;
    let mut room = buffer(from, room, n, ty)?;
    let (stored, of_message) = match room.plain_mut()? {
        Some(bytes) => {
            let (stored, of_message) =
                raw::recv_into(comm.messages(), source(&comm, from)?, tag(with), bytes)?;
            (stored.map_err(Failure::from), of_message)
        }
        None => {
            let (data, of_message) = raw::recv(comm.messages(), source(&comm, from)?, tag(with))?;
            (store(data, &room), of_message)
        }
    };
    give(received(&comm, of_message, stored), status)
}

/// `MPI_Irecv`.
pub fn irecv(
    room: *mut c_void,
    n: i64,
    ty: Datatype,
    from: c_int,
    with: c_int,
    comm: Comm,
    request: Place<Request>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let pending = begin(&object, buffer(from, room, n, ty)?, from, with)?;
    request.set(request::running(pending, Site::Comm(comm))?)
}

/// `MPI_Sendrecv`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn sendrecv(
    data: *const c_void,
    n: i64,
    ty: Datatype,
    to: c_int,
    send_tag: c_int,
    room: *mut c_void,
    room_n: i64,
    room_ty: Datatype,
    from: c_int,
    with: c_int,
    comm: Comm,
    status: Place<Status>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let (data, room) = (buffer(to, data, n, ty)?, buffer(from, room, room_n, room_ty)?);
    exchange(&object, data.pack()?, to, send_tag, room, from, with, status)
}

/// `MPI_Sendrecv_replace`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn sendrecv_replace(
    room: *mut c_void,
    n: i64,
    ty: Datatype,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    with: c_int,
    comm: Comm,
    status: Place<Status>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let room = buffer(either(to, from), room, n, ty)?;
    exchange(&object, room.pack()?, to, send_tag, room, from, with, status)
}

#[expect(clippy::too_many_arguments, reason = "the standard's")]
fn exchange(
    comm: &Arc<CommObject>,
    data: Vec<u8>,
    to: c_int,
    send_tag: c_int,
    room: Buffer,
    from: c_int,
    with: c_int,
    status: Place<Status>,
) -> Result<()> {
    let to = dest(comm, to)?;
    let received = begin(comm, room, from, with)?;
    let sent = raw::isend(comm.messages(), to, send_tag, data, false);
    let received = request::outcome(received.wait());
    sent.wait()?;
    give(received, status)
}

/// `MPI_Probe`.
pub fn probe(from: c_int, with: c_int, comm: Comm, status: Place<Status>) -> Result<()> {
    let comm = world::comm(comm)?;
    give(Ok(of(&comm, comm.messages().probe(source(&comm, from)?, tag(with))?)), status)
}

/// `MPI_Iprobe`.
pub fn iprobe(
    from: c_int,
    with: c_int,
    comm: Comm,
    found: Place<c_int>,
    status: Place<Status>,
) -> Result<()> {
    let comm = world::comm(comm)?;
    let there = comm.messages().iprobe(source(&comm, from)?, tag(with))?;
    found.set(flag(there.is_some()))?;
    there.map_or(Ok(()), |there| give(Ok(of(&comm, there)), status))
}

/// `MPI_Isendrecv`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn isendrecv(
    data: *const c_void,
    n: i64,
    ty: Datatype,
    to: c_int,
    send_tag: c_int,
    room: *mut c_void,
    room_n: i64,
    room_ty: Datatype,
    from: c_int,
    with: c_int,
    comm: Comm,
    request: Place<Request>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let (data, room) = (buffer(to, data, n, ty)?, buffer(from, room, room_n, room_ty)?);
    both(comm, &object, data.pack()?, (to, send_tag), room, (from, with), request)
}

/// `MPI_Isendrecv_replace`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn isendrecv_replace(
    room: *mut c_void,
    n: i64,
    ty: Datatype,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    with: c_int,
    comm: Comm,
    request: Place<Request>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let room = buffer(either(to, from), room, n, ty)?;
    both(comm, &object, room.pack()?, (to, send_tag), room, (from, with), request)
}

/// One that is somebody, if there is one.
fn either(to: c_int, from: c_int) -> c_int {
    if to == PROC_NULL { from } else { to }
}

/// A send and a receive with one request: that of the receive, as the data to send has been copied.
fn both(
    handle: Comm,
    comm: &Arc<CommObject>,
    data: Vec<u8>,
    (to, send_tag): (c_int, c_int),
    room: Buffer,
    (from, with): (c_int, c_int),
    request: Place<Request>,
) -> Result<()> {
    let to = dest(comm, to)?;
    let received = begin(comm, room, from, with)?;
    request::let_go(filled(raw::isend(comm.messages(), to, send_tag, data, false), |_| Ok(Status::EMPTY)));
    request.set(request::running(received, Site::Comm(handle))?)
}
