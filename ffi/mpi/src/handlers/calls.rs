//! The calls for error handlers (MPI-4.1 §9.3).

use std::ffi::{c_int, c_void};

use super::{ErrorObject, Handler, Of, UserHandler, called};
use crate::abi::{Comm, ERRHANDLER_NULL, Errhandler, Win};
use crate::comm::pending;
use crate::failure::Result;
use crate::pointer::Pointer;
use crate::world;

/// `MPI_Comm_create_errhandler`.
pub fn comm_create_errhandler(function: *const c_void, handler: Pointer<Errhandler>) -> Result<()> {
    handler.set(UserHandler::create(Of::Comm, function)?)
}

/// `MPI_Win_create_errhandler`.
pub fn win_create_errhandler(function: *const c_void, handler: Pointer<Errhandler>) -> Result<()> {
    handler.set(UserHandler::create(Of::Win, function)?)
}

/// `MPI_File_create_errhandler`.
pub fn file_create_errhandler(function: *const c_void, handler: Pointer<Errhandler>) -> Result<()> {
    handler.set(UserHandler::create(Of::File, function)?)
}

/// `MPI_Session_create_errhandler`.
pub fn session_create_errhandler(function: *const c_void, handler: Pointer<Errhandler>) -> Result<()> {
    handler.set(UserHandler::create(Of::Session, function)?)
}

/// `MPI_Errhandler_free`.
pub fn errhandler_free(handler: Pointer<Errhandler>) -> Result<()> {
    UserHandler::release(handler.get()?)?;
    handler.set(ERRHANDLER_NULL)
}

/// `MPI_Comm_set_errhandler`.
pub fn comm_set_errhandler(comm: Comm, handler: Errhandler) -> Result<()> {
    let handler = Handler::of(handler, Of::Comm)?;
    match (world::comm(comm), pending::handler(comm)) {
        (Ok(comm), _) => *comm.handler.write() = handler,
        (Err(_), Some(slot)) => *slot.write() = handler,
        (Err(failure), None) => return Err(failure),
    }
    Ok(())
}

/// `MPI_Comm_get_errhandler`.
pub fn comm_get_errhandler(comm: Comm, handler: Pointer<Errhandler>) -> Result<()> {
    let current = world::comm(comm)?.handler.read().clone();
    handler.set(current.handle()?)
}

/// `MPI_Comm_call_errhandler`.
pub fn comm_call_errhandler(comm: Comm, code: c_int) -> Result<()> {
    world::comm(comm)?;
    called(ErrorObject::Comm(comm), code)
}

/// `MPI_Win_set_errhandler`.
pub fn win_set_errhandler(win: Win, handler: Errhandler) -> Result<()> {
    *crate::win::get(win)?.handler.write() = Handler::of(handler, Of::Win)?;
    Ok(())
}

/// `MPI_Win_get_errhandler`.
pub fn win_get_errhandler(win: Win, handler: Pointer<Errhandler>) -> Result<()> {
    let current = crate::win::get(win)?.handler.read().clone();
    handler.set(current.handle()?)
}

/// `MPI_Win_call_errhandler`.
pub fn win_call_errhandler(win: Win, code: c_int) -> Result<()> {
    crate::win::get(win)?;
    called(ErrorObject::Win(win), code)
}
