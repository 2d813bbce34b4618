//! System calls one behind the other, between which this thread writes no memory at all.
//!
//! A page that is being replaced may hold this thread's own stack, its thread-local data or the heap's bookkeeping. What was
//! written there between the copy of its contents and the replacement would be lost.

use std::io;

/// A system call, and the only result with which the next one is made.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Call {
    number: usize,
    arguments: [usize; 6],
    expected: usize,
}

impl Call {
    /// The call of a number, with its arguments; those that are not given are 0.
    pub fn new<const N: usize>(number: libc::c_long, given: [usize; N], expected: usize) -> Self {
        const { assert!(N <= 6) };
        let mut arguments = [0; 6];
        arguments[..N].copy_from_slice(&given);
        Self { number: number.cast_unsigned() as usize, arguments, expected }
    }
}

/// Whether this processor's system calls can be made so.
pub const AVAILABLE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// Makes the calls until one has another result than expected; then those of `undo`, whatever their results. No signal is
/// delivered to this thread meanwhile.
///
/// # Errors
/// What the call that went wrong returned.
///
/// # Safety
/// The calls may change this process in any way: each must be sound where it stands.
pub unsafe fn run(calls: &[Call], undo: &[Call]) -> io::Result<()> {
    let mut before = [0u64; 16];
    // SAFETY: masks of 8 bytes (rt_sigprocmask(2)); all signals that can be blocked are, those of the C library, too.
    unsafe { mask(libc::SIG_SETMASK, &[u64::MAX], Some(&mut before[..1])) };
    // SAFETY: the caller's promise.
    let result = unsafe { make(calls, undo) };
    // SAFETY: as above.
    unsafe { mask(libc::SIG_SETMASK, &before[..1], None) };
    match result.cast_signed() {
        0 => Ok(()),
        error @ -4095..0 => Err(io::Error::from_raw_os_error(-(error as i32))),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// # Safety
/// As rt_sigprocmask(2); the masks have 8 bytes.
unsafe fn mask(how: libc::c_int, new: &[u64], old: Option<&mut [u64]>) {
    let old = old.map_or(std::ptr::null_mut(), <[u64]>::as_mut_ptr);
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new.as_ptr(), old, size_of::<u64>()) };
}

/// Returns 0, or the result of the call that went wrong; 1 if that was 0.
///
/// # Safety
/// As [`run`].
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
unsafe fn make(calls: &[Call], undo: &[Call]) -> usize {
    let (calls, undo) = (calls.as_ptr_range(), undo.as_ptr_range());
    let result;
    // SAFETY: the calls are the caller's. The loop reads the two lists, within their bounds, at the offsets that repr(C) gives a
    // Call, and writes registers only: the kernel changes rax, rcx and r11 (System V ABI, AMD64 supplement, §A.2.1).
    unsafe {
        std::arch::asm!(
            "2:",
            "cmp r12, r13",
            "je 5f",
            "mov rax, [r12]",
            "mov rdi, [r12 + 8]",
            "mov rsi, [r12 + 16]",
            "mov rdx, [r12 + 24]",
            "mov r10, [r12 + 32]",
            "mov r8, [r12 + 40]",
            "mov r9, [r12 + 48]",
            "syscall",
            "cmp rax, [r12 + 56]",
            "jne 3f",
            "add r12, 64",
            "jmp 2b",
            "3:",
            "mov r13, 1",
            "test rax, rax",
            "cmovne r13, rax",
            "4:",
            "cmp r14, r15",
            "je 6f",
            "mov rax, [r14]",
            "mov rdi, [r14 + 8]",
            "mov rsi, [r14 + 16]",
            "mov rdx, [r14 + 24]",
            "mov r10, [r14 + 32]",
            "mov r8, [r14 + 40]",
            "mov r9, [r14 + 48]",
            "syscall",
            "add r14, 64",
            "jmp 4b",
            "5:",
            "xor r13d, r13d",
            "6:",
            inout("r12") calls.start => _,
            inout("r13") calls.end => result,
            inout("r14") undo.start => _,
            inout("r15") undo.end => _,
            out("rax") _, out("rdi") _, out("rsi") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
unsafe fn make(_: &[Call], _: &[Call]) -> usize {
    (-libc::ENOSYS as isize).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn getppid(expected: usize) -> Call {
        Call::new(libc::SYS_getppid, [], expected)
    }

    #[test]
    fn the_first_that_goes_wrong_ends_it() {
        let parent = std::os::unix::process::parent_id() as usize;
        let close = |fd: i32, expected| Call::new(libc::SYS_close, [fd as usize], expected);
        let pipe = || {
            use std::os::fd::IntoRawFd;
            nix::unistd::pipe().map(|(a, b)| (a.into_raw_fd(), b.into_raw_fd())).unwrap()
        };
        let (a, b) = pipe();
        let file = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
        let pipe = file(a);
        // Another test may open something under a number that is free again.
        let open = |fd: i32| file(fd) == pipe;
        // SAFETY: descriptors of this test, used by nobody else.
        unsafe {
            run(&[getppid(parent), close(a, 0)], &[close(b, 0)]).unwrap();
            assert_eq!((open(a), open(b)), (false, true));
            let error = run(&[close(-1, 0), close(b, 0)], &[]).unwrap_err();
            assert_eq!((error.raw_os_error(), open(b)), (Some(libc::EBADF), true));
            let error = run(&[getppid(0), getppid(parent)], &[close(b, 0)]).unwrap_err();
            assert_eq!((error.kind(), open(b)), (io::ErrorKind::UnexpectedEof, false));
        }
    }
}
