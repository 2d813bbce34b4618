//! Sleeping in the kernel on a word of memory.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Who sleeps on a word, and who wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Threads of this process: the word is known by its address, whatever page is there meanwhile.
    Threads,
    /// Threads of all processes that map the memory: the word is known by its place in the memory's file, so that who sleeps
    /// on one in private memory is not found any more when another page takes the place of his.
    Processes,
}

impl Among {
    fn flag(self) -> libc::c_int {
        match self {
            Self::Threads => libc::FUTEX_PRIVATE_FLAG,
            Self::Processes => 0,
        }
    }
}

/// Sleeps while `word` holds `seen`, until a wake-up, a signal or `timeout`. May return for no reason.
pub fn sleep_on(word: &AtomicU32, seen: u32, timeout: Duration, among: Among) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let operation = libc::FUTEX_WAIT | among.flag();
    // SAFETY: futex(2) FUTEX_WAIT reads the word, which the reference keeps alive, and the timespec.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, seen, &raw const timeout) };
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32, among: Among) {
    wake(word, i32::MAX, among);
}

/// Wakes one thread that sleeps on `word`.
pub fn wake_one(word: &AtomicU32, among: Among) {
    wake(word, 1, among);
}

fn wake(word: &AtomicU32, threads: libc::c_int, among: Among) {
    // SAFETY: futex(2) FUTEX_WAKE only uses the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | among.flag(), threads) };
}
