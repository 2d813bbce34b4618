//! Persistent requests of messages (MPI-4.1 §3.9).

use super::send::Mode;
use super::{Envelope, buffer, receive, send};
use crate::abi::Request;
use crate::buffer::Triple;
use crate::failure::Result;
use crate::handlers::ErrorObject;
use crate::pointer::Pointer;
use crate::{request, world};

fn init_as(mode: Mode, data: Triple, to: Envelope, request: Pointer<Request>) -> Result<()> {
    let object = world::comm(to.comm)?;
    let data = buffer(to.rank, data)?;
    super::dest(&object, to.rank)?;
    let start = Box::new(move || send::begin(&object, &data, to.rank, to.tag, mode));
    request.set(request::persistent(start, ErrorObject::Comm(to.comm))?)
}

macro_rules! inits {
    ($($(#[$doc:meta])* $name:ident: $mode:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(data: Triple, to: Envelope, request: Pointer<Request>) -> Result<()> {
            init_as(Mode::$mode, data, to, request)
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
pub fn recv_init(recv_buffer: Triple, from: Envelope, request: Pointer<Request>) -> Result<()> {
    let object = world::comm(from.comm)?;
    let recv_buffer = buffer(from.rank, recv_buffer)?;
    super::source(&object, from.rank)?;
    let start = Box::new(move || receive::begin(&object, recv_buffer.clone(), from.rank, from.tag));
    request.set(request::persistent(start, ErrorObject::Comm(from.comm))?)
}
