//! The functions of OpenSHMEM 1.5 over the runtime's [`transom::shmem`], as addresses in a table: [`FUNCTIONS`].
//!
//! The tables in `ffi/shmem/abi` say which functions there are and for which types; the build makes a function in `exports` of each line and type.
//! It calls the function of its name in `calls`, for its type. What is here translates addresses and handles, and
//! decides nothing. An error ends the job, with a message that names the call, the PE and the address: OpenSHMEM returns none.
//!
//! A process has one runtime, so each library that has one has this, too: `libsma.so` exports the functions by their names, and goes by
//! the table of an MPI library of Transom's where the process has one ([`library`]). So both are one job ([`host`]).

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
pub mod host;
pub mod library;
mod statics;
mod variables;
mod world;

pub use exports::{ADDRESSES, COUNT, FUNCTIONS, IDENTITY};
pub use failure::end_because;
pub use world::has_job;

/// A function's address, of whatever type it is.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Function(pub *const ());

// SAFETY: the address of a function, which every thread may call.
unsafe impl Sync for Function {}

/// The functions of the table.
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

    use crate::handles::{Ctx, SessionConfig, TeamConfig, TeamHandle};
    use crate::{Function, calls};

    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}
