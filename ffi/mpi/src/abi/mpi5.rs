//! What the standard's ABI has in a form of its own (MPI-5.0 §20.3): handles that are pointers for C, statuses of eight integers.

use std::ffi::c_int;

use super::Datatype;

/// What a handle is: a pointer for C.
pub type Word = usize;

/// What table handles have besides their kind: nothing, as predefined handles are small numbers.
pub const TABLE: Word = 0;

/// A handle's number.
#[inline(always)]
pub const fn wide(word: Word) -> usize {
    word
}

/// The handle of a number.
#[inline(always)]
pub const fn narrow(number: usize) -> Word {
    number
}

/// Whether it can be an address: neither null, nor `MPI_IN_PLACE` and its like, which are small numbers.
#[inline(always)]
pub const fn is_address(number: usize) -> bool {
    number >= 4096
}

/// Places of predefined datatypes in tables: their numbers.
pub const PLACES: usize = 0x300;

/// The place of a datatype that may be a predefined one.
#[inline(always)]
pub const fn place(ty: Datatype) -> Option<usize> {
    if ty.0 < PLACES { Some(ty.0) } else { None }
}

/// [`place`], for the short cut.
#[inline(always)]
pub const fn short_place(ty: Datatype) -> Option<usize> {
    place(ty)
}

/// Bytes of a predefined datatype, of which this is the table of sizes.
#[inline(always)]
pub const fn short_size(ty: Datatype, sizes: &[u8; PLACES]) -> Option<u8> {
    if ty.0 < PLACES { Some(sizes[ty.0]) } else { None }
}

/// The datatype at a place, if there is one.
pub const fn datatype_at(place: usize) -> Datatype {
    Datatype(place)
}

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
    /// Zero everywhere.
    pub const ZERO: Self = Self { source: 0, tag: 0, error: 0, internal: [0; 5] };

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

    /// As Fortran has it (MPI-4.1 §19.3.5).
    pub fn to_fortran(self) -> [c_int; 8] {
        let [a, b, c, d, e] = self.internal;
        [self.source, self.tag, self.error, a, b, c, d, e]
    }

    /// Of what Fortran has.
    pub fn from_fortran([source, tag, error, a, b, c, d, e]: [c_int; 8]) -> Self {
        Self { source, tag, error, internal: [a, b, c, d, e] }
    }
}
