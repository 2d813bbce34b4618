//! Large mappings, most of which is never touched.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use nix::errno::Errno;

use super::HUGE_PAGE;
use crate::{TransportError, TransportResult, limits};

/// A mapping that takes address space only, until it is touched. Unmapped when dropped.
#[derive(Debug)]
pub struct Sparse {
    start: NonNull<u8>,
    len: usize,
    shared: bool,
}

// SAFETY: an address and a length; the memory there belongs to no thread.
unsafe impl Send for Sparse {}
// SAFETY: as above; nothing here gives a reference to the bytes.
unsafe impl Sync for Sparse {}

impl Sparse {
    /// Maps `len` bytes of a file from an offset on, or so many zeroed bytes of this process, at `address` if that is free, else
    /// where the file's huge pages are some in memory, too.
    pub(super) fn new(
        file: Option<(BorrowedFd<'_>, usize)>,
        len: usize,
        address: usize,
    ) -> TransportResult<Self> {
        let kind = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
        let (fd, start) = file.map_or((-1, 0), |(file, start)| (file.as_raw_fd(), start));
        let offset = i64::try_from(start).map_err(|e| limits::refused(len, e))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let map = |address: usize, how| {
            let flags = kind | libc::MAP_NORESERVE | how;
            // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping, and without it the kernel chooses a free place
            // (mmap(2)): no memory that exists is affected.
            let start = unsafe { libc::mmap(address as *mut libc::c_void, len, access, flags, fd, offset) };
            (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast::<u8>())).flatten()
        };
        let place = |at: usize| if at == 0 { None } else { map(at, libc::MAP_FIXED_NOREPLACE) };
        let start = place(address)
            .or_else(|| place(free_place(len, start)))
            .or_else(|| map(0, 0))
            .ok_or_else(|| limits::refused(len, Errno::last()))?;
        let mapping = Self { start, len, shared: file.is_some() };
        // A core dump would touch every page. If the kernel does not know the advice, dumps are large.
        // SAFETY: a mapping of ours; the advice changes dumps only (madvise(2)).
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_DONTDUMP) };
        Ok(mapping)
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Gives `len` bytes at `address`, whole pages of this mapping, back to the system: they are zero from now on, in every
    /// process that maps them.
    pub(super) fn discard(&self, address: *mut u8, len: usize) -> TransportResult<()> {
        let first = self.start.as_ptr() as usize;
        let inside = (address as usize)
            .checked_sub(first)
            .filter(|offset| *offset <= self.len && len <= self.len - offset);
        if inside.is_none() {
            return Err(TransportError::Range { offset: address as usize, bytes: len, len: self.len });
        }
        let advice = if self.shared { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
        // SAFETY: inside a mapping of ours, which stays; its bytes are only read and written by copies and atomics, for
        // which zero is a value like any other (madvise(2): later accesses see zeroes).
        match unsafe { libc::madvise(address.cast(), len, advice) } {
            0 => Ok(()),
            _ => Err(TransportError::errno("madvise", Errno::last())),
        }
    }
}

/// A place for a mapping of a file from `offset` on where its huge pages are some in memory, which is free just now; 0 if there is
/// none to be found, or the mapping has none.
fn free_place(len: usize, offset: usize) -> usize {
    let room = len.saturating_add(HUGE_PAGE);
    if len < HUGE_PAGE || room > isize::MAX as usize {
        return 0;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses a free place (mmap(2)).
    let found = unsafe { libc::mmap(std::ptr::null_mut(), room, libc::PROT_NONE, flags, -1, 0) };
    if found == libc::MAP_FAILED {
        return 0;
    }
    // SAFETY: what was just mapped, and nobody else knows (munmap(2)).
    unsafe { libc::munmap(found, room) };
    let found = found as usize;
    found + (offset % HUGE_PAGE + HUGE_PAGE - found % HUGE_PAGE) % HUGE_PAGE
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and unmapped nowhere else; spans on it keep their owner (munmap(2)).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use crate::Span;

    const PAGE: usize = 1 << 16;

    #[test]
    fn discarded_bytes_are_zero_and_the_others_stay() {
        let span = Span::reserve(None, 64 << 30, 0x2f00_0000_0000).unwrap();
        let other = Span::reserve(None, 4 * PAGE, 0x2f00_0000_0000).unwrap();
        assert_ne!(span.address(), other.address());
        for page in 0..3 {
            span.copy_in(page * PAGE + 5, &[7]).unwrap();
        }
        span.part(PAGE, PAGE).unwrap().discard().unwrap();
        let byte = |at| {
            let mut byte = [1];
            span.copy_out(at, &mut byte).unwrap();
            byte[0]
        };
        assert_eq!([0, 1, 2].map(|page| byte(page * PAGE + 5)), [7, 0, 7]);
        assert_eq!(byte((64 << 30) - 1), 0);
        assert!(Span::anonymous(PAGE).unwrap().discard().is_err());
    }
}
