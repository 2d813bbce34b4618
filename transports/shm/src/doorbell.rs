//! The doorbell: a pipe that a sender writes to when the receiver sleeps.
//!
//! A pipe rather than a futex, so that one `poll` can wait for it and for a NIC's completion channel together; a pipe
//! rather than an eventfd, because a peer can open it through `/proc/PID/fd`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use transom_transport::{TransportError, TransportResult};

/// The receiver's side.
#[derive(Debug)]
pub struct Doorbell {
    read: File,
    /// Keeps the pipe open for writing, so that a poll never sees the end of file.
    write: OwnedFd,
}

impl Doorbell {
    /// A silent doorbell.
    pub fn new() -> TransportResult<Self> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .map_err(|e| TransportError::errno("pipe2", e))?;
        // One page is plenty and spares the user's pipe quota (pipe(7)); failing to shrink is harmless.
        let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(4096));
        Ok(Self { read: File::from(read), write })
    }

    /// The descriptor to sleep on, and that peers open.
    pub fn fd(&self) -> RawFd {
        self.read.as_raw_fd()
    }

    /// The inode number of the pipe: its identity.
    pub fn inode(&self) -> TransportResult<u64> {
        Ok(self.read.metadata().map_err(|e| TransportError::io("fstat", &e))?.ino())
    }

    /// Both ends of the pipe, for reading and for writing.
    pub fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.read.as_fd(), self.write.as_fd()]
    }

    /// Silences it.
    pub fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.read).read(&mut bytes), Ok(n) if n == bytes.len()) {}
    }
}

/// A sender's side. It holds the pipe open for reading, too: a pipe that has a reader does not break when the peer ends, so no
/// SIGPIPE ends this process in the place of its peer (pipe(7)).
#[derive(Debug)]
pub struct Bell {
    write: File,
    _read: Option<OwnedFd>,
}

impl Bell {
    /// Opens a peer's doorbell, if it is still the pipe with this inode number.
    pub fn open(pid: u32, fd: u32, inode: u64) -> std::io::Result<Self> {
        let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
        let pipe = format!("/proc/{pid}/fd/{fd}");
        let write = OpenOptions::new().read(true).write(true).custom_flags(flags).open(pipe)?;
        if write.metadata()?.ino() != inode {
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "it is another process's"));
        }
        Ok(Self { write, _read: None })
    }

    /// The doorbell whose ends a peer has passed: for reading and for writing.
    pub fn of(read: OwnedFd, write: OwnedFd) -> Self {
        Self { write: File::from(write), _read: Some(read) }
    }

    /// Rings. A full pipe rings already; that of a dead peer rings for nobody, and the job's watchers report the peer.
    pub fn ring(&self) {
        let _ = (&self.write).write(&[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_until_it_is_drained() {
        let doorbell = Doorbell::new().unwrap();
        let bell = Bell::open(std::process::id(), doorbell.fd() as u32, doorbell.inode().unwrap()).unwrap();
        (0..3).for_each(|_| bell.ring());
        let mut bytes = [0; 8];
        assert_eq!((&doorbell.read).read(&mut bytes).unwrap(), 3);
        (0..10_000).for_each(|_| bell.ring());
        doorbell.drain();
        assert_eq!((&doorbell.read).read(&mut bytes).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    /// What would be SIGPIPE in a program that does not ignore it is no error.
    #[test]
    fn the_bell_of_one_who_has_gone_breaks_nothing() {
        let doorbell = Doorbell::new().unwrap();
        let bell = Bell::open(std::process::id(), doorbell.fd() as u32, doorbell.inode().unwrap()).unwrap();
        drop(doorbell);
        assert_eq!((&bell.write).write(&[1]).unwrap(), 1);
    }
}
