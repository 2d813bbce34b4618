//! Handles as integers: they are the same number (MPI-5.0 §20.3), and `MPI_Fint` is an int.

use std::ffi::c_int;

use crate::abi::{
    Comm, Datatype, Errhandler, F_STATUS_SIZE, File, Group, Info, Message, Op, Request, Session, Status, Win,
};
use crate::failure::Result;
use crate::pointer::Pointer;

macro_rules! conversions {
    ($($ty:ident: $toint:ident, $fromint:ident, $c2f:ident, $f2c:ident;)*) => {$(
        /// The handle as an integer.
        pub fn $toint(handle: $ty) -> c_int {
            handle.0 as c_int
        }

        /// The handle of an integer.
        pub fn $fromint(int: c_int) -> $ty {
            $ty(int as _)
        }

        /// The handle as a Fortran integer.
        pub fn $c2f(handle: $ty) -> c_int {
            handle.0 as c_int
        }

        /// The handle of a Fortran integer.
        pub fn $f2c(int: c_int) -> $ty {
            $ty(int as _)
        }
    )*};
}

conversions! {
    Comm: comm_toint, comm_fromint, comm_c2f, comm_f2c;
    Errhandler: errhandler_toint, errhandler_fromint, errhandler_c2f, errhandler_f2c;
    File: file_toint, file_fromint, file_c2f, file_f2c;
    Group: group_toint, group_fromint, group_c2f, group_f2c;
    Info: info_toint, info_fromint, info_c2f, info_f2c;
    Message: message_toint, message_fromint, message_c2f, message_f2c;
    Op: op_toint, op_fromint, op_c2f, op_f2c;
    Request: request_toint, request_fromint, request_c2f, request_f2c;
    Session: session_toint, session_fromint, session_c2f, session_f2c;
    Datatype: type_toint, type_fromint, type_c2f, type_f2c;
    Win: win_toint, win_fromint, win_c2f, win_f2c;
}

/// `MPI_Status_c2f`: integers (MPI-4.1 §19.3.5).
pub fn status_c2f(c: Pointer<Status>, fortran: Pointer<c_int>) -> Result<()> {
    for (index, word) in c.get()?.to_fortran().into_iter().enumerate() {
        fortran.set_at(index, word)?;
    }
    Ok(())
}

/// `MPI_Status_f2c`.
pub fn status_f2c(fortran: Pointer<c_int>, c: Pointer<Status>) -> Result<()> {
    let mut words = [0; F_STATUS_SIZE as usize];
    for (index, word) in words.iter_mut().enumerate() {
        *word = fortran.at(index)?;
    }
    c.set(Status::from_fortran(words))
}
