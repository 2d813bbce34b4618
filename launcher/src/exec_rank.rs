//! `transom exec-rank`: the last steps of a rank's process before it becomes the user's program.
//!
//! An agent could do these steps between fork and exec, in `unsafe` code; a program of its own does them safely.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// What the agent says to this program, before the program's own arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// The agent: die when it does.
    pub parent: i32,
    /// Pin to this processor.
    pub cpu: Option<usize>,
    /// Soft limit of open files.
    pub open_files: u64,
    /// Descriptors that stay open: the PMI socket, and those of the pages.
    pub kept: Vec<RawFd>,
}

impl Orders {
    /// As arguments.
    pub fn to_args(&self) -> [String; 4] {
        let kept: Vec<String> = self.kept.iter().map(RawFd::to_string).collect();
        let cpu = self.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string());
        [self.parent.to_string(), cpu, self.open_files.to_string(), kept.join(",")]
    }

    fn from_args(args: &[OsString]) -> Option<Self> {
        let text = |index: usize| args.get(index)?.to_str();
        let cpu = match text(1)? {
            "-" => None,
            cpu => Some(cpu.parse().ok()?),
        };
        Some(Self {
            parent: text(0)?.parse().ok()?,
            cpu,
            open_files: text(2)?.parse().ok()?,
            kept: text(3)?.split(',').map(|fd| fd.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

/// Takes `PARENT CPU OPEN_FILES FD,… FILE NAME ARGS…` and becomes FILE.
pub fn main(args: &[OsString]) -> ExitCode {
    let (Some(orders), Some(file), Some(name)) = (Orders::from_args(args), args.get(4), args.get(5)) else {
        crate::tell("exec-rank is started by `transom agent`, not by people");
        return ExitCode::from(2);
    };
    prepare(&orders);
    let error = Command::new(file).arg0(name).args(&args[6..]).exec();
    crate::tell(&format!("cannot execute {}: {error}", Path::new(file).display()));
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

fn prepare(orders: &Orders) {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // The agent may have died before that took hold.
    if nix::unistd::getppid().as_raw() != orders.parent {
        std::process::exit(1);
    }
    if let Some(cpu) = orders.cpu {
        pin(cpu);
    }
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, orders.open_files.min(hard), hard);
    }
    close_all_but(&orders.kept);
}

fn pin(cpu: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = nix::sched::sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Whatever the agent's parents left open is none of the rank's business.
fn close_all_but(kept: &[RawFd]) {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2 && !kept.contains(fd)) {
        let _ = nix::unistd::close(fd);
    }
}
