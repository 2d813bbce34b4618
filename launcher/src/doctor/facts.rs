//! Numbers of this host, from /proc, /sys and cgroups.

use std::path::PathBuf;

use nix::sys::resource::Resource;
use nix::sys::statvfs::statvfs;

use super::limits::limit_of;
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
    let limits = [
        (limit_of(Resource::RLIMIT_NPROC, false), "ulimit -u"),
        (cgroup("pids.max").unwrap_or(u64::MAX), "cgroup's pids.max"),
        (number("/proc/sys/kernel/pid_max").unwrap_or(u64::MAX), "kernel.pid_max"),
    ];
    limits.into_iter().min_by_key(|(limit, _)| *limit).unwrap_or((u64::MAX, ""))
}

/// Bytes of memory that there are, and by what.
pub fn memory() -> (u64, &'static str) {
    let available = meminfo("MemAvailable").map_or(u64::MAX, |kib| kib * 1024);
    match cgroup("memory.max") {
        Some(limit) if limit < available => (limit, "cgroup's memory.max"),
        _ => (available, "available"),
    }
}

/// The size of the file system at a path.
pub fn file_system(path: &str) -> Option<u64> {
    let found = statvfs(path).ok()?;
    Some(found.blocks() * found.fragment_size())
}

/// The lowest limit of this name in this process's cgroup (version 2) and those above it.
fn cgroup(name: &str) -> Option<u64> {
    let own = read("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mut path = PathBuf::from("/sys/fs/cgroup").join(own);
    let mut lowest = None;
    while path.starts_with("/sys/fs/cgroup") {
        let limit = number(&path.join(name).to_string_lossy());
        lowest = lowest.into_iter().chain(limit).min();
        path.pop();
    }
    lowest
}
