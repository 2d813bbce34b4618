//! What Fortran's functions need (MPI-4.1 §19.1): arguments are addresses, strings have no end but a length that comes last, and some
//! constants are variables of common blocks, known by where they are.
//!
//! The build makes the functions of the table (`build/fortran.rs`); those with functions of the program's, and attributes, are here.

pub mod attributes;
pub mod callbacks;
mod modules;

use std::ffi::{CString, c_char, c_int, c_void};

use crate::abi::{self, Aint, F_STATUS_SIZE, IN_PLACE, Status, UNDEFINED, UNWEIGHTED, WEIGHTS_EMPTY};

const STATUS: usize = F_STATUS_SIZE as usize;

/// A common block. A program that has it, too, has the one that counts; nothing is stored in it.
#[repr(C, align(32))]
struct Common<const LEN: usize>([c_int; LEN]);

macro_rules! commons {
    ($($name:ident = $symbol:literal, $len:expr;)*) => {$(
        #[unsafe(export_name = $symbol)]
        static mut $name: Common<{ $len }> = Common([0; $len]);
    )*};
}

commons! {
    // MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
    PRIVATE1 = "mpipriv1_", 2 + STATUS;
    // MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
    PRIVATE2 = "mpipriv2_", STATUS + 1;
    // MPI_ARGVS_NULL, MPI_ARGV_NULL
    PRIVATEC = "mpiprivc_", 2;
    // MPI_UNWEIGHTED
    BLOCK5 = "mpifcmb5_", 1;
    // MPI_WEIGHTS_EMPTY
    BLOCK9 = "mpifcmb9_", 1;
    // MPI_BUFFER_AUTOMATIC
    BLOCKA = "mpifcmba_", 1;
}

/// A variable of the library's that has the address of one of Fortran's.
#[repr(transparent)]
struct Place(*const c_int);

// SAFETY: an address that is compared, and not followed.
unsafe impl Sync for Place {}

#[unsafe(export_name = "MPI_F_STATUS_IGNORE")]
static F_STATUS_IGNORE: Place = Place((&raw const PRIVATE1).cast::<c_int>().wrapping_add(2));
#[unsafe(export_name = "MPI_F_STATUSES_IGNORE")]
static F_STATUSES_IGNORE: Place = Place((&raw const PRIVATE2).cast());

/// Whether an address is that of a variable in a common block.
#[inline(always)]
fn is<T, const LEN: usize>(place: *const T, common: *const Common<LEN>, index: usize) -> bool {
    std::ptr::addr_eq(place, common.cast::<c_int>().wrapping_add(index))
}

/// A buffer.
#[inline(always)]
pub fn address(place: *const c_void) -> *mut c_void {
    if is(place, &raw const PRIVATE1, 0) {
        return std::ptr::null_mut();
    }
    if is(place, &raw const PRIVATE1, 1) {
        return std::ptr::without_provenance_mut(IN_PLACE);
    }
    if is(place, &raw const BLOCKA, 0) {
        return std::ptr::without_provenance_mut(abi::BUFFER_AUTOMATIC);
    }
    place.cast_mut()
}

/// A status, or several.
#[inline(always)]
pub fn status(place: *mut Status) -> *mut Status {
    if is(place, &raw const PRIVATE1, 2) || is(place, &raw const PRIVATE2, 0) {
        return std::ptr::without_provenance_mut(abi::STATUS_IGNORE);
    }
    place
}

/// Weights of edges.
pub fn weights(place: *const c_int) -> *mut c_int {
    if is(place, &raw const BLOCK5, 0) {
        return std::ptr::without_provenance_mut(UNWEIGHTED);
    }
    if is(place, &raw const BLOCK9, 0) {
        return std::ptr::without_provenance_mut(WEIGHTS_EMPTY);
    }
    place.cast_mut()
}

/// What a function returns; mpi_f08 has programs that do not ask.
///
/// # Safety
/// The address of a variable, or null.
#[inline(always)]
pub unsafe fn end(error: *mut c_int, code: c_int) {
    if !error.is_null() {
        // SAFETY: as above.
        unsafe { error.write(code) };
    }
}

/// The address of a buffer that was detached, as Fortran has it.
///
/// # Safety
/// The address of an address.
pub unsafe fn detached(place: *mut *mut c_void) {
    // SAFETY: as above.
    unsafe {
        if place.read().addr() == abi::BUFFER_AUTOMATIC {
            place.write((&raw mut BLOCKA).cast());
        }
    }
}

/// Whether a call that returns this code has stored its results.
pub fn has_stored(code: c_int) -> bool {
    code == abi::SUCCESS || code == abi::ERR_IN_STATUS
}

/// Characters of a string. Compilers pass its length in 4 bytes or 8.
fn characters(len: usize) -> usize {
    usize::try_from(len as c_int).unwrap_or(0)
}

