//! What ranks tell each other: where a rank's queue and doorbell are, and where a region is.

use transom_transport::{Span, TransportError, TransportResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::file;

/// A rank's address: its host, and the memory file that holds its message queue.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Address {
    /// [`crate::host_identity`].
    pub host: u64,
    /// Process that holds the descriptors below.
    pub pid: u32,
    /// Descriptor of the queue's memory file.
    pub queue: u32,
    /// Inode number of that file.
    pub inode: u64,
    /// Descriptor of the doorbell's pipe.
    pub doorbell: u32,
    /// Layout of the queue; peers of another build are refused.
    pub layout: u32,
}

/// A region's key: a part of a memory file, or memory of the user's.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Key {
    /// Process that owns the memory.
    pub pid: u32,
    /// Descriptor of the memory file there, or [`NO_FILE`].
    pub file: u32,
    /// Inode number of that file.
    pub inode: u64,
    /// Offset in the file; without a file, the address in the owner's memory.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Key {
    /// Maps the part of a memory file.
    pub fn map(&self, peer: usize) -> TransportResult<Span> {
        let malformed = TransportError::Malformed { peer, what: "shared-memory region key" };
        let (Ok(start), Ok(len)) = (usize::try_from(self.start), usize::try_from(self.len)) else {
            return Err(malformed);
        };
        if len == 0 {
            return Ok(Span::empty());
        }
        if self.file == NO_FILE || start.checked_add(len).is_none() {
            return Err(malformed);
        }
        file::open(self.pid, self.file, self.inode, start, len).map_err(|e| TransportError::Peer {
            peer,
            reason: format!("mapping its window from /proc/{}: {e}", self.pid),
        })
    }
}

/// [`Key::file`] of memory that is in no file: reached by cross-memory attach.
pub const NO_FILE: u32 = u32::MAX;
