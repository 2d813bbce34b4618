//! Functions of the program's that are Fortran's: every argument is an address, and the last is that of the error code.

use std::ffi::{c_int, c_void};

use super::end;
use crate::abi::{self, Aint, Word};

/// What attributes and states are for Fortran.
pub trait Value: Copy {
    /// Of what C has.
    fn of(value: usize) -> Self;
    /// As C has it.
    fn number(self) -> usize;
}

/// INTEGER(KIND=MPI_ADDRESS_KIND).
impl Value for Aint {
    fn of(value: usize) -> Self {
        value.cast_signed()
    }

    fn number(self) -> usize {
        self.cast_unsigned()
    }
}

/// INTEGER, as before MPI-2.
impl Value for c_int {
    fn of(value: usize) -> Self {
        value as Self
    }

    fn number(self) -> usize {
        (self as Aint).cast_unsigned()
    }
}

/// A function that deletes an attribute (`COMM_DELETE_ATTR_FUNCTION` and its like).
///
/// # Safety
/// The address of such a function with such values.
pub unsafe fn delete<V: Value>(
    function: usize,
    object: Word,
    number: c_int,
    value: usize,
    extra: usize,
) -> c_int {
    type Function<V> = unsafe extern "C" fn(*mut Word, *mut c_int, *mut V, *mut V, *mut c_int);
    let (mut object, mut number, mut code) = (object, number, abi::SUCCESS);
    let (mut value, mut extra) = (V::of(value), V::of(extra));
    // SAFETY: as above.
    unsafe {
        let function = std::mem::transmute::<usize, Function<V>>(function);
        function(&raw mut object, &raw mut number, &raw mut value, &raw mut extra, &raw mut code);
    }
    code
}

/// A function that copies an attribute (`COMM_COPY_ATTR_FUNCTION` and its like): the code, and the copy, if there is to be one.
///
/// # Safety
/// The address of such a function with such values.
pub unsafe fn copy<V: Value>(
    function: usize,
    object: Word,
    number: c_int,
    extra: usize,
    value: usize,
) -> (c_int, Option<usize>) {
    type Function<V> =
        unsafe extern "C" fn(*mut Word, *mut c_int, *mut V, *mut V, *mut V, *mut c_int, *mut c_int);
    let (mut object, mut number, mut code, mut wanted) = (object, number, abi::SUCCESS, 0);
    let (mut value, mut extra, mut copied) = (V::of(value), V::of(extra), V::of(0));
    // SAFETY: as above.
    unsafe {
        let function = std::mem::transmute::<usize, Function<V>>(function);
        function(
            &raw mut object,
            &raw mut number,
            &raw mut extra,
            &raw mut value,
            &raw mut copied,
            &raw mut wanted,
            &raw mut code,
        );
    }
    (code, (wanted != 0).then(|| copied.number()))
}

/// A function of a generalised request, with what comes between its state and its code (MPI-4.1 §13.2).
///
/// # Safety
/// The address of such a function.
pub unsafe fn grequest<T>(function: usize, extra: usize, argument: Option<*mut T>) -> c_int {
    type One = unsafe extern "C" fn(*mut Aint, *mut c_int);
    type Two<T> = unsafe extern "C" fn(*mut Aint, *mut T, *mut c_int);
    let (mut extra, mut code) = (Aint::of(extra), abi::SUCCESS);
    // SAFETY: as above.
    unsafe {
        match argument {
            Some(argument) => {
                let function = std::mem::transmute::<usize, Two<T>>(function);
                function(&raw mut extra, argument, &raw mut code);
            }
            None => {
                let function = std::mem::transmute::<usize, One>(function);
                function(&raw mut extra, &raw mut code);
            }
        }
    }
    code
}

/// Functions for attributes that the library has: keep nothing, copy the value, do nothing.
macro_rules! predefined {
    ($($ty:ty: $none:literal, $copy:literal, $delete:literal;)*) => {$(
        const _: () = {
            #[unsafe(export_name = $none)]
            unsafe extern "C" fn none(
                _object: *mut Word, _key: *mut c_int, _extra: *mut $ty, _value: *mut $ty, _copy: *mut $ty,
                wanted: *mut c_int, code: *mut c_int,
            ) {
                // SAFETY: as the standard has them, the last two are addresses of variables.
                unsafe {
                    wanted.write(0);
                    end(code, abi::SUCCESS);
                }
            }

            #[unsafe(export_name = $copy)]
            unsafe extern "C" fn duplicate(
                _object: *mut Word, _key: *mut c_int, _extra: *mut $ty, value: *mut $ty, copy: *mut $ty,
                wanted: *mut c_int, code: *mut c_int,
            ) {
                // SAFETY: as above, and two of values.
                unsafe {
                    copy.write(value.read());
                    wanted.write(1);
                    end(code, abi::SUCCESS);
                }
            }

            #[unsafe(export_name = $delete)]
            unsafe extern "C" fn delete(
                _object: *mut Word, _key: *mut c_int, _value: *mut $ty, _extra: *mut $ty, code: *mut c_int,
            ) {
                // SAFETY: as above.
                unsafe { end(code, abi::SUCCESS) };
            }
        };
    )*};
}

predefined! {
    c_int: "mpi_null_copy_fn_", "mpi_dup_fn_", "mpi_null_delete_fn_";
    Aint: "mpi_comm_null_copy_fn_", "mpi_comm_dup_fn_", "mpi_comm_null_delete_fn_";
    Aint: "mpi_win_null_copy_fn_", "mpi_win_dup_fn_", "mpi_win_null_delete_fn_";
    Aint: "mpi_type_null_copy_fn_", "mpi_type_dup_fn_", "mpi_type_null_delete_fn_";
}

/// `MPI_CONVERSION_FN_NULL` and that for large counts: known by their addresses.
macro_rules! no_conversions {
    ($($name:literal, $count:ty;)*) => {$(
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn no_conversion(
                _user: *mut c_void, _ty: *mut Word, _count: *mut $count, _file: *mut c_void,
                _position: *mut abi::Offset, _extra: *mut Aint, code: *mut c_int,
            ) {
                // SAFETY: the address of a variable.
                unsafe { end(code, abi::ERR_UNSUPPORTED_DATAREP) };
            }
        };
    )*};
}

no_conversions! {
    "mpi_conversion_fn_null_", c_int;
    "mpi_conversion_fn_null_c_", abi::Count;
}
