//! The program's memory as the runtime takes it. Every function of `exports` has its caller's promise that its addresses are valid
//! for what the call does with them; these functions pass it on.

use transom::RawBuffer;

/// `count` elements from `start` on. None if their bytes cannot be counted.
#[inline(always)]
pub fn raw<T>(start: *const T, count: usize) -> Option<RawBuffer> {
    let bytes = count.checked_mul(size_of::<T>())?;
    // SAFETY: valid for the bytes until the operation is complete, by the caller of the exported function (OpenSHMEM 1.5 §9.6, §9.7). A
    // length that no address space holds is refused by the short cut, which alone sees it before `len_fits`.
    Some(unsafe { RawBuffer::unchecked(start.cast_mut().cast(), bytes) })
}

/// Whether so many elements can be in memory, and there is an address if there are any.
pub fn is_sound<T>(start: *const T, count: usize) -> bool {
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.is_some_and(|bytes| bytes == 0 || !start.is_null())
}

/// Elements that the call reads.
///
/// # Safety
/// Valid for reads of so many elements while the result is used, and nobody writes them meanwhile.
pub unsafe fn bytes<'a, T>(start: *const T, count: usize) -> &'a [u8] {
    if count == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: by contract; bytes have no alignment.
    unsafe { std::slice::from_raw_parts(start.cast(), count.saturating_mul(size_of::<T>())) }
}

/// Elements that the call writes.
///
/// # Safety
/// Valid for reads and writes of so many elements while the result is used, and nobody else uses them meanwhile.
pub unsafe fn bytes_mut<'a, T>(start: *mut T, count: usize) -> &'a mut [u8] {
    if count == 0 || start.is_null() {
        return &mut [];
    }
    // SAFETY: by contract; bytes have no alignment.
    unsafe { std::slice::from_raw_parts_mut(start.cast(), count.saturating_mul(size_of::<T>())) }
}
