//! The ABI's types and constants (MPI-5.0 chapter 20). Names are those of the standard without `MPI_`.

#![allow(dead_code, reason = "the tables have more than the library uses")]

use std::ffi::c_int;

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;

macro_rules! handles {
    ($($name:ident),*) => {$(
        /// A handle: a pointer for C, of which only the number means something.
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name(pub usize);
    )*};
}

handles!(Comm, Group, Win, Datatype, Op, Request, Message, Info, Errhandler, File, Session);

/// `MPI_Status`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// `MPI_SOURCE`.
    pub source: c_int,
    /// `MPI_TAG`.
    pub tag: c_int,
    /// `MPI_ERROR`.
    pub error: c_int,
    /// The length in bytes, in two words; whether the request was cancelled.
    pub internal: [c_int; 5],
}

impl Status {
    /// Of no message (MPI-4.1 §3.7.3).
    pub const EMPTY: Self = Self { source: ANY_SOURCE, tag: ANY_TAG, error: SUCCESS, internal: [0; 5] };

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        let word = |i: usize| u64::from(self.internal[i].cast_unsigned());
        word(0) | word(1) << 32
    }

    /// Sets the length.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = (bytes as u32).cast_signed();
        self.internal[1] = ((bytes >> 32) as u32).cast_signed();
    }

    /// Whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Says whether the request was cancelled.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }
}

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
