//! Descriptors that a launcher opened for this process, and named in its environment.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Takes a descriptor that the launcher passed to this process; children of this process do not get it any more. `None` if it is
/// not open, is a standard stream, or was taken before.
///
/// The caller knows by the descriptor's kind that it is the one that the launcher meant.
pub fn take_descriptor(fd: RawFd) -> Option<OwnedFd> {
    static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if fd <= 2 || taken.contains(&fd) || std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_err() {
        return None;
    }
    taken.push(fd);
    // SAFETY: `from_raw_fd` asks for an open descriptor that nobody else owns. It is open, as /proc has just said (proc(5)); the
    // launcher opened it for this library and named it in the environment, so that no other code has a claim on it; and
    // `TAKEN` keeps a second caller from owning it too.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl(&owned, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(owned)
}
