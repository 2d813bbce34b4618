//! Making and freeing windows (MPI-4.1 §12.2).

use std::ffi::c_void;
use std::sync::Arc;

use transom::{Window, WindowOptions};

use super::{WINS, WinObject, get};
use crate::abi::{Aint, Comm, ERR_ARG, ERR_BASE, ERR_DISP, ERR_SIZE, ERR_WIN, Info, WIN_NULL, Win};
use crate::environment::store_pointer;
use crate::failure::{Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::Pointer;
use crate::{buffer, info, world};

/// A size in bytes.
fn bytes(size: Aint) -> Result<usize> {
    usize::try_from(size).or_else(|_| fail(ERR_SIZE, format!("a window of {size} bytes")))
}

fn options(unit: i64, info: Info) -> Result<WindowOptions> {
    match usize::try_from(unit) {
        Ok(unit) if unit > 0 => Ok(WindowOptions { displacement_unit: Some(unit), info: info::hints(info)? }),
        _ => fail(ERR_DISP, format!("a displacement unit of {unit} bytes: it is 1 or more")),
    }
}

fn add(window: Window<u8>, base: usize, win: Pointer<Win>) -> Result<()> {
    win.set(Win(WINS.insert(Arc::new(WinObject::new(window, base)))?))
}

/// That there are places for what a call gives: a window that was made could not be given back by this rank alone.
fn check_places(base: *mut c_void, win: Pointer<Win>) -> Result<()> {
    win.check()?;
    if base.is_null() { fail(ERR_ARG, "the place for an address is a null pointer") } else { Ok(()) }
}

/// `MPI_Win_create`.
pub fn win_create(
    base: *mut c_void,
    size: Aint,
    unit: i64,
    info: Info,
    comm: Comm,
    win: Pointer<Win>,
) -> Result<()> {
    win.check()?;
    let comm = world::comm(comm)?;
    let (size, options) = (bytes(size)?, options(unit, info)?);
    if size > 0 && (base as usize) < 4096 {
        return fail(ERR_BASE, format!("{size} bytes at address {base:p}"));
    }
    let window = comm.comm.create_raw(buffer::raw_buffer(base, size)?, &options)?;
    add(window, base as usize, win)
}

/// Functions that allocate a window by a method of communicators, and say where this rank's memory is.
macro_rules! allocating {
    ($($(#[$doc:meta])* $name:ident: $allocate:ident, |$window:ident| $address:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(
            size: Aint,
            unit: i64,
            info: Info,
            comm: Comm,
            base: *mut c_void,
            win: Pointer<Win>,
        ) -> Result<()> {
            check_places(base, win)?;
            let comm = world::comm(comm)?;
            let $window = comm.comm.$allocate::<u8>(bytes(size)?, &options(unit, info)?)?;
            let address = $address;
            add($window, address, win)?;
            store_pointer(base, address as *mut c_void)
        }
    )*};
}

allocating! {
    /// `MPI_Win_allocate`.
    win_allocate: allocate_with, |window| window.base();
    /// `MPI_Win_allocate_shared`.
    win_allocate_shared: allocate_shared_with, |window| window.local().address();
}

/// `MPI_Win_create_dynamic`.
pub fn win_create_dynamic(info: Info, comm: Comm, win: Pointer<Win>) -> Result<()> {
    win.check()?;
    let comm = world::comm(comm)?;
    let window = comm.comm.dynamic_with::<u8>(&options(1, info)?)?;
    add(window, 0, win)
}

/// `MPI_Win_attach`.
pub fn win_attach(win: Win, base: *mut c_void, size: Aint) -> Result<()> {
    let object = get(win)?;
    let size = bytes(size)?;
    if size == 0 {
        return Ok(());
    }
    if (base as usize) < 4096 {
        return fail(ERR_ARG, format!("{size} bytes at address {base:p}"));
    }
    object.window().attach_raw(buffer::raw_buffer(base, size)?)?;
    Ok(())
}

/// `MPI_Win_detach`.
pub fn win_detach(win: Win, base: *const c_void) -> Result<()> {
    // SAFETY: a program that detaches memory which its peers may access yet (PETSc's scatters over windows) has them access what is
    // there, as with other implementations; MPI-4.1 §12.2.4 makes that the program's error, and what it does to memory its own.
    let lingering = unsafe { transom::Lingering::new() };
    Ok(get(win)?.window().detach_lingering(base as usize, lingering)?)
}

/// `MPI_Win_free`. An epoch that is open is an error; where a rank of the window has died it ends here, since what would have ended it
/// may have failed.
pub fn win_free(win: Pointer<Win>) -> Result<()> {
    let handle = win.get()?;
    let at = |failure: crate::failure::Failure| failure.at(ErrorObject::Win(handle));
    let object = get(handle)?;
    if object.window().failed().is_empty() {
        object.epochs().check_closed("free").map_err(|e| at(e.into()))?;
    }
    object.attributes.delete_all(handle.0).map_err(at)?;
    drop(object);
    let object = WINS.remove(handle.0)?;
    win.set(WIN_NULL)?;
    match Arc::into_inner(object) {
        Some(object) => Ok(object.free()?),
        None => fail(ERR_WIN, "another thread is in a call with this window"),
    }
}
