//! Environment: start and end, versions, clocks, memory (MPI-4.1 chapters 9 and 11, MPI-5.0 chapter 20).

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;

use crate::abi::{self, Aint, Comm, ERR_ARG, ERR_NO_MEM, Info};
use crate::failure::{Result, fail};
use crate::info;
use crate::pointer::{Pointer, Text, flag};
use crate::world;

/// Alignment of memory that is allocated: that of a cache line.
const ALIGNMENT: usize = 64;

/// `MPI_Init`.
pub fn init(_argc: Pointer<c_int>, _argv: *mut *mut *mut c_char) -> Result<()> {
    world::init(abi::THREAD_SINGLE).map(drop)
}

/// `MPI_Init_thread`.
pub fn init_thread(
    _argc: Pointer<c_int>,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Pointer<c_int>,
) -> Result<()> {
    provided.set(world::init(required)?)
}

/// `MPI_Finalize`.
pub fn finalize() -> Result<()> {
    world::finalize()
}

/// `MPI_Initialized`.
pub fn initialized(started: Pointer<c_int>) -> Result<()> {
    started.set(flag(world::was_started()))
}

/// `MPI_Finalized`.
pub fn finalized(ended: Pointer<c_int>) -> Result<()> {
    ended.set(flag(world::was_finalized()))
}

/// `MPI_Query_thread`.
pub fn query_thread(provided: Pointer<c_int>) -> Result<()> {
    provided.set(world::thread_level()?)
}

/// `MPI_Is_thread_main`.
pub fn is_thread_main(is_main: Pointer<c_int>) -> Result<()> {
    is_main.set(flag(world::is_main_thread()?))
}

/// `MPI_Abort`. Ends the whole job, whatever the communicator, with the code that the program gives, 0 included.
pub fn abort(_comm: Comm, code: c_int) -> Result<()> {
    eprintln!("transom: {}: MPI_Abort with code {code}", world::who());
    world::end_job(code)
}

/// `MPI_Get_version`.
pub fn get_version(version: Pointer<c_int>, subversion: Pointer<c_int>) -> Result<()> {
    version.set(abi::VERSION)?;
    subversion.set(abi::SUBVERSION)
}

/// `MPI_Get_library_version`.
pub fn get_library_version(version: Text, len: Pointer<c_int>) -> Result<()> {
    let text = concat!("Transom ", env!("CARGO_PKG_VERSION"));
    version.set_with_length(text, abi::MAX_LIBRARY_VERSION_STRING, len)
}

/// `MPI_Get_processor_name`.
pub fn get_processor_name(name: Text, len: Pointer<c_int>) -> Result<()> {
    let host = nix::unistd::gethostname().unwrap_or_else(|_| "localhost".into());
    name.set_with_length(&host.to_string_lossy(), abi::MAX_PROCESSOR_NAME, len)
}

/// `MPI_Abi_get_version`.
pub fn abi_get_version(major: Pointer<c_int>, minor: Pointer<c_int>) -> Result<()> {
    major.set(abi::ABI_VERSION)?;
    minor.set(abi::ABI_SUBVERSION)
}

/// `MPI_Abi_get_info` (MPI-5.0 §20.2).
pub fn abi_get_info(info: Pointer<Info>) -> Result<()> {
    let sizes = [
        ("mpi_aint_size", size_of::<Aint>()),
        ("mpi_count_size", size_of::<abi::Count>()),
        ("mpi_offset_size", size_of::<abi::Offset>()),
    ];
    info.set(info::with(sizes.map(|(key, size)| (key.into(), size.to_string())).into())?)
}

/// `MPI_Abi_get_fortran_info`: nothing is known of Fortran compilers.
pub fn abi_get_fortran_info(info: Pointer<Info>) -> Result<()> {
    info.set(abi::INFO_NULL)
}

/// `MPI_Wtime`: seconds since the first call.
pub fn wtime() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// `MPI_Wtick`.
pub fn wtick() -> f64 {
    1e-9
}

/// `MPI_Pcontrol`: there is no profiler here.
pub fn pcontrol(_level: c_int) -> Result<()> {
    Ok(())
}

/// `MPI_Alloc_mem`.
pub fn alloc_mem(size: Aint, info: Info, base: *mut c_void) -> Result<()> {
    info::hints(info)?;
    let Ok(size) = usize::try_from(size) else {
        return fail(abi::ERR_SIZE, format!("{size} bytes cannot be allocated"));
    };
    // SAFETY: aligned_alloc takes a power of two and a multiple of it (aligned_alloc(3)).
    let memory = unsafe { libc::aligned_alloc(ALIGNMENT, size.max(1).next_multiple_of(ALIGNMENT)) };
    if memory.is_null() {
        return fail(ERR_NO_MEM, format!("no memory for {size} bytes"));
    }
    store_pointer(base, memory)
}

/// Stores an address where a caller wants it: at what is declared `void *` and means `void **` (MPI-4.1 §9.2).
pub fn store_pointer(place: *mut c_void, value: *mut c_void) -> Result<()> {
    if place.is_null() {
        return fail(ERR_ARG, "the place for an address is a null pointer");
    }
    // SAFETY: the caller gives the address of a pointer variable (MPI-4.1 §9.2, §12.2.2).
    unsafe { place.cast::<*mut c_void>().write_unaligned(value) };
    Ok(())
}

/// `MPI_Free_mem`.
pub fn free_mem(base: *mut c_void) -> Result<()> {
    // SAFETY: memory of MPI_Alloc_mem, or null (MPI-4.1 §9.2).
    unsafe { libc::free(base) };
    Ok(())
}

/// `MPI_Get_address`.
pub fn get_address(location: *const c_void, address: Pointer<Aint>) -> Result<()> {
    address.set(location as Aint)
}

/// `MPI_Aint_add`.
pub fn aint_add(base: Aint, displacement: Aint) -> Aint {
    base.wrapping_add(displacement)
}

/// `MPI_Aint_diff`.
pub fn aint_diff(a: Aint, b: Aint) -> Aint {
    a.wrapping_sub(b)
}
