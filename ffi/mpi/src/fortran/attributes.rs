//! Attributes, and functions of the program's, for Fortran (MPI-4.1 §7.7, §13.2).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::callbacks::Value as _;
use super::{callbacks, end};
use crate::abi::{Aint, Comm, Datatype, Request, WIN_BASE, WIN_SIZE, Win};
use crate::attributes::{Convention, Functions, Of, Value, calls, create};
use crate::call::{When, call};
use crate::failure::Result;
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::request::general;

/// Keys of predefined attributes are one more than C's, whose values are addresses of what Fortran gets.
fn predefined(keyval: c_int) -> Option<c_int> {
    let of_c = keyval.wrapping_sub(1);
    calls::is_predefined(of_c).then_some(of_c)
}

/// The value for Fortran of what C gets.
fn value(keyval: c_int, value: usize) -> usize {
    match keyval {
        WIN_BASE => value,
        // SAFETY: the library's own variables, of these types, that stay (MPI-4.1 §9.1.2, §12.2.6).
        WIN_SIZE => unsafe { (value as *const Aint).read() }.number(),
        // SAFETY: as above.
        _ => unsafe { (value as *const c_int).read() }.number(),
    }
}

/// Gives an attribute, if it is there.
fn give<V: callbacks::Value>(
    keyval: Pointer<c_int>,
    to: Pointer<V>,
    found: Pointer<c_int>,
    get: impl FnOnce(c_int) -> Result<Option<Value>>,
) -> Result<()> {
    let keyval = keyval.get()?;
    let of_c = predefined(keyval);
    let got = get(of_c.unwrap_or(keyval))?;
    found.set(flag(got.is_some()))?;
    let Some(got) = got else { return Ok(()) };
    to.set(V::of(of_c.map_or(got.for_fortran(), |key| value(key, got.for_fortran()))))
}

/// Functions of attributes under both names: getting, setting, and making keys.
macro_rules! attributes {
    ($($ty:ident, $value:ty, $of:ident, $object:expr, $convention:ident:
        $get:literal by $c_get:path; $set:literal by $c_set:path; $create:literal;)*) => {$(
        const _: () = {
            unsafe extern "C" fn got(
                object: *mut $ty, keyval: *mut c_int, to: *mut $value, found: *mut c_int, error: *mut c_int,
            ) {
                // SAFETY: Fortran gives the addresses of variables.
                unsafe {
                    let of = object.read();
                    let (keyval, to, found) = (Pointer::new(keyval), Pointer::new(to), Pointer::new(found));
                    let work = || give(keyval, to, found, |keyval| $c_get(of, keyval));
                    end(error, call($get, When::Initialised, $object(of), work));
                }
            }

            unsafe extern "C" fn set(
                object: *mut $ty, keyval: *mut c_int, value: *mut $value, error: *mut c_int,
            ) {
                // SAFETY: as above.
                unsafe {
                    let (of, keyval, value) = (object.read(), keyval.read(), value.read());
                    let work = || $c_set(of, keyval, Value::Integer(Arc::new(value.number())));
                    end(error, call($set, When::Initialised, $object(of), work));
                }
            }

            unsafe extern "C" fn created(
                copy: *const c_void, delete: *const c_void, keyval: *mut c_int, extra: *mut $value, error: *mut c_int,
            ) {
                // SAFETY: as above, and those of functions.
                unsafe {
                    let (keyval, extra) = (Pointer::new(keyval), extra.read().number());
                    let functions = Functions { convention: Convention::$convention, copy, delete };
                    let work = || keyval.set(create(Of::$of, functions, extra as *mut c_void));
                    end(error, call($create, When::Always, ErrorObject::None, work));
                }
            }

            exported! { $get: got(object: *mut $ty, keyval: *mut c_int, to: *mut $value, found: *mut c_int); }
            exported! { $set: set(object: *mut $ty, keyval: *mut c_int, value: *mut $value); }
            exported! { $create:
                created(copy: *const c_void, delete: *const c_void, keyval: *mut c_int, extra: *mut $value); }
        };
    )*};
}

/// A function under its names for all of Fortran's modules.
macro_rules! exported {
    ($name:literal: $own:ident $arguments:tt;) => {
        exported! { concat!("mpi_", $name, "_") => $own $arguments }
        exported! { concat!("pmpi_", $name, "_") => $own $arguments }
        exported! { concat!("mpi_", $name, "_f08_") => $own $arguments }
        exported! { concat!("pmpi_", $name, "_f08_") => $own $arguments }
    };
    ($name:expr => $own:ident($($argument:ident: $ty:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn exported($($argument: $ty,)* error: *mut c_int) {
                // SAFETY: the caller's promise is passed on.
                unsafe { $own($($argument,)* error) }
            }
        };
    };
}

attributes! {
    Comm, Aint, Comm, ErrorObject::Comm, Fortran: "comm_get_attr" by calls::comm_attr;
        "comm_set_attr" by calls::comm_set_attr_to; "comm_create_keyval";
    Win, Aint, Win, ErrorObject::Win, Fortran: "win_get_attr" by calls::win_attr;
        "win_set_attr" by calls::win_set_attr_to; "win_create_keyval";
    Datatype, Aint, Type, no_object, Fortran: "type_get_attr" by calls::type_attr;
        "type_set_attr" by calls::type_set_attr_to; "type_create_keyval";
    Comm, c_int, Comm, ErrorObject::Comm, OldFortran: "attr_get" by calls::comm_attr;
        "attr_put" by calls::comm_set_attr_to; "keyval_create";
}

/// Datatypes have no error handlers.
fn no_object(_ty: Datatype) -> ErrorObject {
    ErrorObject::None
}

unsafe extern "C" fn grequest_start(
    query: *const c_void,
    free: *const c_void,
    cancel: *const c_void,
    extra: *mut Aint,
    request: *mut Request,
    error: *mut c_int,
) {
    // SAFETY: Fortran gives the addresses of functions and variables.
    unsafe {
        let (extra, request) = (extra.read().number(), Pointer::new(request));
        let functions =
            general::Functions { is_fortran: true, query, free, cancel, extra_state: extra as *mut c_void };
        let work = || general::begin(functions, request);
        end(error, call("MPI_Grequest_start", When::Initialised, ErrorObject::None, work));
    }
}

exported! { "grequest_start":
grequest_start(query: *const c_void, free: *const c_void, cancel: *const c_void, extra: *mut Aint, request: *mut Request); }
