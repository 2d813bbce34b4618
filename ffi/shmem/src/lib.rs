//! `libsma.so`: OpenSHMEM 1.5 for C and C++ over the runtime's [`transom::shmem`].
//!
//! The tables in `abi/` say which functions there are and for which types; the build makes shmem.h and the exported functions of them. An
//! exported function calls the function of its name in `calls`, for its type. What is here translates addresses and handles, and
//! decides nothing. An error ends the job, with a message that names the call, the PE and the address: OpenSHMEM returns none.

#![allow(
    clippy::missing_safety_doc,
    reason = "exported functions have the specification's conditions, which shmem.h's users know"
)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the interface is written down here for 64-bit Linux");

mod buffer;
mod calls;
mod end;
mod failure;
mod handles;
mod statics;
mod variables;
mod world;

/// The exported functions.
#[allow(
    unused_unsafe,
    non_snake_case,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks,
    reason = "made by the build; each passes its arguments on, with the promise that its caller makes: what the specification says of them"
)]
mod exports {
    use std::ffi::{c_char, c_int, c_long, c_void};

    use transom::{Complex, LongDouble};

    use crate::calls;
    use crate::handles::{Ctx, TeamConfig, TeamHandle};

    /// A function by another name: one jump, with the arguments where they are.
    macro_rules! forward {
        ($name:literal, $own:ident, $to:ident) => {
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn $own() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!("jmp {to}", to = sym $to);
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!("b {to}", to = sym $to);
            }
        };
    }

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
