//! Buffered sends (MPI-4.1 §3.6): the program says how much may be on its way, over one communicator, those of a session, or all
//! of them; the copies are the runtime's own.

use std::ffi::c_void;
use std::sync::Arc;

use parking_lot::Mutex;
use transom::raw::{Part, all_of};

use crate::abi::{BSEND_OVERHEAD, BUFFER_AUTOMATIC, Comm, ERR_BUFFER, Request, Session, Status};
use crate::comm::CommObject;
use crate::environment::store_pointer;
use crate::failure::{Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::{Counts, Pointer};
use crate::{request, session, world};

/// What the program has attached.
#[derive(Debug)]
struct Attached {
    address: usize,
    size: usize,
    /// Bytes of each message on its way, and its request, which may be a part of others that flush it.
    under_way: Vec<(usize, Arc<Part<Vec<u8>>>)>,
}

/// Where a buffer can be attached.
#[derive(Debug, Default)]
pub struct Slot(Mutex<Option<Attached>>);

/// The buffer for all communicators that have none of their own.
static SHARED: Slot = Slot::new();

impl Slot {
    /// Without a buffer.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn attach(&self, address: *mut c_void, size: i64) -> Result<()> {
        let mut buffer = self.0.lock();
        if buffer.is_some() {
            return fail(ERR_BUFFER, "a buffer is attached already");
        }
        let size =
            usize::try_from(size).or_else(|_| fail(ERR_BUFFER, format!("a buffer of {size} bytes")))?;
        *buffer = Some(Attached { address: address as usize, size, under_way: Vec::new() });
        Ok(())
    }

    /// Takes the buffer away once all its messages are delivered.
    fn detach(&self, address: *mut c_void, size: Counts) -> Result<()> {
        self.flush()?;
        let Some(attached) = self.0.lock().take() else {
            return fail(ERR_BUFFER, "no buffer is attached");
        };
        let automatic = attached.address == BUFFER_AUTOMATIC;
        store_pointer(address, attached.address as *mut c_void)?;
        size.set(if automatic { 0 } else { attached.size as i64 })
    }

    /// Done when all messages are delivered that are on their way now.
    fn delivery(&self) -> Result<Option<transom::Request<()>>> {
        match &*self.0.lock() {
            Some(attached) => {
                Ok(all_of(attached.under_way.iter().map(|(_, request)| request.clone()).collect()))
            }
            None => fail(ERR_BUFFER, "no buffer is attached"),
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(self.delivery()?.map_or(Ok(()), transom::Request::wait)?)
    }

    fn iflush(&self, error_object: ErrorObject, request: Pointer<Request>) -> Result<()> {
        request.set(match self.delivery()? {
            Some(delivery) => {
                request::running(request::filled(delivery, |()| Ok(Status::EMPTY)), error_object)?
            }
            None => request::done()?,
        })
    }
}

/// Sends a message whose bytes fit a buffer.
pub(super) fn keep(
    comm: &CommObject,
    bytes: usize,
    send: impl FnOnce() -> transom::Request<Vec<u8>>,
) -> Result<()> {
    // The communicator's goes before its session's, and that before the one for all.
    let slots = [Some(&comm.buffer), comm.origin.as_deref(), Some(&SHARED)];
    let mut attached = slots.into_iter().flatten().map(|slot| slot.0.lock()).filter(|slot| slot.is_some());
    let mut buffer = attached.next();
    let Some(attached) = buffer.as_mut().and_then(|buffer| buffer.as_mut()) else {
        return fail(ERR_BUFFER, "no buffer is attached: call MPI_Buffer_attach first");
    };
    attached.under_way.retain(|(_, request)| !request.is_done());
    let needed = bytes + BSEND_OVERHEAD as usize;
    let used: usize = attached.under_way.iter().map(|(bytes, _)| bytes).sum();
    let free = attached.size.saturating_sub(used);
    if attached.address != BUFFER_AUTOMATIC && needed > free {
        let message = format!("a message needs {needed} bytes of the attached buffer, {free} are free");
        return fail(ERR_BUFFER, message);
    }
    attached.under_way.push((needed, Part::new(send())));
    Ok(())
}

/// `MPI_Buffer_attach`.
pub fn buffer_attach(address: *mut c_void, size: i64) -> Result<()> {
    SHARED.attach(address, size)
}

/// `MPI_Buffer_detach`.
pub fn buffer_detach(address: *mut c_void, size: Counts) -> Result<()> {
    SHARED.detach(address, size)
}

/// `MPI_Buffer_flush`.
pub fn buffer_flush() -> Result<()> {
    SHARED.flush()
}

/// `MPI_Buffer_iflush`.
pub fn buffer_iflush(request: Pointer<Request>) -> Result<()> {
    SHARED.iflush(ErrorObject::None, request)
}

/// `MPI_Comm_attach_buffer`.
pub fn comm_attach_buffer(comm: Comm, address: *mut c_void, size: i64) -> Result<()> {
    world::comm(comm)?.buffer.attach(address, size)
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach_buffer(comm: Comm, address: *mut c_void, size: Counts) -> Result<()> {
    world::comm(comm)?.buffer.detach(address, size)
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush_buffer(comm: Comm) -> Result<()> {
    world::comm(comm)?.buffer.flush()
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush_buffer(comm: Comm, request: Pointer<Request>) -> Result<()> {
    world::comm(comm)?.buffer.iflush(ErrorObject::Comm(comm), request)
}

/// `MPI_Session_attach_buffer`.
pub fn session_attach_buffer(session: Session, address: *mut c_void, size: i64) -> Result<()> {
    session::buffer(session)?.attach(address, size)
}

/// `MPI_Session_detach_buffer`.
pub fn session_detach_buffer(session: Session, address: *mut c_void, size: Counts) -> Result<()> {
    session::buffer(session)?.detach(address, size)
}

/// `MPI_Session_flush_buffer`.
pub fn session_flush_buffer(session: Session) -> Result<()> {
    session::buffer(session)?.flush()
}

/// `MPI_Session_iflush_buffer`.
pub fn session_iflush_buffer(session: Session, request: Pointer<Request>) -> Result<()> {
    session::buffer(session)?.iflush(ErrorObject::Session(session), request)
}
