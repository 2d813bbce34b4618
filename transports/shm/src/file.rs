//! Anonymous memory files: made here, opened by peers.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use transom_transport::{Span, TransportError, TransportResult, limits};

/// Granularity at which parts of files are mapped: a multiple of every page size in use.
const PART: usize = 1 << 16;

/// Makes a zeroed memory file of `bytes` bytes and maps it. Its size is sealed, so that no peer can truncate it and
/// make an access here fault.
pub fn create(name: &str, bytes: usize) -> TransportResult<Span> {
    let file = sealed(name, bytes)?;
    let map = map(&file, 0, bytes)?;
    Ok(Span::from_file(map, file))
}

/// As [`create`], but address space only, at `address` if that is free. The file takes memory as it is touched.
pub fn reserve(name: &str, bytes: usize, address: usize) -> TransportResult<Span> {
    Span::reserve(Some(sealed(name, bytes)?), bytes, address)
}

fn sealed(name: &str, bytes: usize) -> TransportResult<OwnedFd> {
    let no_memory = |reason: String| TransportError::NoMemory { bytes, reason };
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(|e| no_memory(format!("memfd_create: {e}")))?;
    let size = i64::try_from(bytes).map_err(|_| no_memory("more than 2^63 bytes".into()))?;
    nix::unistd::ftruncate(&file, size).map_err(|e| no_memory(format!("ftruncate: {e}")))?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| TransportError::errno("fcntl(F_ADD_SEALS)", e))?;
    Ok(file)
}

/// Opens a peer's memory file if it is still the file with this inode number, of `len` bytes at least.
pub fn find(pid: u32, fd: u32, inode: u64, len: usize) -> std::io::Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
    let found = file.metadata()?;
    if found.ino() != inode || found.size() < len as u64 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the peer has freed this memory in the meantime",
        ));
    }
    Ok(file.into())
}

/// Maps `len` bytes of a peer's memory file from `start` on.
pub fn map_part(file: &OwnedFd, start: usize, len: usize) -> TransportResult<Span> {
    let before = start % PART;
    let map = map(file, start - before, before + len)?;
    // A core dump of this process would touch every page of the peer's memory.
    let _ = map.advise(memmap2::Advice::DontDump);
    Span::from_mapping(map).part(before, len)
}

/// The number of a descriptor, for peers to open the same file.
pub fn descriptor(fd: &BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// The inode number of a memory file: its identity.
pub fn inode(file: BorrowedFd<'_>) -> TransportResult<u64> {
    let file = file.try_clone_to_owned().map(File::from).map_err(|e| TransportError::io("dup", &e))?;
    Ok(file.metadata().map_err(|e| TransportError::io("fstat", &e))?.ino())
}

fn map(file: &OwnedFd, start: usize, len: usize) -> TransportResult<MmapRaw> {
    MmapOptions::new().offset(start as u64).len(len).map_raw(file).map_err(|e| limits::refused(len, e))
}
