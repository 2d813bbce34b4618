//! The doorbell: a pipe that a sender writes to when the receiver sleeps.
//!
//! A pipe rather than a futex, so that one `poll` can wait for it and for a NIC's completion channel together; a pipe
//! rather than an eventfd, because a peer can open it through `/proc/PID/fd`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use transom_transport::{TransportError, TransportResult};

/// The receiver's side.
#[derive(Debug)]
pub struct Doorbell {
    read: File,
    /// Keeps the pipe open for writing, so that a poll never sees the end of file.
    _write: OwnedFd,
}

impl Doorbell {
    /// A silent doorbell.
    pub fn new() -> TransportResult<Self> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .map_err(|e| TransportError::errno("pipe2", e))?;
        // One page is plenty and spares the user's pipe quota (pipe(7)); failing to shrink is harmless.
        let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(4096));
        Ok(Self { read: File::from(read), _write: write })
    }

    /// The descriptor to sleep on, and that peers open.
    pub fn fd(&self) -> RawFd {
        self.read.as_raw_fd()
    }

    /// Silences it.
    pub fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.read).read(&mut bytes), Ok(n) if n == bytes.len()) {}
    }
}

/// A sender's side.
#[derive(Debug)]
pub struct Bell(File);

impl Bell {
    /// Opens a peer's doorbell.
    pub fn open(pid: u32, fd: u32) -> std::io::Result<Self> {
        let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
        OpenOptions::new().write(true).custom_flags(flags).open(format!("/proc/{pid}/fd/{fd}")).map(Self)
    }

    /// Rings. A full pipe rings already; a broken one belongs to a dead peer, which the job's watchers report.
    pub fn ring(&self) {
        let _ = (&self.0).write(&[1]);
    }
}
