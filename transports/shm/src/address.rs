//! What ranks tell each other: where a rank's queue and doorbell are, and where a region is.

use transom_transport::{Span, TransportError, TransportResult, limits};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::file;
use crate::peer::Files;

/// A rank's address: its host, and the memory file that holds its message queue.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Address {
    /// Process that holds the descriptors below, as it sees itself.
    pub pid: u32,
    /// Layout of the queue; peers of another build are refused.
    pub layout: u32,
    /// Descriptor of the queue's memory file.
    pub queue: u32,
    /// Descriptor of the doorbell's pipe.
    pub doorbell: u32,
    /// Inode numbers of both.
    pub queue_inode: u64,
    pub doorbell_inode: u64,
    /// A number that nobody else has, which stands in the queue, and the address there: whether another process is this one.
    pub nonce: u64,
    pub nonce_at: u64,
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
    /// The key that a peer sent.
    pub fn parse(peer: usize, bytes: &[u8]) -> TransportResult<Self> {
        Self::read_from_bytes(bytes).map_err(|_| malformed(peer))
    }

    /// Length in bytes.
    pub fn bytes(&self, peer: usize) -> TransportResult<usize> {
        usize::try_from(self.len).map_err(|_| malformed(peer))
    }

    /// The key of a part.
    pub fn part(self, start: usize, len: usize) -> TransportResult<Self> {
        let (from, bytes) = (start as u64, len as u64);
        match self.start.checked_add(from) {
            Some(first) if from <= self.len && bytes <= self.len - from => {
                Ok(Self { start: first, len: bytes, ..self })
            }
            _ => Err(TransportError::Range { offset: start, bytes: len, len: self.len as usize }),
        }
    }

    /// Maps the part of a memory file, one of those that the owner has passed or one to be opened.
    pub fn map(&self, peer: usize, files: &Files) -> TransportResult<Span> {
        let start = usize::try_from(self.start).map_err(|_| malformed(peer))?;
        let len = self.bytes(peer)?;
        if len == 0 {
            return Ok(Span::empty());
        }
        if self.file == NO_FILE || start.checked_add(len).is_none() {
            return Err(malformed(peer));
        }
        files.with(self, start + len, |file| file::map_part(file, start, len)).map_err(|e| {
            TransportError::Peer { peer, reason: format!("mapping its memory: {}", limits::named(&e)) }
        })?
    }
}

fn malformed(peer: usize) -> TransportError {
    TransportError::Malformed { peer, what: "shared-memory region key" }
}

/// [`Key::file`] of memory that is in no file: reached by cross-memory attach.
pub const NO_FILE: u32 = u32::MAX;
