//! Locks (OpenSHMEM 1.5 §9.13).

use std::ffi::{c_int, c_long};

use crate::failure::or_end;
use crate::world::world;

/// `shmem_set_lock`.
pub unsafe fn set_lock(call: &'static str, lock: *mut c_long) {
    or_end(call, world(call).shmem.set_lock(call, lock as usize));
}

/// `shmem_clear_lock`.
pub unsafe fn clear_lock(call: &'static str, lock: *mut c_long) {
    or_end(call, world(call).shmem.clear_lock(call, lock as usize));
}

/// `shmem_test_lock`: 0 if the lock was free and is this PE's now.
pub unsafe fn test_lock(call: &'static str, lock: *mut c_long) -> c_int {
    c_int::from(!or_end(call, world(call).shmem.test_lock(call, lock as usize)))
}
