//! The tools' interface (MPI-4.1 chapter 15): it can be started and asked for performance variables ([`pvars`]), and says that there are
//! no control variables, categories or events. Its functions return codes of their own and know no error handlers (§15.3.9).

mod pvars;

pub use pvars::*;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::{
    self, Aint, Count, Datatype, Info, T_ERR_INVALID_HANDLE, T_ERR_INVALID_INDEX, T_ERR_INVALID_NAME,
    T_ERR_NOT_INITIALIZED,
};
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, Text};

/// Starts without an end.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A handle that C sees as a pointer.
type Handle = *mut c_void;

fn check_started() -> Result<()> {
    if STARTED.load(Ordering::Relaxed) > 0 {
        return Ok(());
    }
    fail(T_ERR_NOT_INITIALIZED, "MPI_T_init_thread has not been called")
}

/// What is asked for is not there.
fn absent(code: c_int) -> Result<()> {
    check_started()?;
    fail(code, "there is no such thing")
}

/// `MPI_T_init_thread`.
pub fn t_init_thread(required: c_int, provided: Pointer<c_int>) -> Result<()> {
    STARTED.fetch_add(1, Ordering::Relaxed);
    provided.set(required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE))
}

/// `MPI_T_finalize`.
pub fn t_finalize() -> Result<()> {
    check_started()?;
    STARTED.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}

/// `MPI_T_category_changed`: never.
pub fn t_category_changed(number: Pointer<c_int>) -> Result<()> {
    check_started()?;
    number.set(0)
}

macro_rules! numbers {
    ($($name:ident();)*) => {$(
        /// The number of such things: none.
        pub fn $name(number: Pointer<c_int>) -> Result<()> {
            check_started()?;
            number.set(0)
        }
    )*};
}

numbers! {
    t_cvar_get_num();
    t_category_get_num();
    t_event_get_num();
    t_source_get_num();
}

macro_rules! absent {
    ($($code:ident: $name:ident($($ty:ty),*);)*) => {$(
        /// Asks for something that is not there.
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $name($(_: $ty),*) -> Result<()> {
            absent($code)
        }
    )*};
}

type Int = Pointer<c_int>;

absent! {
    T_ERR_INVALID_NAME: t_cvar_get_index(Text, Int);
    T_ERR_INVALID_NAME: t_category_get_index(Text, Int);
    T_ERR_INVALID_NAME: t_event_get_index(Text, Int);
    T_ERR_INVALID_INDEX: t_cvar_get_info(c_int, Text, Int, Int, Pointer<Datatype>, Pointer<Handle>, Text, Int, Int, Int);
    T_ERR_INVALID_INDEX: t_cvar_handle_alloc(c_int, *mut c_void, Pointer<Handle>, Int);
    T_ERR_INVALID_HANDLE: t_cvar_handle_free(Pointer<Handle>);
    T_ERR_INVALID_HANDLE: t_cvar_read(Handle, *mut c_void);
    T_ERR_INVALID_HANDLE: t_cvar_write(Handle, *const c_void);
    T_ERR_INVALID_INDEX: t_category_get_info(c_int, Text, Int, Text, Int, Int, Int, Int);
    T_ERR_INVALID_INDEX: t_category_get_num_events(c_int, Int);
    T_ERR_INVALID_INDEX: t_category_get_categories(c_int, c_int, Int);
    T_ERR_INVALID_INDEX: t_category_get_cvars(c_int, c_int, Int);
    T_ERR_INVALID_INDEX: t_category_get_pvars(c_int, c_int, Int);
    T_ERR_INVALID_INDEX: t_category_get_events(c_int, c_int, Int);
    T_ERR_INVALID_HANDLE: t_enum_get_info(Handle, Int, Text, Int);
    T_ERR_INVALID_HANDLE: t_enum_get_item(Handle, c_int, Int, Text, Int);
    T_ERR_INVALID_INDEX: t_event_get_info(
        c_int, Text, Int, Int, Pointer<Datatype>, Pointer<Aint>, Int, Pointer<Handle>, Pointer<Info>, Text, Int, Int);
    T_ERR_INVALID_INDEX: t_event_handle_alloc(c_int, *mut c_void, Info, Pointer<Handle>);
    T_ERR_INVALID_HANDLE: t_event_handle_free(Handle, *mut c_void, Handle);
    T_ERR_INVALID_HANDLE: t_event_handle_get_info(Handle, Pointer<Info>);
    T_ERR_INVALID_HANDLE: t_event_handle_set_info(Handle, Info);
    T_ERR_INVALID_HANDLE: t_event_register_callback(Handle, c_int, Info, *mut c_void, Handle);
    T_ERR_INVALID_HANDLE: t_event_set_dropped_handler(Handle, Handle);
    T_ERR_INVALID_HANDLE: t_event_callback_get_info(Handle, c_int, Pointer<Info>);
    T_ERR_INVALID_HANDLE: t_event_callback_set_info(Handle, c_int, Info);
    T_ERR_INVALID_HANDLE: t_event_read(Handle, c_int, *mut c_void);
    T_ERR_INVALID_HANDLE: t_event_copy(Handle, *mut c_void);
    T_ERR_INVALID_HANDLE: t_event_get_timestamp(Handle, Pointer<Count>);
    T_ERR_INVALID_HANDLE: t_event_get_source(Handle, Int);
    T_ERR_INVALID_INDEX: t_source_get_info(c_int, Text, Int, Text, Int, Int, Pointer<Count>, Pointer<Count>, Pointer<Info>);
    T_ERR_INVALID_INDEX: t_source_get_timestamp(c_int, Pointer<Count>);
}
