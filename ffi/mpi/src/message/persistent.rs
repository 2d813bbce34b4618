//! Persistent requests of messages (MPI-4.1 §3.9).

use std::ffi::{c_int, c_void};

use super::send::Mode;
use super::{buffer, receive, send};
use crate::abi::{Comm, Datatype, Request};
use crate::failure::Result;
use crate::handlers::Site;
use crate::place::Place;
use crate::{request, world};

#[expect(clippy::too_many_arguments, reason = "the standard's, and the mode")]
fn init_as(
    mode: Mode,
    data: *const c_void,
    n: i64,
    ty: Datatype,
    to: c_int,
    tag: c_int,
    comm: Comm,
    request: Place<Request>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let data = buffer(to, data, n, ty)?;
    super::dest(&object, to)?;
    let start = Box::new(move || send::begin(&object, &data, to, tag, mode));
    request.set(request::persistent(start, Site::Comm(comm))?)
}

macro_rules! inits {
    ($($(#[$doc:meta])* $name:ident: $mode:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(
            data: *const c_void, n: i64, ty: Datatype, to: c_int, tag: c_int, comm: Comm,
            request: Place<Request>,
        ) -> Result<()> {
            init_as(Mode::$mode, data, n, ty, to, tag, comm, request)
        }
    )*};
}

inits! {
    /// `MPI_Send_init`.
    send_init: Standard;
    /// `MPI_Ssend_init`.
    ssend_init: Synchronous;
    /// `MPI_Rsend_init`.
    rsend_init: Standard;
    /// `MPI_Bsend_init`.
    bsend_init: Buffered;
}

/// `MPI_Recv_init`.
pub fn recv_init(
    room: *mut c_void,
    n: i64,
    ty: Datatype,
    from: c_int,
    with: c_int,
    comm: Comm,
    request: Place<Request>,
) -> Result<()> {
    let object = world::comm(comm)?;
    let room = buffer(from, room, n, ty)?;
    super::source(&object, from)?;
    let start = Box::new(move || receive::begin(&object, room.clone(), from, with));
    request.set(request::persistent(start, Site::Comm(comm))?)
}
