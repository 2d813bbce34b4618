//! A thread that runs seldom and briefly, and should not wait for its turn then.

/// `struct sched_attr` of sched_setattr(2), its first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that the kernel takes, in nanoseconds.
const SLICE: u64 = 100_000;

/// Asks the scheduler for a short slice for the calling thread: when it wakes up on a core that another thread of the
/// same importance keeps busy, it runs at once and not after the other's slice (some milliseconds).
///
/// Linux takes slices of ordinary threads since 6.12 (EEVDF, no privilege needed); an older kernel ignores them, and
/// nothing is lost. Returns whether the system call was accepted.
pub fn prefer_latency() -> bool {
    // SAFETY: sched_getscheduler(2) asks about the calling thread and touches no memory.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        // The policy of this process was chosen explicitly.
        return false;
    }
    // SCHED_OTHER is policy 0; the nice value stays as it is.
    // SAFETY: getpriority(2) with PRIO_PROCESS and 0 asks about the calling thread and touches no memory.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime: SLICE,
        deadline: 0,
        period: 0,
    };
    // SAFETY: sched_setattr(2): thread 0 is the caller, the structure is valid and says its own size, flags are 0.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_policy_stays() {
        std::thread::spawn(|| {
            super::prefer_latency();
            // SAFETY: asks about the calling thread.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
