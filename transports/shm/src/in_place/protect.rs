//! Keeps other threads, of this process and of the kernel, from writing pages while these are replaced: they wait
//! (userfaultfd(2), write-protect mode).

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::silent::Call;

/// linux/userfaultfd.h.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: libc::c_ulong = 0x8010_aa01;
const UFFDIO_WAKE: libc::c_ulong = 0x8010_aa02;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const USERFAULTFD_IOC_NEW: libc::c_ulong = 0xaa00;
const UFFD_API: u64 = 0xaa;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1 << 0;
/// Write protection of private memory, of memory files, and of pages that do not exist yet (Linux 6.4).
const FEATURES: u64 = 1 << 0 | 1 << 12 | 1 << 13;

/// A range as the kernel has it, and what is asked of it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Argument {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

impl Argument {
    fn new(pages: &Range<usize>, mode: u64) -> Self {
        Self { start: pages.start as u64, len: pages.len() as u64, mode, ioctls: 0 }
    }
}

/// Makes writers of some pages wait.
#[derive(Debug)]
pub struct Protector(OwnedFd);

impl Protector {
    /// None where the kernel has no such thing, or does not let this process have writers in the kernel wait, too
    /// (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd = 1, or access to /dev/userfaultfd).
    pub fn new() -> Option<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: userfaultfd(2) takes flags and touches no memory.
        let mut fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as libc::c_int;
        if fd < 0 {
            let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/userfaultfd").ok()?;
            // SAFETY: the ioctl takes flags, and touches no memory (userfaultfd(2)).
            fd = unsafe { libc::ioctl(device.as_raw_fd(), USERFAULTFD_IOC_NEW as _, flags) };
        }
        if fd < 0 {
            return None;
        }
        // SAFETY: just opened, and nobody else's.
        let this = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut api = [UFFD_API, FEATURES, 0];
        // SAFETY: `api` is laid out as struct uffdio_api, which the kernel reads and writes (ioctl_userfaultfd(2)).
        (unsafe { libc::ioctl(this.0.as_raw_fd(), UFFDIO_API as _, &raw mut api) } == 0).then_some(this)
    }

    /// Pages of one kind, private or of a memory file, of which writers can be made to wait.
    pub fn register(&self, pages: Range<usize>) -> io::Result<Protected<'_>> {
        let argument = Argument::new(&pages, UFFDIO_REGISTER_MODE_WP);
        self.ask(UFFDIO_REGISTER, argument)?;
        let protect = Argument { mode: UFFDIO_WRITEPROTECT_MODE_WP, ..argument };
        Ok(Protected { protector: self, protect, release: Argument { mode: 0, ..argument }, pages })
    }

    fn ask(&self, what: libc::c_ulong, mut argument: Argument) -> io::Result<()> {
        // SAFETY: each of these takes a range, and a mode or less; all fit `argument`, which may be written (ioctl_userfaultfd(2)).
        // Writers wait or go on; no memory changes.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), what as _, &raw mut argument) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Pages of which writers can be made to wait, until this is dropped.
#[derive(Debug)]
pub struct Protected<'a> {
    protector: &'a Protector,
    protect: Argument,
    release: Argument,
    pages: Range<usize>,
}

impl Protected<'_> {
    /// Writers wait from now on. The calling thread must not be one.
    pub fn protect(&self) -> io::Result<()> {
        self.protector.ask(UFFDIO_WRITEPROTECT, self.protect)
    }

    /// [`Protected::protect`] as a call, for pages that the calling thread may write. To be made while `self` stays where it is.
    pub fn protect_call(&self) -> Call {
        self.call(&self.protect)
    }

    /// The call by which writers go on.
    pub fn release_call(&self) -> Call {
        self.call(&self.release)
    }

    fn call(&self, argument: &Argument) -> Call {
        let fd = self.protector.0.as_raw_fd() as usize;
        let what = UFFDIO_WRITEPROTECT as usize;
        Call::new(libc::SYS_ioctl, [fd, what, std::ptr::from_ref(argument) as usize], 0)
    }
}

impl Drop for Protected<'_> {
    fn drop(&mut self) {
        // Pages that have been replaced are not registered any more, and an error says so. Writers that wait look again.
        let _ = self.protector.ask(UFFDIO_UNREGISTER, Argument::new(&self.pages, 0));
        let _ = self.protector.ask(UFFDIO_WAKE, Argument::new(&self.pages, 0));
    }
}