/// A string, without the blanks at its end.
///
/// # Safety
/// The address of so many characters.
pub unsafe fn text(place: *const c_char, len: usize) -> CString {
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(place.cast::<u8>(), characters(len)) };
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    // Ends before the first null character.
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// A key or a value of an info object, without the blanks around it (MPI-4.1 §10).
///
/// # Safety
/// The address of so many characters.
pub unsafe fn word(place: *const c_char, len: usize) -> CString {
    // SAFETY: as above.
    let text = unsafe { text(place, len) };
    let blanks = text.as_bytes().iter().take_while(|byte| **byte == b' ').count();
    CString::from(&text.as_c_str()[blanks..])
}

/// Room for a string of C's, to become one of Fortran's.
pub struct Room([u8; Self::BYTES]);

impl Room {
    /// The longest string that a call writes, with its end.
    const BYTES: usize = abi::MAX_LIBRARY_VERSION_STRING as usize + 1;

    /// The first byte while no string has been written, which no text has.
    const UNTOUCHED: u8 = 0xff;

    /// Room for any string.
    pub fn new() -> Self {
        let mut room = [0; Self::BYTES];
        room[0] = Self::UNTOUCHED;
        Self(room)
    }

    /// Its address.
    pub fn place(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Stores the string with blanks behind it; nothing if none was written.
    ///
    /// # Safety
    /// The address of so many characters.
    pub unsafe fn store(&self, place: *mut c_char, len: usize) {
        if self.0[0] == Self::UNTOUCHED {
            return;
        }
        let written = self.0.iter().position(|byte| *byte == 0).unwrap_or(Self::BYTES);
        // SAFETY: as above.
        let to = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), characters(len)) };
        let written = written.min(to.len());
        to[..written].copy_from_slice(&self.0[..written]);
        to[written..].fill(b' ');
    }
}

/// A length for C, which has room for the null character; 0 asks for the length alone.
pub fn with_null(len: c_int) -> c_int {
    if len > 0 { len.saturating_add(1) } else { 0 }
}

/// Indices begin with 1.
///
/// # Safety
/// The address of so many, unless that is `MPI_UNDEFINED`.
pub unsafe fn count_from_one(indices: *mut c_int, n: c_int) {
    for place in 0..usize::try_from(n).unwrap_or(0) {
        // SAFETY: as above.
        let index = unsafe { &mut *indices.add(place) };
        if *index != UNDEFINED {
            *index += 1;
        }
    }
}

/// Addresses that are INTEGER.
///
/// # Safety
/// The address of so many.
pub unsafe fn wide(addresses: *const c_int, n: c_int) -> Vec<Aint> {
    // SAFETY: as above.
    (0..usize::try_from(n).unwrap_or(0)).map(|place| unsafe { addresses.add(place).read() } as Aint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_lose_their_blanks_and_get_them_back() {
        let given = b"  a key   ";
        // SAFETY: so many characters.
        let (text, word) =
            unsafe { (text(given.as_ptr().cast(), given.len()), word(given.as_ptr().cast(), given.len())) };
        assert_eq!((text.as_bytes(), word.as_bytes()), (&b"  a key"[..], &b"a key"[..]));
        let mut room = Room::new();
        room.0[..5].copy_from_slice(b"value");
        let mut to = [b'x'; 7];
        // SAFETY: as above.
        unsafe { room.store(to.as_mut_ptr().cast(), to.len()) };
        assert_eq!(&to, b"value  ");
        // SAFETY: as above.
        unsafe { room.store(to.as_mut_ptr().cast(), 3) };
        assert_eq!(&to[..3], b"val");
        // SAFETY: as above.
        unsafe { Room::new().store(to.as_mut_ptr().cast(), to.len()) };
        assert_eq!(&to[..3], b"val");
        room.0[0] = 0;
        // SAFETY: as above.
        unsafe { room.store(to.as_mut_ptr().cast(), to.len()) };
        assert_eq!(&to, b"       ");
    }

    #[test]
    fn constants_are_known_by_their_places() {
        let mut own = 0;
        let own = (&raw mut own).cast::<c_void>();
        assert_eq!(address(own), own);
        assert!(address((&raw mut PRIVATE1).cast()).is_null());
        let in_place = (&raw mut PRIVATE1).cast::<c_int>().wrapping_add(1);
        assert_eq!(address(in_place.cast()).addr(), IN_PLACE);
        assert_eq!(status(F_STATUS_IGNORE.0.cast_mut().cast()).addr(), abi::STATUS_IGNORE);
        assert_eq!(status(F_STATUSES_IGNORE.0.cast_mut().cast()).addr(), abi::STATUSES_IGNORE);
        assert_eq!(weights((&raw mut BLOCK9).cast()).addr(), WEIGHTS_EMPTY);
    }
}
