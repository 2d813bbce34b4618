//! `libsma.so`: OpenSHMEM 1.5 for C and C++.
//!
//! What it exports, by the tables in `abi/`, are jumps to where `TABLE` says: to its own functions, which are those of `shmem_door`; or, from
//! shmem_init on, to those of an MPI library of Transom's that is in the process, of whose job OpenSHMEM is then part.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use shmem_door::library::Library;
use shmem_door::{ADDRESSES, COUNT};

static LIBRARY: Library = Library::alone(shmem_door::has_job);

/// What the others find. This library does not name it: of several of one name the program has the first.
#[unsafe(export_name = "transom_library_1")]
static EXPORTED: &Library = &LIBRARY;

/// Where each function is, in the order of [`shmem_door::FUNCTIONS`].
static TABLE: [AtomicPtr<()>; COUNT] = {
    let mut table = [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];
    let mut index = 0;
    while index < COUNT {
        table[index] = AtomicPtr::new(ADDRESSES[index].0.cast_mut());
        index += 1;
    }
    table
};

/// Finds out whose functions are called, in the first call that may start the job. There are no calls in other threads then (OpenSHMEM 1.5
/// §9.1.1).
fn choose() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| match LIBRARY.functions_elsewhere() {
        Ok(Some(functions)) => {
            for (own, other) in TABLE.iter().zip(functions) {
                own.store(other.0.cast_mut(), Ordering::Relaxed);
            }
        }
        Ok(None) => (),
        Err(why) => shmem_door::end_because("shmem_init", &why),
    });
}

/// The exported functions.
#[allow(
    non_snake_case,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "made by the build; each is a jump, with the arguments where they are"
)]
mod exports {
    use std::ffi::c_int;
    use std::sync::atomic::Ordering;

    use crate::{TABLE, choose};

    /// A function by its two names.
    macro_rules! export {
        ($own:ident $name:literal, $profiled:ident $profiled_name:literal, $index:literal) => {
            export!($own $name, $index);
            export!($profiled $profiled_name, $index);
        };
        ($own:ident $name:literal, $index:literal) => {
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn $own() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!("jmp qword ptr [rip + {table} + 8 * {index}]", table = sym TABLE, index = const $index);
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!(
                    "adrp x16, {table} + 8 * {index}",
                    "ldr x16, [x16, :lo12:{table} + 8 * {index}]",
                    "br x16",
                    table = sym TABLE,
                    index = const $index
                );
            }
        };
    }

    /// A function that may start the job: there has to be a choice before the jump.
    macro_rules! export_start {
        ($own:ident $name:literal, $profiled:ident $profiled_name:literal, $index:literal, ($($argument:ident: $ty:ty),*) -> $returns:ty) => {
            export_start!($own $name, $index, ($($argument: $ty),*) -> $returns);
            export_start!($profiled $profiled_name, $index, ($($argument: $ty),*) -> $returns);
        };
        ($own:ident $name:literal, $index:literal, ($($argument:ident: $ty:ty),*) -> $returns:ty) => {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn $own($($argument: $ty),*) -> $returns {
                choose();
                let function = TABLE[$index].load(Ordering::Relaxed);
                // SAFETY: the function of this name, with these arguments, in every library whose table has the same identity.
                let function = unsafe { std::mem::transmute::<*mut (), unsafe extern "C" fn($($ty),*) -> $returns>(function) };
                unsafe { function($($argument),*) }
            }
        };
    }

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
