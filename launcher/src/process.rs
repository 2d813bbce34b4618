//! Processes: who descends from this one, how they ended, and how to end them.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::WaitOptions;

use crate::frames::Status;

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, number) => Self::Signal { number: number.unwrap_or(0), core: status.core_dumped() },
        }
    }
}

/// A signal as people read it: `9 (SIGKILL)`.
pub fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => format!("{number} ({})", signal.as_str()),
        Err(_) => number.to_string(),
    }
}

/// Reaps children that are not waited for one by one, and returns which: a subreaper inherits processes that it did not
/// start. (Not by nix, which drops the child that it has buried if a real-time signal killed it.)
pub fn reap_any() -> Vec<(Pid, Status)> {
    reap().0
}

/// Also says whether there are children left.
fn reap() -> (Vec<(Pid, Status)>, bool) {
    let mut ended = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                ended.push((Pid::from_raw(pid.as_raw_pid()), ExitStatus::from_raw(status.as_raw()).into()));
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return (ended, true),
            Err(_) => return (ended, false),
        }
    }
}

/// The living children of this process.
pub fn children() -> Vec<Pid> {
    let own = nix::unistd::getpid();
    // Not every kernel has this file; it spares looking at every process of the host.
    match std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect(),
        Err(_) => processes_by_parent().remove(&own.as_raw()).unwrap_or_default(),
    }
}

fn processes_by_parent() -> HashMap<i32, Vec<Pid>> {
    let mut by_parent: HashMap<i32, Vec<Pid>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(parent) = living_parent(pid) {
            by_parent.entry(parent).or_default().push(Pid::from_raw(pid));
        }
    }
    by_parent
}

/// All living descendants of this process, without `spared` and theirs. One may be missed whose parent ends while the processes are
/// looked at: where numbers have begun anew it is seen before its parent is.
fn descendants(spared: &[Pid]) -> Vec<Pid> {
    let mut by_parent = processes_by_parent();
    let mut found = Vec::new();
    let mut next = vec![nix::unistd::getpid()];
    while let Some(pid) = next.pop() {
        let mut of_pid = by_parent.remove(&pid.as_raw()).unwrap_or_default();
        of_pid.retain(|pid| !spared.contains(pid));
        found.extend_from_slice(&of_pid);
        next.extend(of_pid);
    }
    found
}

/// Parent of a process that is no zombie. (The name in /proc/PID/stat may hold anything, even `)`.)
fn living_parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&b| b == b')')? + 1;
    let rest = String::from_utf8_lossy(&stat[after_name..]).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // A zombie's children have new parents already, so that nothing is lost by leaving it out.
    (state != "Z" && state != "X").then_some(parent)
}

/// Kills every descendant, also those that made sessions of their own, but not `spared` and theirs; false if some
/// are left at the limit.
pub fn kill_descendants(limit: Duration, spared: &[Pid]) -> bool {
    let end = Instant::now() + limit;
    let mut looks_without = 0;
    loop {
        // Whoever has no child has no descendant: there is no need to look at every process of the host.
        if !reap().1 {
            return true;
        }
        let alive = descendants(spared);
        for pid in &alive {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        reap_any();
        looks_without = if alive.is_empty() { looks_without + 1 } else { 0 };
        if looks_without == 2 {
            return true;
        }
        if alive.is_empty() {
            continue;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this process was started with a signal ignored (`nohup`, a shell's `&`): leave it so.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask & (1 << (signal - 1)) != 0
}

/// This host's name.
pub fn host_name() -> String {
    nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "localhost".into())
}
