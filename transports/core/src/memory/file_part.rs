//! A part of a memory file: where a mapping of it begins, and what becomes of its pages afterwards.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::{FallocateFlags, fallocate};

/// A memory file from some byte on.
#[derive(Debug)]
pub struct FilePart {
    file: Arc<OwnedFd>,
    start: usize,
    /// Bytes whose pages go back to the system with this value: of a file that outlives its parts.
    lent: usize,
}

impl FilePart {
    /// All of a file, which is closed with this value.
    pub fn whole(file: OwnedFd) -> Self {
        Self { file: Arc::new(file), start: 0, lent: 0 }
    }

    /// A file that is used for more, from byte `start` on; the pages of the first `lent` bytes go back to the system with this
    /// value, so that they are zero then for whoever still maps them.
    pub fn of(file: Arc<OwnedFd>, start: usize, lent: usize) -> Self {
        Self { file, start, lent }
    }

    /// The file.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where in the file it begins.
    pub fn start(&self) -> usize {
        self.start
    }
}

impl Drop for FilePart {
    fn drop(&mut self) {
        if self.lent == 0 {
            return;
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        if let (Ok(start), Ok(len)) = (i64::try_from(self.start), i64::try_from(self.lent)) {
            // If the system refuses, the memory stays until the file goes.
            let _ = fallocate(&*self.file, flags, start, len);
        }
    }
}
