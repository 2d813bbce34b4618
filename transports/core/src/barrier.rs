//! A memory barrier on all cores at once (membarrier(2)): threads that go to sleep pay for it, so that the threads that
//! wake them need none.
//!
//! A thread that goes to sleep counts itself and then checks its condition a last time; a thread that changes the condition
//! checks afterwards whether any sleeps. Each needs a barrier between its store and its load. Threads that signal often are
//! spared theirs if every sleeper executes one for all of them.

/// Makes this process one whose threads [`everywhere`] reaches. Returns whether the kernel can do that (Linux 4.16 and later,
/// unless a sandbox forbids it).
pub fn join() -> bool {
    call(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
}

/// A full memory barrier in every running thread of every process that has joined, the caller's too. Returns whether there was
/// one.
pub fn everywhere() -> bool {
    call(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
}

fn call(command: libc::membarrier_cmd) -> bool {
    // SAFETY: membarrier(2) takes numbers and touches no memory of the caller's.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_has_joined_can_ask_for_one() {
        assert_eq!(super::join(), super::everywhere());
    }
}
