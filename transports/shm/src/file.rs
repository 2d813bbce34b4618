//! Anonymous memory files: made here, opened by peers.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::Resource;
use transom_transport::memory::{FilePart, HUGE_PAGE};
use transom_transport::{Span, TransportError, TransportResult, limits};

/// Granularity at which parts of files are mapped: a multiple of every page size in use.
pub const PART: usize = 1 << 16;

/// Makes a zeroed memory file of `bytes` bytes and maps it. Its size is sealed, so that no peer can truncate it and
/// make an access here fault.
pub fn create(name: &str, bytes: usize) -> TransportResult<Span> {
    owned(FilePart::whole(sealed(name, bytes)?), bytes)
}

/// As [`create`], but address space only, at `address` if that is free. The file takes memory as it is touched.
pub fn reserve(name: &str, bytes: usize, address: usize) -> TransportResult<Span> {
    Span::reserve(Some(FilePart::whole(sealed(name, bytes)?)), bytes, address)
}

/// A memory file of `bytes` bytes, all of them zero, whose size nobody can change.
pub fn sealed(name: &str, bytes: usize) -> TransportResult<OwnedFd> {
    let no_memory = |reason: String| TransportError::NoMemory { bytes, reason };
    limits::allow_file(bytes)?;
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(|e| TransportError::errno("memfd_create", e))?;
    let size = i64::try_from(bytes).map_err(|_| no_memory("more than 2^63 bytes".into()))?;
    nix::unistd::ftruncate(&file, size).map_err(|e| no_memory(format!("ftruncate: {e}")))?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| TransportError::errno("fcntl(F_ADD_SEALS)", e))?;
    Ok(file)
}

/// The limit on the size of files that stands in the way of one of `bytes` bytes, in words. (Who exceeds it gets a signal.)
pub fn limit_below(bytes: usize) -> Option<String> {
    limits::file_size().filter(|limit| *limit < bytes)?;
    limits::text(Resource::RLIMIT_FSIZE).map(|limit| format!("{limit}: raise it to unlimited"))
}

/// Opens a peer's memory file through /proc.
pub fn open(pid: u32, fd: u32) -> std::io::Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
    Ok(file.into())
}

/// Whether it is the memory file with this inode number, of `len` bytes at least.
pub fn check(file: BorrowedFd<'_>, inode: u64, len: usize) -> std::io::Result<()> {
    let found = nix::sys::stat::fstat(file)?;
    if found.st_ino != inode || usize::try_from(found.st_size).is_ok_and(|size| size < len) {
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the peer has freed this memory in the meantime",
        ));
    }
    Ok(())
}

/// A descriptor of this process, by its number.
pub fn duplicate(fd: u32) -> std::io::Result<OwnedFd> {
    let raw = i32::try_from(fd).map_err(std::io::Error::other)?;
    // SAFETY: the call takes a number and refuses one that is not open; what it returns is nobody else's (fcntl(2)).
    match unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3) } {
        -1 => Err(std::io::Error::last_os_error()),
        // SAFETY: as above.
        new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
    }
}

/// Maps `len` bytes of a peer's memory file from `start` on.
pub fn map_part(file: BorrowedFd<'_>, start: usize, len: usize) -> TransportResult<Span> {
    let before = start % PART;
    // Core dumps of this process leave it out: they would touch every page of the peer's memory.
    Span::map(file, start - before, before + len)?.part(before, len)
}

/// The number of a descriptor, for peers to open the same file.
pub fn descriptor(fd: &BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// The inode number of a memory file: its identity.
pub fn inode(file: BorrowedFd<'_>) -> TransportResult<u64> {
    Ok(nix::sys::stat::fstat(file).map_err(|e| TransportError::errno("fstat", e))?.st_ino)
}

/// Maps `len` bytes of a file of this process from `start` on, a multiple of [`PART`]; their pages go back with the span.
pub fn map_own(file: &Arc<OwnedFd>, start: usize, len: usize) -> TransportResult<Span> {
    owned(FilePart::of(file.clone(), start, len), len)
}

/// The first `len` bytes of a part of a file of this process, mapped.
fn owned(part: FilePart, len: usize) -> TransportResult<Span> {
    let memory = match len {
        0..HUGE_PAGE => Span::from_file(map(part.as_fd(), part.start(), len)?, part),
        // Where huge pages of the file are some in memory, too.
        _ => Span::reserve(Some(part), len, 0)?,
    };
    memory.dump(len <= Span::DUMPED);
    Ok(memory)
}

fn map(file: BorrowedFd<'_>, start: usize, len: usize) -> TransportResult<MmapRaw> {
    MmapOptions::new().offset(start as u64).len(len).map_raw(&file).map_err(|e| limits::refused(len, e))
}
