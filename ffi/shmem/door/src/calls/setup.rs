//! Start, end, and questions about PEs and addresses (OpenSHMEM 1.5 §9.1, §9.2).

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use crate::end;
use crate::failure::end_because;
use crate::world::{self, world};

/// `SHMEM_THREAD_MULTIPLE`.
pub const THREAD_MULTIPLE: c_int = 3;

/// shmem.h's, with the null character behind it.
const NAME: &str = concat!("Transom ", env!("CARGO_PKG_VERSION"), "\0");

/// `shmem_init`.
pub unsafe fn init(call: &'static str) {
    world::start(call, 0);
}

/// `shmem_init_thread`: what is asked for is there.
pub unsafe fn init_thread(call: &'static str, requested: c_int, provided: *mut c_int) -> c_int {
    if !(0..=THREAD_MULTIPLE).contains(&requested) {
        end_because(call, &format!("a thread level of {requested}"));
    }
    world::start(call, requested);
    // SAFETY: valid for a number, by contract.
    unsafe { provided.write(requested) };
    0
}

/// `shmem_query_thread`.
pub unsafe fn query_thread(call: &'static str, provided: *mut c_int) {
    let level = world(call).thread_level.load(Ordering::Relaxed);
    // SAFETY: valid for a number, by contract.
    unsafe { provided.write(level) };
}

/// `shmem_query_initialized`, which may be called at any time.
pub unsafe fn query_initialized(_call: &'static str, initialized: *mut c_int) {
    let is_there = world::peek().is_some() && !world::has_ended();
    // SAFETY: valid for a number, by contract.
    unsafe { initialized.write(c_int::from(is_there)) };
}

/// `start_pes`: the number of PEs is the launcher's. Nothing happens if it was called before.
pub unsafe fn start_pes(call: &'static str, _npes: c_int) {
    if world::peek().is_none() {
        world::start(call, 0);
    }
}

/// `shmem_finalize`. Nothing happens if it was called before.
pub unsafe fn finalize(call: &'static str) {
    if !world::has_ended() {
        world(call);
        end::finalize(call);
    }
}

/// `shmem_global_exit`.
pub unsafe fn global_exit(_call: &'static str, status: c_int) -> ! {
    end::end_job(status)
}

/// `shmem_my_pe`.
#[inline(always)]
pub unsafe fn my_pe(call: &'static str) -> c_int {
    world(call).shmem.my_pe() as c_int
}

/// `shmem_n_pes`.
#[inline(always)]
pub unsafe fn n_pes(call: &'static str) -> c_int {
    world(call).shmem.n_pes() as c_int
}

/// `_num_pes`.
pub unsafe fn num_pes(call: &'static str) -> c_int {
    // SAFETY: by contract.
    unsafe { n_pes(call) }
}

/// `shmem_pe_accessible`.
pub unsafe fn pe_accessible(call: &'static str, pe: c_int) -> c_int {
    c_int::from((pe as usize) < world(call).shmem.n_pes())
}

/// `shmem_addr_accessible`.
pub unsafe fn addr_accessible(call: &'static str, address: *const c_void, pe: c_int) -> c_int {
    let shmem = &world(call).shmem;
    c_int::from((pe as usize) < shmem.n_pes() && shmem.is_symmetric(address as usize))
}

/// `shmem_ptr`.
pub unsafe fn ptr(call: &'static str, address: *const c_void, pe: c_int) -> *mut c_void {
    world(call).shmem.address_at(address as usize, pe as usize).unwrap_or(0) as *mut c_void
}

/// `shmem_info_get_version`.
pub unsafe fn info_get_version(_call: &'static str, major: *mut c_int, minor: *mut c_int) {
    // SAFETY: valid for a number each, by contract.
    unsafe {
        major.write(1);
        minor.write(5);
    }
}

/// `shmem_info_get_name`.
pub unsafe fn info_get_name(_call: &'static str, name: *mut c_char) {
    // SAFETY: room for SHMEM_MAX_NAME_LEN characters, by contract, which is more than the name has.
    unsafe { std::ptr::copy_nonoverlapping(NAME.as_ptr(), name.cast(), NAME.len()) };
}

/// `shmem_pcontrol`: there is no profiler here.
pub unsafe fn pcontrol(_call: &'static str, _level: c_int) {}
