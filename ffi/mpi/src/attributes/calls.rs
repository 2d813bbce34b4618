//! The calls for attributes and their keys (MPI-4.1 §7.7).

use std::ffi::{c_int, c_void};

use super::{Convention, Functions, Of, Value, create, free};
use crate::abi::{
    self, ANY_SOURCE, APPNUM, Comm, Datatype, ERR_KEYVAL, HOST, IO, LASTUSEDCODE, MPIX_FT, PROC_NULL, TAG_UB,
    UNIVERSE_SIZE, WTIME_IS_GLOBAL, Win,
};
use crate::environment::store_pointer;
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, flag};
use crate::{errors, types, win, world};

macro_rules! keys {
    ($($(#[$doc:meta])* $create:ident, $free:ident: $of:ident;)*) => {$(
        $(#[$doc])*
        pub fn $create(
            copy: *const c_void,
            delete: *const c_void,
            keyval: Pointer<c_int>,
            extra_state: *mut c_void,
        ) -> Result<()> {
            let functions = Functions { convention: Convention::C, copy, delete };
            keyval.set(create(Of::$of, functions, extra_state))
        }

        /// Frees such a key.
        pub fn $free(keyval: Pointer<c_int>) -> Result<()> {
            keyval.set(free(Of::$of, keyval.get()?)?)
        }
    )*};
}

keys! {
    /// `MPI_Comm_create_keyval`.
    comm_create_keyval, comm_free_keyval: Comm;
    /// `MPI_Win_create_keyval`.
    win_create_keyval, win_free_keyval: Win;
    /// `MPI_Type_create_keyval`.
    type_create_keyval, type_free_keyval: Type;
    /// `MPI_Keyval_create`, deprecated.
    keyval_create, keyval_free: Comm;
}

/// Gives the program an attribute: its value, stored where it wants it.
fn give(value: Option<Value>, place: *mut c_void, found: Pointer<c_int>) -> Result<()> {
    if let Some(value) = &value {
        store_pointer(place, value.for_c() as *mut c_void)?;
    }
    found.set(flag(value.is_some()))
}

/// Whether it is a predefined key, which no key of a program's is.
pub fn is_predefined(keyval: c_int) -> bool {
    let of_worlds = [TAG_UB, IO, HOST, WTIME_IS_GLOBAL, APPNUM, LASTUSEDCODE, UNIVERSE_SIZE, MPIX_FT];
    of_worlds.contains(&keyval) || win::ATTRIBUTES.contains(&keyval)
}

fn check_not_predefined(keyval: c_int) -> Result<()> {
    if is_predefined(keyval) {
        return fail(ERR_KEYVAL, "predefined attributes cannot be changed");
    }
    Ok(())
}

/// The address of the value of a predefined attribute (§9.1.2); values do not change.
fn predefined(keyval: c_int) -> Option<usize> {
    use std::sync::OnceLock;
    static VALUES: [OnceLock<c_int>; 7] = [const { OnceLock::new() }; 7];
    let (place, value) = match keyval {
        TAG_UB => (0, c_int::MAX),
        IO => (1, ANY_SOURCE),
        HOST => (2, PROC_NULL),
        WTIME_IS_GLOBAL => (3, 0),
        APPNUM => (4, world::program()),
        UNIVERSE_SIZE => {
            let size =
                world::comm(abi::COMM_WORLD).ok().and_then(|comm| c_int::try_from(comm.comm.size()).ok());
            (5, size?)
        }
        // ULFM's: whether the job goes on when a process dies.
        MPIX_FT => (6, c_int::from(world::outlives_ranks())),
        _ => return None,
    };
    Some(std::ptr::from_ref(VALUES[place].get_or_init(|| value)) as usize)
}

/// The address of `MPI_LASTUSEDCODE`'s value, which grows.
fn last_used_code() -> usize {
    use std::sync::atomic::{AtomicI32, Ordering};
    static VALUE: AtomicI32 = AtomicI32::new(0);
    VALUE.store(errors::last_used(), Ordering::Relaxed);
    VALUE.as_ptr() as usize
}

/// The value of a communicator's attribute.
pub fn comm_attr(comm: Comm, keyval: c_int) -> Result<Option<Value>> {
    let object = world::comm(comm)?;
    if keyval == LASTUSEDCODE {
        return Ok(Some(Value::Pointer(last_used_code())));
    }
    match predefined(keyval) {
        Some(address) => Ok(Some(Value::Pointer(address))),
        None => object.attributes.get(Of::Comm, keyval),
    }
}

/// The value of a window's attribute.
pub fn win_attr(win: Win, keyval: c_int) -> Result<Option<Value>> {
    let object = win::get(win)?;
    match keyval {
        _ if win::ATTRIBUTES.contains(&keyval) => Ok(Some(Value::Pointer(object.predefined(keyval)))),
        _ => object.attributes.get(Of::Win, keyval),
    }
}

/// The value of a datatype's attribute.
pub fn type_attr(ty: Datatype, keyval: c_int) -> Result<Option<Value>> {
    types::get(ty)?.attributes.get(Of::Type, keyval)
}

/// `MPI_Comm_get_attr`.
pub fn comm_get_attr(comm: Comm, keyval: c_int, value: *mut c_void, found: Pointer<c_int>) -> Result<()> {
    give(comm_attr(comm, keyval)?, value, found)
}

/// `MPI_Attr_get`, deprecated.
pub fn attr_get(comm: Comm, keyval: c_int, value: *mut c_void, found: Pointer<c_int>) -> Result<()> {
    comm_get_attr(comm, keyval, value, found)
}

/// `MPI_Win_get_attr`.
pub fn win_get_attr(win: Win, keyval: c_int, value: *mut c_void, found: Pointer<c_int>) -> Result<()> {
    give(win_attr(win, keyval)?, value, found)
}

/// `MPI_Type_get_attr`.
pub fn type_get_attr(ty: Datatype, keyval: c_int, value: *mut c_void, found: Pointer<c_int>) -> Result<()> {
    give(type_attr(ty, keyval)?, value, found)
}

macro_rules! changes {
    ($($(#[$doc:meta])* $set:ident, $set_to:ident, $delete:ident: $ty:ident by $get:path, $of:ident;)*) => {$(
        $(#[$doc])*
        pub fn $set(object: $ty, keyval: c_int, value: *mut c_void) -> Result<()> {
            $set_to(object, keyval, Value::Pointer(value as usize))
        }

        /// Sets such an attribute.
        pub fn $set_to(object: $ty, keyval: c_int, value: Value) -> Result<()> {
            check_not_predefined(keyval)?;
            $get(object)?.attributes.set(Of::$of, object.0, keyval, value)
        }

        /// Deletes such an attribute.
        pub fn $delete(object: $ty, keyval: c_int) -> Result<()> {
            check_not_predefined(keyval)?;
            $get(object)?.attributes.delete(Of::$of, object.0, keyval)
        }
    )*};
}

changes! {
    /// `MPI_Comm_set_attr`.
    comm_set_attr, comm_set_attr_to, comm_delete_attr: Comm by world::comm, Comm;
    /// `MPI_Attr_put`, deprecated.
    attr_put, attr_put_to, attr_delete: Comm by world::comm, Comm;
    /// `MPI_Win_set_attr`.
    win_set_attr, win_set_attr_to, win_delete_attr: Win by win::get, Win;
    /// `MPI_Type_set_attr`.
    type_set_attr, type_set_attr_to, type_delete_attr: Datatype by types::get, Type;
}
