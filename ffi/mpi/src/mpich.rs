//! What MPICH's ABI has that is no function of the standard, or was one: variables, functions that MPI-3 removed, extensions.

pub mod removed;

use std::ffi::{c_int, c_void};

use crate::abi::{self, Info, Request, Status};
use crate::environment::store_pointer;
use crate::failure::Result;
use crate::pointer::{Pointer, Text, flag};
use crate::{info, request};

/// A variable that only the library's loader writes to: an address that means something, and leads to nothing.
#[repr(transparent)]
struct Address(usize);

macro_rules! addresses {
    ($($name:ident = $value:expr;)*) => {$(
        #[unsafe(export_name = stringify!($name))]
        static $name: Address = Address($value);
    )*};
}

addresses! {
    MPI_UNWEIGHTED = abi::UNWEIGHTED;
    MPI_WEIGHTS_EMPTY = abi::WEIGHTS_EMPTY;
    MPI_T_PVAR_ALL_HANDLES = abi::T_PVAR_ALL_HANDLES;
    MPI_F08_STATUS_IGNORE = abi::STATUS_IGNORE;
    MPI_F08_STATUSES_IGNORE = abi::STATUSES_IGNORE;
}

/// `MPI_COMM_DUP_FN` and its like: the value is copied.
///
/// # Safety
/// The last two are places of a pointer and a flag.
#[unsafe(export_name = "MPIR_Dup_fn")]
pub unsafe extern "C" fn duplicate(
    _object: abi::Word,
    _keyval: c_int,
    _extra_state: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    wanted: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    let wanted = unsafe { Pointer::new(wanted) };
    match store_pointer(copy, value).and_then(|()| wanted.set(1)) {
        Ok(()) => abi::SUCCESS,
        Err(failure) => failure.code(),
    }
}

/// `MPI_Status_c2f08`: they are the same.
pub fn status_c2f08(from: Pointer<Status>, to: Pointer<Status>) -> Result<()> {
    to.set(from.get()?)
}

/// `MPI_Status_f082c`.
pub fn status_f082c(from: Pointer<Status>, to: Pointer<Status>) -> Result<()> {
    to.set(from.get()?)
}

/// `MPI_Status_f082f`.
pub fn status_f082f(from: Pointer<Status>, to: Pointer<c_int>) -> Result<()> {
    crate::conversions::status_c2f(from, to)
}

/// `MPI_Status_f2f08`.
pub fn status_f2f08(from: Pointer<c_int>, to: Pointer<Status>) -> Result<()> {
    crate::conversions::status_f2c(from, to)
}

/// `MPIX_GPU_query_support`: no memory but the CPU's is known here.
pub fn gpu_query_support(_kind: c_int, supported: Pointer<c_int>) -> Result<()> {
    supported.set(flag(false))
}

/// `MPIX_Query_cuda_support`.
pub fn query_cuda_support() -> c_int {
    flag(false)
}

/// `MPIX_Query_hip_support`.
pub fn query_hip_support() -> c_int {
    flag(false)
}

/// `MPIX_Query_ze_support`.
pub fn query_ze_support() -> c_int {
    flag(false)
}

/// `MPIX_Request_is_complete`.
pub fn request_is_complete(request: Request) -> c_int {
    flag(request::is_complete(request))
}

/// `MPIX_Info_set_hex`: bytes as digits.
pub fn info_set_hex(info: Info, key: Text, value: *const c_void, len: c_int) -> Result<()> {
    let bytes = crate::buffer::bytes(value, crate::buffer::count(len.into())?)?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    info::calls::set(info, key.get()?, digits)
}
