//! Pointer arguments. The caller of an MPI function promises that its arguments are what the standard says (MPI-4.1 §2.5);
//! the promise is made once, where the exported functions make these values, so that everything behind them is safe.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::{Aint, ERR_ARG, STATUS_IGNORE, STATUSES_IGNORE, Status, UNDEFINED};
use crate::failure::{Result, fail};

/// A pointer to one `T`, or several.
#[derive(Debug)]
pub struct Pointer<T>(*mut T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

// SAFETY: the promise at `new` is about memory, not about threads: a nonblocking call stores its result in whichever thread completes it,
// and the program leaves the place alone meanwhile (MPI-4.1 §3.7.2).
unsafe impl<T: Send> Send for Pointer<T> {}

impl<T: Copy> Pointer<T> {
    /// The pointer that a caller passes.
    ///
    /// # Safety
    /// Null, a constant with a meaning of its own, or valid for what the call does with it.
    pub unsafe fn new(place: *mut T) -> Self {
        Self(place)
    }

    /// A place of the library's own.
    #[cfg(mpich)]
    pub fn to(place: &mut T) -> Self {
        Self(place)
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Whether it is a constant with a meaning of its own.
    pub fn is(self, constant: usize) -> bool {
        self.0.addr() == constant
    }

    /// An error if it is null: for calls that could not be undone later.
    pub fn check(self) -> Result<()> {
        if self.0.is_null() { fail(ERR_ARG, "an argument is a null pointer") } else { Ok(()) }
    }

    /// What is there.
    pub fn get(self) -> Result<T> {
        self.at(0)
    }

    /// Stores a value.
    pub fn set(self, value: T) -> Result<()> {
        self.set_at(0, value)
    }

    /// Stores a value if there is a place.
    #[inline(always)]
    pub fn replace(self, value: T) {
        self.replace_at(0, value);
    }

    /// Stores a value at `index` if there is a place.
    #[inline(always)]
    pub fn replace_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: valid for writes, and as long as the call's arguments say, by the promise at `new`.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }

    /// What is there, if there is a place.
    #[inline(always)]
    pub fn peek(self) -> Option<T> {
        // SAFETY: valid for reads, by the promise at `new`.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// What is at `index`.
    pub fn at(self, index: usize) -> Result<T> {
        self.check()?;
        // SAFETY: valid for reads, and as long as the call's arguments say, by the promise at `new`.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Stores a value at `index`.
    pub fn set_at(self, index: usize, value: T) -> Result<()> {
        self.check()?;
        // SAFETY: valid for writes, and as long as the call's arguments say, by the promise at `new`.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// The first `len`.
    pub fn list(self, len: usize) -> Result<Vec<T>> {
        (0..len).map(|index| self.at(index)).collect()
    }
}

/// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` are one; no more is stored at null.
const NO_STATUS: usize = STATUS_IGNORE;
const _: () = assert!(STATUS_IGNORE == STATUSES_IGNORE);

impl Pointer<Status> {
    /// Whether the caller wants no status.
    #[inline(always)]
    pub fn is_ignored(self) -> bool {
        self.0.is_null() || self.0.addr() == NO_STATUS
    }

    /// Stores a status unless the caller wants none.
    #[inline(always)]
    pub fn give(self, status: Status) {
        if !self.is_ignored() {
            self.replace(status);
        }
    }
}

/// One count or several, as the plain and the large forms of functions have them.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// `int`.
    Int(Pointer<c_int>),
    /// `MPI_Count` or `MPI_Aint`.
    Long(Pointer<i64>),
}

impl From<Pointer<Aint>> for Counts {
    fn from(place: Pointer<Aint>) -> Self {
        // Of one size on the platforms of this library.
        Self::Long(Pointer(place.0.cast()))
    }
}

impl Counts {
    /// What is at `index`.
    pub fn at(self, index: usize) -> Result<i64> {
        match self {
            Self::Int(place) => place.at(index).map(i64::from),
            Self::Long(place) => place.at(index),
        }
    }

    /// The first `len`.
    pub fn list(self, len: usize) -> Result<Vec<i64>> {
        (0..len).map(|index| self.at(index)).collect()
    }

    /// Stores a value; `MPI_UNDEFINED` where it does not fit (§2.5.8).
    pub fn set(self, value: i64) -> Result<()> {
        self.set_at(0, value)
    }

    /// Stores a value at `index`.
    pub fn set_at(self, index: usize, value: i64) -> Result<()> {
        match self {
            Self::Int(place) => place.set_at(index, c_int::try_from(value).unwrap_or(UNDEFINED)),
            Self::Long(place) => place.set_at(index, value),
        }
    }
}

/// A string of the caller's, or a buffer for one.
#[derive(Debug, Clone, Copy)]
pub struct Text(*mut c_char);

impl Text {
    /// The string or buffer that a caller passes.
    ///
    /// # Safety
    /// Null, or a string, or a buffer for as much as the call writes.
    pub unsafe fn new(place: *mut c_char) -> Self {
        Self(place)
    }

    /// The string.
    pub fn get(self) -> Result<String> {
        if self.0.is_null() {
            return fail(ERR_ARG, "a string is a null pointer");
        }
        // SAFETY: a string that ends with a null character, by the promise at `new`.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }

    /// Writes a string, cut to `capacity` bytes with the null character behind it. Returns its length without that.
    pub fn set(self, text: &str, capacity: usize) -> Result<usize> {
        if self.0.is_null() {
            return fail(ERR_ARG, "room for a string is a null pointer");
        }
        let mut len = text.len().min(capacity.saturating_sub(1));
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: room for `capacity` bytes, by the promise at `new`; the caller's strings do not overlap ours.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast(), len);
            self.0.add(len).write(0);
        }
        Ok(len)
    }

    /// Writes a string of the standard's length, and its length to `len`.
    pub fn set_with_length(self, text: &str, most: c_int, len: Pointer<c_int>) -> Result<()> {
        let written = self.set(text, usize::try_from(most).unwrap_or(0))?;
        len.set(c_int::try_from(written).unwrap_or(0))
    }
}

/// A flag for C.
pub fn flag(value: bool) -> c_int {
    c_int::from(value)
}
