//! What the figures were measured on.

use std::fs;
use std::sync::OnceLock;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The cores of this process before a thread was bound.
static ALL: OnceLock<CpuSet> = OnceLock::new();

/// Binds the calling thread to a core of its own, by rank. The system otherwise puts two ranks on one core for seconds
/// while another is idle, and what is measured then is its scheduler. Nothing happens where there is one core. By its rank in the job
/// if `in_job`, else by that on its host.
///
/// # Errors
/// The system refuses.
pub fn bind(rank: usize, in_job: bool) -> nix::Result<()> {
    let this_thread = Pid::from_raw(0);
    let allowed = sched_getaffinity(this_thread)?;
    let allowed = *ALL.get_or_init(|| allowed);
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect();
    let mut own = CpuSet::new();
    // On other hosts, ranks begin at any number.
    let local = std::env::var("TRANSOM_LOCAL_RANK").ok().filter(|_| !in_job);
    let local = local.and_then(|rank| rank.parse().ok()).unwrap_or(rank);
    if let Some(core) = cores.get(local % cores.len().max(1)) {
        own.set(*core)?;
    }
    sched_setaffinity(this_thread, &own)
}

/// Lets the system move the calling thread, begun by one that is bound, and what it starts. Nothing happens where none is bound.
///
/// # Errors
/// The system refuses.
pub fn unbind() -> nix::Result<()> {
    ALL.get().map_or(Ok(()), |all| sched_setaffinity(Pid::from_raw(0), all))
}

/// Cores of this machine, whatever this thread is bound to.
pub fn cores() -> usize {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpu.lines().filter(|line| line.starts_with("processor")).count()
}

/// The CPU's name.
pub fn model() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned());
    cpu.lines().find_map(named).unwrap_or_else(|| "unknown CPU".to_owned())
}
