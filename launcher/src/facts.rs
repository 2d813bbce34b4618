//! Numbers of this host, from /proc and cgroups, and limits of this process.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::statvfs::statvfs;

use transom_transport::limits::cgroup;

use crate::info::host::{meminfo, read};

/// `CAP_IPC_LOCK` of capabilities(7): no limit on locked memory.
const IPC_LOCK: u64 = 1 << 14;

/// The number in a file; `max` is none.
pub fn number(path: &str) -> Option<u64> {
    read(path)?.parse().ok()
}

/// Bytes that this process may lock, and why.
pub fn lockable() -> (u64, &'static str) {
    let status = read("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    match limit_of(Resource::RLIMIT_MEMLOCK, false) {
        limit if effective & IPC_LOCK == 0 => (limit, "ulimit -l"),
        _ => (u64::MAX, "CAP_IPC_LOCK"),
    }
}

/// Processes and threads that this user may have here, and by what.
pub fn processes() -> (u64, &'static str) {
    let of_user = match nix::unistd::geteuid().is_root() {
        // The kernel counts root's, and limits them not.
        true => u64::MAX,
        false => limit_of(Resource::RLIMIT_NPROC, false),
    };
    let limits = [
        (of_user, "ulimit -u"),
        (cgroup::lowest(cgroup::Limit::Processes).unwrap_or(u64::MAX), "cgroup's pids.max"),
        (number("/proc/sys/kernel/pid_max").unwrap_or(u64::MAX), "kernel.pid_max"),
    ];
    limits.into_iter().min_by_key(|(limit, _)| *limit).unwrap_or((u64::MAX, ""))
}

/// Bytes of memory that there are, and by what.
pub fn memory() -> (u64, &'static str) {
    let available = meminfo("MemAvailable").map_or(u64::MAX, |kib| kib * 1024);
    match cgroup::lowest(cgroup::Limit::Memory) {
        Some(limit) if limit < available => (limit, "cgroup's memory.max"),
        _ => (available, "available"),
    }
}

/// The size of the file system at a path.
pub fn file_system(path: &str) -> Option<u64> {
    let found = statvfs(path).ok()?;
    Some(found.blocks() * found.fragment_size())
}

/// How often the kernel has ended a process for lack of memory, on this host.
pub fn memory_kills() -> Option<u64> {
    let text = read("/proc/vmstat")?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
}

/// A limit of this process; none is `u64::MAX`.
pub fn limit_of(resource: Resource, hard: bool) -> u64 {
    getrlimit(resource).map_or(0, |(soft, most)| match if hard { most } else { soft } {
        RLIM_INFINITY => u64::MAX,
        value => value,
    })
}
