//! Sleeping in the kernel on a word of shared memory.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `seen`, until a wake-up, a signal or `timeout`. May return for no reason.
pub fn sleep_on(word: &AtomicU32, seen: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: futex(2) FUTEX_WAIT reads the word, which the reference keeps alive, and the timespec. Not
    // PRIVATE: the word may be in memory that several processes map.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const timeout) };
}

/// Wakes all threads that sleep on `word`, in every process.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: futex(2) FUTEX_WAKE only uses the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Wakes one thread that sleeps on `word`.
pub fn wake_one(word: &AtomicU32) {
    // SAFETY: as in wake_all.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
