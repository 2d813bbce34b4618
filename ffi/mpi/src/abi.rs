//! The ABI's types and constants (MPI-5.0 chapter 20). Names are those of the standard without `MPI_`.
//!
//! This crate's sources are built once for each ABI: values come from its table of constants, what has another form in memory from
//! `abi/mpi5.rs` or `abi/mpich.rs`. So no call translates anything, whatever ABI it came by.

#![allow(dead_code, reason = "the tables have more than the library uses")]

#[cfg_attr(mpich, path = "abi/mpich.rs")]
#[cfg_attr(not(mpich), path = "abi/mpi5.rs")]
mod form;

use std::ffi::c_int;

pub use form::*;

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;

macro_rules! handles {
    ($($name:ident: $word:ty),*) => {$(
        /// A handle, of which only the number means something.
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name(pub $word);
    )*};
}

handles!(Comm: Word, Group: Word, Win: Word, Datatype: Word, Op: Word, Request: Word, Message: Word);
handles!(Info: Word, Errhandler: Word, Session: Word, File: usize);

impl Status {
    /// Of no message (MPI-4.1 §3.7.3).
    pub const EMPTY: Self = Self { source: ANY_SOURCE, tag: ANY_TAG, error: SUCCESS, ..Self::ZERO };
}

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
