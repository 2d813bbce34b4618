//! `transom exec-rank`: the last steps of a rank's process before it becomes the user's program.
//!
//! An agent could do these steps between fork and exec, in `unsafe` code; a program of its own does them safely.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rustix::process::{PTracer, set_ptracer};

use crate::agent::topology::{allowed, list, parse};
use crate::agent::victim;

/// What the agent says to this program, before the program's own arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// The agent: die when it does.
    pub parent: i32,
    /// Bind to these processors; none: do not.
    pub cpus: Vec<usize>,
    /// Soft limit of open files.
    pub open_files: u64,
    /// How much sooner it is ended than the agent where memory runs out.
    pub victim: i32,
    /// Descriptors that stay open: the PMI socket, and those of the pages.
    pub kept: Vec<RawFd>,
}

impl Orders {
    /// As arguments.
    pub fn to_args(&self) -> [String; 5] {
        let kept: Vec<String> = self.kept.iter().map(RawFd::to_string).collect();
        let cpus = if self.cpus.is_empty() { "-".to_owned() } else { list(&self.cpus) };
        let [parent, victim] = [self.parent, self.victim].map(|number| number.to_string());
        [parent, cpus, self.open_files.to_string(), victim, kept.join(",")]
    }

    fn from_args(args: &[OsString]) -> Option<Self> {
        let text = |index: usize| args.get(index)?.to_str();
        let cpus = match text(1)? {
            "-" => Vec::new(),
            list => Vec::from_iter(parse(list)?),
        };
        Some(Self {
            parent: text(0)?.parse().ok()?,
            cpus,
            open_files: text(2)?.parse().ok()?,
            victim: text(3)?.parse().ok()?,
            kept: text(4)?.split(',').map(|fd| fd.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

/// Takes `PARENT CPU,… OPEN_FILES VICTIM FD,… FILE NAME ARGS…` and becomes FILE.
pub fn main(args: &[OsString]) -> ExitCode {
    let (Some(orders), Some(file), Some(name)) = (Orders::from_args(args), args.get(5), args.get(6)) else {
        crate::tell("exec-rank is started by `transom agent`, not by people");
        return ExitCode::from(2);
    };
    if let Err(error) = bind(&orders.cpus) {
        crate::tell(&format!("cannot bind a rank to processors {}: {error}", list(&orders.cpus)));
        return ExitCode::from(2);
    }
    prepare(&orders);
    let error = Command::new(file).arg0(name).args(&args[7..]).exec();
    crate::tell(&format!("cannot execute {}: {error}", Path::new(file).display()));
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

fn prepare(orders: &Orders) {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // The agent may have died before that took hold.
    if nix::unistd::getppid().as_raw() != orders.parent {
        std::process::exit(1);
    }
    // Where Yama restricts debuggers to ancestors, the agent's helper for `transom where` is none; elsewhere this fails, and is not needed.
    if let Some(agent) = rustix::process::Pid::from_raw(orders.parent) {
        let _ = set_ptracer(PTracer::ProcessID(agent));
    }
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, orders.open_files.min(hard), hard);
    }
    victim::raise(orders.victim);
    close_all_but(&orders.kept);
}

/// Also fails if the kernel leaves out some: they have gone offline, or out of this process's cpuset, since the agent has looked.
fn bind(cpus: &[usize]) -> nix::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu))?;
    sched_setaffinity(Pid::from_raw(0), &set)?;
    if allowed()? == cpus { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Whatever the agent's parents left open is none of the rank's business.
fn close_all_but(kept: &[RawFd]) {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2 && !kept.contains(fd)) {
        let _ = nix::unistd::close(fd);
    }
}
