//! Limits that jobs run into, and what to do about each.

use nix::sys::resource::Resource;
use serde::Serialize;

use super::{fabric, network};
use crate::facts::{self, limit_of};
use crate::info::host::bytes;

/// How a limit compares with what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing to do.
    Enough,
    /// Some jobs will fail, or be slower.
    Low,
    /// No job works with it.
    TooLow,
}

/// A limit of this host, or of a device.
#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// Its value.
    pub here: String,
    /// Whether that is enough.
    pub level: Level,
    /// What is wanted, and what for.
    pub wanted: String,
    /// What to do where it is not enough.
    pub advice: String,
}

/// What a job asks of this host.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// All its ranks.
    pub ranks: u64,
    /// Those on this host.
    pub local: u64,
}

/// Threads of a rank: the program's, and Transom's progress thread.
const THREADS: u64 = 2;
/// Files of a process beside those for peers: standard streams, heap, queue, wait objects, device, libraries.
const FILES: u64 = 64;

/// All limits, with those of devices and libfabric.
pub fn all(ranks: u32) -> Vec<Limit> {
    let local = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let job = Job { ranks: ranks.into(), local: local.min(ranks.into()) };
    let mut limits = network::limits(job);
    limits.extend(fabric::limits());
    limits.extend([
        open_files(job),
        processes(job),
        address_space(),
        data(),
        file_size(),
        overcommit(),
        memory(),
    ]);
    limits.extend(dev_shm());
    limits
}

/// A row that compares two numbers.
pub fn compare(name: impl Into<String>, here: u64, wanted: u64, least: u64) -> (String, Level) {
    let level = match here {
        here if here < least => Level::TooLow,
        here if here < wanted => Level::Low,
        _ => Level::Enough,
    };
    (name.into(), level)
}

/// A number that may be no limit.
pub fn or_unlimited(value: u64, text: impl Fn(u64) -> String) -> String {
    if value == u64::MAX { "unlimited".into() } else { text(value) }
}

fn open_files(job: Job) -> Limit {
    // `transom run` raises the soft limit of its ranks as far as it may.
    let here = limit_of(Resource::RLIMIT_NOFILE, true);
    // A pipe for each rank of the node; a socket for each rank elsewhere, with libfabric over TCP.
    let wanted = job.ranks + FILES;
    let (name, level) = compare("open files", here, wanted, FILES);
    Limit {
        name,
        here: or_unlimited(here, |value| format!("{value} (hard)")),
        level,
        wanted: format!("{wanted} a rank: a pipe or socket to each other, {FILES} more"),
        advice: "Raise `nofile` in /etc/security/limits.conf, and LimitNOFILE= of slurmd or sshd".into(),
    }
}

fn processes(job: Job) -> Limit {
    let (here, what) = facts::processes();
    let wanted = job.local * (THREADS + 1) + 16;
    let (name, level) = compare("processes and threads", here, wanted, 2 * THREADS + 2);
    Limit {
        name,
        here: or_unlimited(here, |value| format!("{value} ({what})")),
        level,
        wanted: format!("{wanted} for {} ranks, {THREADS} threads each, and the agent", job.local),
        advice: "Raise `nproc` in limits.conf, TasksMax= of the systemd unit, or the container's pids limit"
            .into(),
    }
}

fn address_space() -> Limit {
    let here = limit_of(Resource::RLIMIT_AS, false);
    let wanted = 128 << 30;
    let (name, level) = compare("address space", here, wanted, 1 << 30);
    Limit {
        name,
        here: or_unlimited(here, bytes),
        level,
        wanted: "room to reserve 64 GiB or the host's memory for windows; unlimited is usual".into(),
        advice: "ulimit -v unlimited; until then windows are made one by one".into(),
    }
}

fn data() -> Limit {
    let here = limit_of(Resource::RLIMIT_DATA, false);
    let (name, level) = compare("data", here, 8 << 30, 16 << 20);
    Limit {
        name,
        here: or_unlimited(here, bytes),
        level,
        wanted: "what programs allocate, and windows that no other rank maps; unlimited is usual".into(),
        advice: "ulimit -d unlimited".into(),
    }
}

/// Of files in memory, too.
fn file_size() -> Limit {
    let here = limit_of(Resource::RLIMIT_FSIZE, false);
    let (name, level) = compare("size of files", here, 64 << 30, 0);
    Limit {
        name,
        here: or_unlimited(here, bytes),
        level,
        wanted: "as much as a rank's windows, which are files in memory; unlimited is usual".into(),
        advice: "ulimit -f unlimited; until then larger windows are reached by copies through the kernel, and below 5 MiB ranks of one \
                 host talk by TCP"
            .into(),
    }
}

fn overcommit() -> Limit {
    let mode = facts::number("/proc/sys/vm/overcommit_memory").unwrap_or(0);
    Limit {
        name: "overcommit".into(),
        here: format!("mode {mode}"),
        level: if mode == 2 { Level::Low } else { Level::Enough },
        wanted: "mode 0 or 1: heaps of windows are reserved before they are used".into(),
        advice: "sysctl vm.overcommit_memory=0, or raise vm.overcommit_ratio".into(),
    }
}

/// What memory files, in which windows lie, can take.
fn memory() -> Limit {
    let (here, what) = facts::memory();
    let wanted = 256 << 20;
    let (name, level) = compare("memory for windows", here, wanted, 16 << 20);
    Limit {
        name,
        here: format!("{} ({what})", bytes(here)),
        level,
        wanted: "as much as all windows of this host's ranks; memory files are not limited by /dev/shm".into(),
        advice: "Fewer ranks, smaller windows, or more memory in the job's request (sbatch --mem, the container's limit)"
            .into(),
    }
}

fn dev_shm() -> Option<Limit> {
    let size = facts::file_system("/dev/shm")?;
    let wanted = 64 << 20;
    let (name, level) = compare("/dev/shm", size, wanted, 0);
    Some(Limit {
        name,
        here: bytes(size),
        level,
        wanted: "nothing for Transom; libfabric's shm provider and MPI libraries put their segments there"
            .into(),
        advice: "docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm, if those end with SIGBUS"
            .into(),
    })
}
