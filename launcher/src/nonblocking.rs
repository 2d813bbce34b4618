//! Pipes, sockets and terminals without blocking, whichever of them a descriptor is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that the event loop watches.
#[derive(Debug)]
pub struct Nonblocking {
    fd: AsyncFd<OwnedFd>,
}

impl Nonblocking {
    /// Takes a descriptor and makes it non-blocking. Call it inside a tokio runtime.
    pub fn new(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        let fd = fd.into();
        let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
        fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        // Deprecated because any `AsRawFd` may lie about its descriptor; an `OwnedFd` cannot. The replacement is an
        // unsafe function, which this crate does not use.
        #[expect(deprecated, reason = "sound for an OwnedFd")]
        let fd = AsyncFd::new(fd)?;
        Ok(Self { fd })
    }

    /// Reads some bytes; 0 at the end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |fd: &OwnedFd| read_once(fd, buffer);
        self.fd.async_io(Interest::READABLE, read).await
    }

    /// Reads what is there already; `WouldBlock` when there is nothing.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read_once(self.fd.get_ref(), buffer)
    }

    /// Writes some bytes.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = |fd: &OwnedFd| Ok(nix::unistd::write(fd, bytes)?);
        self.fd.async_io(Interest::WRITABLE, write).await
    }

    /// Writes all bytes.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes).await {
                Ok(count) => bytes = &bytes[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn read_once(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    match nix::unistd::read(fd.as_fd(), buffer) {
        Ok(count) => Ok(count),
        // What a terminal's master side says when the other side is closed.
        Err(Errno::EIO) => Ok(0),
        Err(e) => Err(e.into()),
    }
}
