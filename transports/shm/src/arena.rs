//! The memory of a rank whose files cannot be opened by all peers: one sparse file, which they have got once and for all. What is
//! allocated later is a part of it, and so are pages that are shared in place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use transom_transport::memory::{FilePart, HUGE_PAGE};
use transom_transport::{Span, TransportError, TransportResult};

use crate::file;
use crate::in_place::{ADDRESSES, InPlace};

/// Bytes of the file: those that pages shared in place have by their address, and many times that for parts, none of which is
/// ever used again: late accesses to what is freed hit nothing else.
const BYTES: usize = 1 << 55;

/// The file, and where its next part begins.
#[derive(Debug)]
pub struct Arena {
    file: Arc<OwnedFd>,
    next: AtomicUsize,
}

impl Arena {
    /// An empty one.
    pub fn new() -> TransportResult<Self> {
        if let Some(reason) = file::limit_below(BYTES) {
            return Err(TransportError::NoMemory { bytes: BYTES, reason });
        }
        let file = Arc::new(file::sealed("transom-arena", BYTES)?);
        InPlace::adopt(&file);
        Ok(Self { file, next: AtomicUsize::new(ADDRESSES) })
    }

    /// What peers are to have.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A zeroed part, mapped. Its memory goes back to the system with the span.
    pub fn allocate(&self, bytes: usize) -> TransportResult<Span> {
        file::map_own(&self.file, self.part(bytes)?, bytes)
    }

    /// Address space for a part, at `address` if that is free. Its memory stays until the file goes, or is discarded: others may
    /// have their own memory in it.
    pub fn reserve(&self, bytes: usize, address: usize) -> TransportResult<Span> {
        let part = FilePart::of(self.file.clone(), self.part(bytes)?, 0);
        Span::reserve(Some(part), bytes, address)
    }

    fn part(&self, bytes: usize) -> TransportResult<usize> {
        let full = || TransportError::NoMemory { bytes, reason: "the memory file has no room left".into() };
        let len = bytes.checked_next_multiple_of(file::PART).ok_or_else(full)?;
        // A large one begins as huge pages do.
        let first = |next: usize| if len < HUGE_PAGE { next } else { next.next_multiple_of(HUGE_PAGE) };
        let after = |next: usize| first(next).checked_add(len).filter(|end| *end <= BYTES);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).map(first).map_err(|_| full())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_and_their_memory_goes_back() {
        let arena = Arena::new().unwrap();
        let (first, second) = (arena.allocate(10).unwrap(), arena.reserve(1 << 36, 0).unwrap());
        first.copy_in(0, b"0123456789").unwrap();
        second.copy_in(0, b"x").unwrap();
        let (at, of_second) = (first.file().unwrap().1, second.file().unwrap().1);
        assert!(of_second >= at + file::PART);
        let peer = file::map_part(arena.fd(), at, 10).unwrap();
        let mut seen = [0; 10];
        peer.copy_out(0, &mut seen).unwrap();
        assert_eq!(&seen, b"0123456789");
        drop(first);
        peer.copy_out(0, &mut seen).unwrap();
        assert_eq!(seen, [0; 10]);
        assert!(matches!(arena.allocate(BYTES), Err(TransportError::NoMemory { .. })));
    }
}
