//! Symmetric memory (OpenSHMEM 1.5 §9.3), and the old names of its functions.

use std::ffi::{c_long, c_void};

use crate::failure::or_end;
use crate::variables;
use crate::world::world;

/// The alignment of memory for which none is asked: that of any type.
const ALIGNMENT: usize = 16;

fn allocate(call: &'static str, bytes: usize, alignment: usize) -> *mut c_void {
    let shmem = &world(call).shmem;
    let found = or_end(call, shmem.allocate_bytes(call, bytes, alignment));
    if found.is_none() && bytes > 0 && variables::is_debug() {
        eprintln!(
            "transom: PE {}: {call}: the symmetric heap has no room for {bytes} bytes: SHMEM_SYMMETRIC_SIZE",
            shmem.my_pe()
        );
    }
    found.unwrap_or(0) as *mut c_void
}

/// `shmem_malloc`.
pub unsafe fn malloc(call: &'static str, size: usize) -> *mut c_void {
    allocate(call, size, ALIGNMENT)
}

/// `shmem_malloc_with_hints`. Every block is fit for what the hints announce.
pub unsafe fn malloc_with_hints(call: &'static str, size: usize, _hints: c_long) -> *mut c_void {
    allocate(call, size, ALIGNMENT)
}

/// `shmem_align`.
pub unsafe fn align(call: &'static str, alignment: usize, size: usize) -> *mut c_void {
    allocate(call, size, alignment)
}

/// `shmem_calloc`.
pub unsafe fn calloc(call: &'static str, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return std::ptr::null_mut() };
    let memory = allocate(call, bytes, ALIGNMENT);
    if !memory.is_null() {
        // SAFETY: a block of so many bytes, which no PE accesses before the barrier.
        unsafe { memory.write_bytes(0, bytes) };
        or_end(call, world(call).shmem.world().comm().barrier());
    }
    memory
}

/// `shmem_free`.
pub unsafe fn free(call: &'static str, memory: *mut c_void) {
    if !memory.is_null() {
        or_end(call, world(call).shmem.free_block(call, memory as usize));
    }
}

/// `shmem_realloc`.
pub unsafe fn realloc(call: &'static str, memory: *mut c_void, size: usize) -> *mut c_void {
    if memory.is_null() {
        return allocate(call, size, ALIGNMENT);
    }
    if size == 0 {
        or_end(call, world(call).shmem.free_block(call, memory as usize));
        return std::ptr::null_mut();
    }
    or_end(call, world(call).shmem.reallocate(call, memory as usize, size)).unwrap_or(0) as *mut c_void
}

/// `shmalloc`.
pub unsafe fn shmalloc(call: &'static str, size: usize) -> *mut c_void {
    allocate(call, size, ALIGNMENT)
}

/// `shmemalign`.
pub unsafe fn shmemalign(call: &'static str, alignment: usize, size: usize) -> *mut c_void {
    allocate(call, size, alignment)
}

/// `shfree`.
pub unsafe fn shfree(call: &'static str, memory: *mut c_void) {
    // SAFETY: by contract.
    unsafe { free(call, memory) };
}

/// `shrealloc`.
pub unsafe fn shrealloc(call: &'static str, memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: by contract.
    unsafe { realloc(call, memory, size) }
}
