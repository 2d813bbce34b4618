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

/// As [`sleep_on`], for one of several reasons: only a wake-up for that one counts. `reason` is a bit.
pub fn sleep_on_for(word: &AtomicU32, seen: u32, reason: u32, timeout: Duration, among: Among) {
    let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes the timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut until) };
    let nanoseconds = until.tv_nsec + libc::c_long::from(timeout.subsec_nanos().cast_signed());
    let seconds = libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX);
    until.tv_sec = until.tv_sec.saturating_add(seconds).saturating_add(nanoseconds / 1_000_000_000);
    until.tv_nsec = nanoseconds % 1_000_000_000;
    let operation = libc::FUTEX_WAIT_BITSET | among.flag();
    let (address, nobody) = (word.as_ptr(), std::ptr::null::<u32>());
    // SAFETY: futex(2) FUTEX_WAIT_BITSET reads the word, which the reference keeps alive, and the timespec.
    unsafe { libc::syscall(libc::SYS_futex, address, operation, seen, &raw const until, nobody, reason) };
}

/// Wakes one thread that sleeps on `word` for that reason.
pub fn wake_one_for(word: &AtomicU32, reason: u32, among: Among) {
    let operation = libc::FUTEX_WAKE_BITSET | among.flag();
    let (address, nothing) = (word.as_ptr(), std::ptr::null::<u32>());
    // SAFETY: futex(2) FUTEX_WAKE_BITSET only uses the word's address.
    unsafe { libc::syscall(libc::SYS_futex, address, operation, 1, nothing, nothing, reason) };
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32, among: Among) {
    // SAFETY: futex(2) FUTEX_WAKE only uses the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | among.flag(), i32::MAX) };
}
