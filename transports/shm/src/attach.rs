//! Cross-memory attach: copies between this process and memory that a peer's user allocated.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use transom_transport::{TransportError, TransportResult};

/// Direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From here to the peer.
    Write,
    /// From the peer to here.
    Read,
}

/// Copies `len` bytes between `local` here and `remote` in process `pid`, whole or with an error.
///
/// # Safety
/// `local` must be valid for reads (write) or writes (read) of `len` bytes.
pub unsafe fn copy(
    direction: Direction,
    peer: usize,
    pid: i32,
    local: *mut u8,
    remote: u64,
    len: usize,
) -> TransportResult<()> {
    let mut done = 0;
    while done < len {
        // SAFETY: done < len, so the pointer stays inside the caller's buffer.
        let here = libc::iovec { iov_base: unsafe { local.add(done) }.cast(), iov_len: len - done };
        let there =
            libc::iovec { iov_base: (remote + done as u64) as *mut libc::c_void, iov_len: len - done };
        // SAFETY: `here` is valid by contract; `there` is an address in the peer that the kernel checks and never
        // dereferences here (process_vm_readv(2)).
        let moved = unsafe {
            match direction {
                Direction::Write => libc::process_vm_writev(pid, &here, 1, &there, 1, 0),
                Direction::Read => libc::process_vm_readv(pid, &here, 1, &there, 1, 0),
            }
        };
        match usize::try_from(moved) {
            Ok(0) => return Err(failed(peer, Errno::EFAULT)),
            Ok(moved) => done += moved,
            Err(_) if Errno::last() == Errno::EINTR => {}
            Err(_) => return Err(failed(peer, Errno::last())),
        }
    }
    Ok(())
}

/// Copies between this process's own memory and itself, where it is not known whether `there` is mapped still: then it is an error.
///
/// # Safety
/// As for copying to and from a peer; and what may be at `there` by now may be read, or written.
pub unsafe fn copy_own(direction: Direction, local: *mut u8, there: u64, len: usize) -> TransportResult<()> {
    // SAFETY: getpid(2) takes nothing and always succeeds.
    let pid = unsafe { libc::getpid() };
    // SAFETY: by this function's contract.
    unsafe { copy(direction, 0, pid, local, there, len) }
}

/// Whether the kernel takes so much longer for a copy than a copy takes that the way through a queue, which is two copies and
/// messages, is the shorter one even for long messages that both ends could copy. That depends on the processor and the kernel, and is
/// tried once: on AMD's Zen 4 and 5 it takes five and nine times as long, on Intel's CPUs twice to three times.
pub fn is_slow() -> bool {
    const BYTES: usize = 64 << 10;
    const TIMES_A_COPY: u32 = 4;
    static SLOW: OnceLock<bool> = OnceLock::new();
    *SLOW.get_or_init(|| {
        let (mut to, from) = (vec![1u8; BYTES], vec![2u8; BYTES]);
        let mut best = [Duration::MAX; 2];
        for _ in 0..6 {
            let start = Instant::now();
            // SAFETY: both are vectors of as many bytes.
            let copied =
                unsafe { copy_own(Direction::Read, to.as_mut_ptr(), from.as_ptr().addr() as u64, BYTES) };
            if copied.is_err() {
                return true;
            }
            best[0] = best[0].min(start.elapsed());
            let start = Instant::now();
            std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
            best[1] = best[1].min(start.elapsed());
        }
        best[0] > best[1] * TIMES_A_COPY
    })
}

fn failed(peer: usize, errno: Errno) -> TransportError {
    let remedy = match errno {
        Errno::EPERM => {
            " (the kernel forbids cross-memory attach: allow ptrace between processes of one user, or allocate the \
             window with Transom)"
        }
        Errno::EFAULT => " (the peer's memory is gone)",
        Errno::ESRCH => " (the peer's process is gone)",
        _ => "",
    };
    TransportError::Peer { peer, reason: format!("cross-memory attach: {errno}{remedy}") }
}

/// Whether a process can be reached both ways, tried on a word there that is known to have this value, and is left with it.
///
/// # Errors
/// Why not.
pub fn reaches(pid: u32, address: u64, value: u64) -> Result<(), String> {
    let pid = i32::try_from(pid).map_err(|e| e.to_string())?;
    let mut found = 0u64;
    let part = |local: *mut u64| libc::iovec { iov_base: local.cast(), iov_len: size_of::<u64>() };
    let there = part(address as *mut u64);
    let whole = |name, moved: isize| match moved {
        8 => Ok(()),
        _ => Err(format!("{name}: {}", Errno::last())),
    };
    let here = part(&raw mut found);
    // SAFETY: `here` is a word of this function's; `there` is checked by the kernel, in the other process (process_vm_readv(2)).
    whole("process_vm_readv", unsafe { libc::process_vm_readv(pid, &here, 1, &there, 1, 0) })?;
    if found != value {
        return Err(format!("process {pid} is another one in this PID namespace"));
    }
    // SAFETY: as above; it is written what has just been found to be there, which nobody changes.
    whole("process_vm_writev", unsafe { libc::process_vm_writev(pid, &here, 1, &there, 1, 0) })
}

/// Lets processes of the same user attach to this one where the Yama security module would not (prctl(2)).
pub fn permit() {
    // SAFETY: PR_SET_PTRACER takes a number and touches no memory; EINVAL without Yama is as good as success.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}
