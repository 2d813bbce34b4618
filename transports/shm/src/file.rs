//! Anonymous memory files: made here, opened by peers.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use transom_transport::{Span, TransportError, TransportResult};

/// Makes a zeroed memory file of `bytes` bytes and maps it. Its size is sealed, so that no peer can truncate it and
/// make an access here fault.
pub fn create(name: &str, bytes: usize) -> TransportResult<Span> {
    let no_memory = |reason: String| TransportError::NoMemory { bytes, reason };
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(|e| no_memory(format!("memfd_create: {e}")))?;
    let size = i64::try_from(bytes).map_err(|_| no_memory("more than 2^63 bytes".into()))?;
    nix::unistd::ftruncate(&file, size).map_err(|e| no_memory(format!("ftruncate: {e}")))?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| TransportError::errno("fcntl(F_ADD_SEALS)", e))?;
    let map = map(&file, bytes).map_err(|e| no_memory(format!("mmap: {e}")))?;
    Ok(Span::from_file(map, file))
}

/// Opens and maps the first `len` bytes of a peer's memory file, if it is still the file with this inode number.
pub fn open(pid: u32, fd: u32, inode: u64, len: usize) -> std::io::Result<Span> {
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
    let found = file.metadata()?;
    if found.ino() != inode || found.size() < len as u64 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the peer has freed this memory in the meantime",
        ));
    }
    Ok(Span::from_mapping(map(&OwnedFd::from(file), len)?))
}

/// The inode number of a memory file: its identity.
pub fn inode(file: std::os::fd::BorrowedFd<'_>) -> TransportResult<u64> {
    let file = file.try_clone_to_owned().map(File::from).map_err(|e| TransportError::io("dup", &e))?;
    Ok(file.metadata().map_err(|e| TransportError::io("fstat", &e))?.ino())
}

fn map(file: &OwnedFd, len: usize) -> std::io::Result<MmapRaw> {
    MmapOptions::new().len(len).map_raw(file)
}
