//! What MPICH's ABI has in a form of its own: handles that are integers, statuses of five integers.
//!
//! A predefined handle has its kind in the upper bits: `0x44` begins those of communicators, `0x4c` those of datatypes, with a
//! datatype's size in bits 8 to 15.

use std::ffi::c_int;

use super::{DATATYPES, Datatype};

/// This is not the standard's ABI (MPI-5.0 §20.2).
pub const ABI_VERSION: c_int = -1;
/// As above.
pub const ABI_SUBVERSION: c_int = -1;

/// What a handle is: an integer.
pub type Word = u32;

/// What table handles have besides their kind: the highest bit, which no predefined handle has but a few datatypes with a kind that is
/// not that of datatypes here.
pub const TABLE: Word = 1 << 31;

/// A handle's number.
#[inline(always)]
pub const fn wide(word: Word) -> usize {
    word as usize
}

/// The handle of a number.
#[inline(always)]
pub const fn narrow(number: usize) -> Word {
    number as Word
}

/// Whether it can be an address: neither null, nor `MPI_IN_PLACE` and its like, which are small numbers, some below 0.
#[inline(always)]
pub const fn is_address(number: usize) -> bool {
    number.wrapping_sub(4096) < usize::MAX - 2 * 4096
}

/// Places of predefined datatypes in tables: the low bits of their numbers; pairs of C structures, which begin with `0x8c`, are behind the others.
pub const PLACES: usize = 256;

const PAIRS: usize = 128;

const fn slot(ty: Datatype) -> usize {
    (ty.0 as usize % PAIRS) | ((ty.0 >> 24) as usize & PAIRS)
}

/// The predefined datatypes, each at its place, 0 elsewhere.
static HANDLES: [Datatype; PLACES] = HANDLES_;
const HANDLES_: [Datatype; PLACES] = {
    let mut all = [Datatype(0); PLACES];
    let mut i = 0;
    while i < DATATYPES.len() {
        all[slot(DATATYPES[i].0)] = DATATYPES[i].0;
        i += 1;
    }
    all
};

/// The place of a datatype that may be a predefined one.
#[inline(always)]
pub fn place(ty: Datatype) -> Option<usize> {
    let place = slot(ty);
    (HANDLES[place] == ty).then_some(place)
}

/// [`place`], for the short cut: not of pairs.
#[inline(always)]
pub fn short_place(ty: Datatype) -> Option<usize> {
    let place = ty.0 as usize % PAIRS;
    (HANDLES[place] == ty).then_some(place)
}

/// Bytes of a predefined datatype, which are in its number.
#[inline(always)]
pub fn short_size(ty: Datatype, _sizes: &[u8; PLACES]) -> Option<u8> {
    short_place(ty)?;
    Some((ty.0 >> 8) as u8)
}

/// The datatype at a place, if there is one.
pub const fn datatype_at(place: usize) -> Datatype {
    HANDLES_[place]
}

/// `MPI_Status`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The lower half of the length in bytes.
    pub low: c_int,
    /// Whether the request was cancelled, in bit 0, and the rest of the length.
    pub high: c_int,
    /// `MPI_SOURCE`.
    pub source: c_int,
    /// `MPI_TAG`.
    pub tag: c_int,
    /// `MPI_ERROR`.
    pub error: c_int,
}

impl Status {
    /// Zero everywhere.
    pub const ZERO: Self = Self { low: 0, high: 0, source: 0, tag: 0, error: 0 };

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.low.cast_unsigned()) | u64::from(self.high.cast_unsigned() >> 1) << 32
    }

    /// Sets the length.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.low = (bytes as u32).cast_signed();
        self.high = self.high & 1 | ((bytes >> 32) as u32).cast_signed() << 1;
    }

    /// Whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.high & 1 != 0
    }

    /// Says whether the request was cancelled.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.high = self.high & !1 | c_int::from(cancelled);
    }

    /// As Fortran has it (MPI-4.1 §19.3.5).
    pub fn to_fortran(self) -> [c_int; 5] {
        [self.low, self.high, self.source, self.tag, self.error]
    }

    /// Of what Fortran has.
    pub fn from_fortran([low, high, source, tag, error]: [c_int; 5]) -> Self {
        Self { low, high, source, tag, error }
    }
}
