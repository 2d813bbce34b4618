//! What the modules mpi and mpi_f08 have besides the functions of the table: they are nothing but interfaces, so that a program needs no
//! library of one compiler's.

use std::ffi::{c_int, c_void};

use super::end;
use crate::abi::SUCCESS;

/// `MPI_F_SYNC_REG`: what a compiler knows nothing of may change the argument.
#[unsafe(export_name = "mpi_f_sync_reg_")]
extern "C" fn sync_reg(_buffer: *mut c_void) {}

#[unsafe(export_name = "pmpi_f_sync_reg_")]
extern "C" fn profiled_sync_reg(_buffer: *mut c_void) {}

/// `==` and `/=` of handles: a type of Fortran's with one integer.
macro_rules! operators {
    ($($kind:literal)*) => {$(
        const _: () = {
            #[unsafe(export_name = concat!("mpi_", $kind, "_eq_"))]
            unsafe extern "C" fn equal(a: *const c_int, b: *const c_int) -> c_int {
                // SAFETY: Fortran gives the addresses of variables.
                unsafe { c_int::from(a.read() == b.read()) }
            }

            #[unsafe(export_name = concat!("mpi_", $kind, "_ne_"))]
            unsafe extern "C" fn unequal(a: *const c_int, b: *const c_int) -> c_int {
                // SAFETY: as above.
                unsafe { c_int::from(a.read() != b.read()) }
            }
        };
    )*};
}

operators! { "comm" "datatype" "errhandler" "file" "group" "info" "message" "op" "request" "session" "win" }

/// `MPI_SIZEOF`: the compiler chooses by the type of the variable, of whose description nothing is read.
macro_rules! sizes {
    ($($ty:literal $size:literal,)*) => {$(
        const _: () = {
            #[unsafe(export_name = concat!("mpi_sizeof_", $ty, "_"))]
            unsafe extern "C" fn size(_variable: *const c_void, size: *mut c_int, error: *mut c_int) {
                // SAFETY: Fortran gives the addresses of variables.
                unsafe {
                    size.write($size);
                    end(error, SUCCESS);
                }
            }
        };
    )*};
}

sizes! {
    "integer1" 1, "integer2" 2, "integer4" 4, "integer8" 8, "integer16" 16,
    "real4" 4, "real8" 8, "real16" 16,
    "complex4" 8, "complex8" 16, "complex16" 32,
}
