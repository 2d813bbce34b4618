//! What ranks tell each other: where a rank's queue and doorbell are, and where a region is.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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

/// [`Key::file`] of memory that is in no file: reached by cross-memory attach.
pub const NO_FILE: u32 = u32::MAX;
