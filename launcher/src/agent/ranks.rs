//! Starting ranks, and signalling them.

use std::ffi::OsString;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::WaitOptions;
use transom::waits::{ON_FAILURE, VARIABLE};

use super::spawn::{Spawned, spawn};
use super::topology::{Topology, list};
use super::victim;
use crate::cli::Bind;
use crate::exec_rank::Orders;
use crate::frames::{Bound, Input, JobSpec, Status, ToLauncher, Unit};
use crate::hang::look::Pages;
use crate::mpi;
use crate::program::{self, ProgramError};
use crate::room;

/// Variables that belong to a host: on another host its own value holds, not the launcher's.
const OF_HOST: [&str; 12] = [
    "HOSTNAME",
    "HOST",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SLURMD_NODENAME",
    "SLURM_NODEID",
    "SLURM_TOPOLOGY_ADDR",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_TASK_PID",
];

/// The PMI socket's number in a rank; behind it those of its pages. What starts containers passes on descriptors from 3 on.
const FIRST_FD: RawFd = 3;

/// A rank of this host.
#[derive(Debug)]
pub struct Rank {
    /// Its process, and the process group of the same number.
    pub pid: Pid,
    /// How it ended, once it has.
    pub status: Option<Status>,
    /// It was asked to end, as the job does.
    pub asked: bool,
}

impl Rank {
    /// Whether it has ended by now; asks the kernel if that is not known yet.
    pub fn poll(&mut self) -> Option<Status> {
        if self.status.is_none() {
            let child = rustix::process::Pid::from_raw(self.pid.as_raw());
            self.status = match rustix::process::waitpid(child, WaitOptions::NOHANG) {
                Ok(None) => None,
                Ok(Some((_, status))) => Some(ExitStatus::from_raw(status.as_raw()).into()),
                // Buried by `kill_descendants`, which had killed it.
                Err(_) => Some(Status::Signal { number: Signal::SIGKILL as i32, core: false }),
            };
        }
        self.status
    }

    /// Sends a signal to the rank and the processes that it started, unless it has ended.
    pub fn signal(&self, number: i32) {
        let Ok(signal) = Signal::try_from(number) else { return };
        // A program that left its group for a session of its own still has its process number.
        if self.status.is_none() && kill(Pid::from_raw(-self.pid.as_raw()), signal).is_err() {
            let _ = kill(self.pid, signal);
        }
    }
}

/// How ranks are started on this host.
#[derive(Debug)]
pub struct Starter {
    spec: JobSpec,
    exe: PathBuf,
    /// Of each program; empty if no rank of this host is that.
    files: Vec<PathBuf>,
    cpus: Vec<Vec<usize>>,
    bindings: Option<ToLauncher>,
    open_files: u64,
    victim: i32,
    pages: Option<Arc<Pages>>,
}

/// The agent's ends of what connects it to a rank.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub rank: Rank,
    /// Its PMI socket.
    pub pmi: OwnedFd,
    /// Its standard input, if it reads the launcher's.
    pub stdin: Option<OwnedFd>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

impl Starter {
    /// Checks that the job can start here; says why not, and with what exit code.
    pub fn new(spec: JobSpec) -> Result<Self, (String, i32)> {
        let cwd = Path::new(&spec.cwd);
        if let Err(e) = std::env::set_current_dir(cwd) {
            return Err((format!("working directory {}: {e}", cwd.display()), 2));
        }
        let exe = std::env::current_exe().map_err(|e| (format!("/proc/self/exe: {e}"), 2))?;
        let path = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let mut files = vec![PathBuf::new(); spec.programs.len()];
        for rank in spec.ranks.iter() {
            let index = spec.program_of(rank);
            let file = files.get_mut(index).filter(|file| file.as_os_str().is_empty());
            let (Some(file), Some(program)) = (file, spec.programs.get(index)) else { continue };
            let name = program.argv.first().ok_or(("no program".to_owned(), 2))?;
            *file = program::find(name, cwd, exe.parent(), path)
                .map_err(|e: ProgramError| (e.to_string(), e.code()))?;
            mpi::check(file).map_err(|message| (message, 2))?;
        }
        let (cpus, bindings) = bind(&spec).map_err(|message| (message, 2))?;
        let open_files = raise_open_files();
        room::for_ranks(spec.ranks.count()).map_err(|message| (message, 2))?;
        let pages = match Pages::new(spec.ranks.count(), if spec.notify { spec.size } else { 0 }) {
            Ok(pages) => Some(Arc::new(pages)),
            Err(error) if spec.notify => {
                let message = format!("--on-failure notify needs a memory file, which ranks read: {error}");
                return Err((message, 2));
            }
            // A host that has no memory files can run the job all the same.
            Err(_) => None,
        };
        Ok(Self { spec, exe, files, cpus, bindings, open_files, victim: victim::more(), pages })
    }

    /// What the launcher is to know of where the ranks run.
    pub fn bindings(&mut self) -> Option<ToLauncher> {
        self.bindings.take()
    }

    /// Where the ranks note what they wait for.
    pub fn pages(&self) -> Option<Arc<Pages>> {
        self.pages.clone()
    }

    /// Number of ranks to start.
    pub fn count(&self) -> u32 {
        self.spec.ranks.count()
    }

    /// Whether ranks of all hosts read standard input.
    pub fn input_is_for_all(&self) -> bool {
        self.spec.stdin == Input::All
    }

    /// Starts the host's rank number `local`.
    ///
    /// Call it from the main thread only: the ranks die with the thread that started them.
    pub fn start(&self, local: u32) -> io::Result<Started> {
        let (ours, theirs) = UnixStream::pair()?;
        let rank = self.rank(local);
        let mut passed = vec![theirs.into()];
        if let Some(pages) = &self.pages {
            passed.extend(pages.pass()?);
        }
        let command = self.command(local, passed.len());
        let Spawned { pid, stdin, stdout, stderr } =
            spawn(&command, self.spec.stdin.is_for(rank), FIRST_FD, &passed)?;
        Ok(Started {
            pmi: ours.into(),
            stdin,
            stdout,
            stderr,
            rank: Rank { pid, status: None, asked: false },
        })
    }

    fn rank(&self, local: u32) -> u32 {
        self.spec.ranks.rank(local).unwrap_or(u32::MAX)
    }

    /// The rank inherits so many descriptors, the first numbers behind the standard streams.
    fn command(&self, local: u32, passed: usize) -> Command {
        let cpus = self.cpus.get(local as usize).cloned().unwrap_or_default();
        let kept: Vec<_> = (FIRST_FD..).take(passed).collect();
        let parent = nix::unistd::getpid().as_raw();
        let waits = kept.get(1..).filter(|rest| !rest.is_empty()).map(numbers);
        let orders = Orders { parent, cpus, open_files: self.open_files, victim: self.victim, kept };
        let mut command = Command::new(&self.exe);
        let program = self.spec.program_of(self.rank(local));
        let (file, argv) = (&self.files[program], &self.spec.programs[program].argv);
        command.arg("exec-rank").args(orders.to_args()).arg(file).args(argv);
        command.env_clear().envs(self.environment(local));
        // What this process has inherited is of another job.
        command.env_remove(VARIABLE).env_remove(ON_FAILURE);
        if self.spec.notify {
            command.env(ON_FAILURE, "notify");
        }
        if let Some(waits) = waits {
            command.env(VARIABLE, waits);
        }
        command
    }

    fn environment(&self, local: u32) -> Vec<(OsString, OsString)> {
        let spec = &self.spec;
        let of_host =
            |name: &OsString| OF_HOST.iter().any(|of_host| name == of_host) && !spec.exported.contains(name);
        let mut env: Vec<_> =
            spec.env.iter().filter(|(name, _)| !(spec.remote && of_host(name))).cloned().collect();
        if spec.remote {
            env.extend(std::env::vars_os().filter(|(name, _)| of_host(name)));
        }
        let own: [(&str, u64); 8] = [
            ("PMI_FD", u64::from(FIRST_FD.unsigned_abs())),
            ("PMI_RANK", u64::from(self.rank(local))),
            ("PMI_SIZE", u64::from(spec.size)),
            ("PMI_SPAWNED", 0),
            ("TRANSOM_HOST_COUNT", u64::from(spec.hosts)),
            ("TRANSOM_HOST_NUMBER", u64::from(spec.tree.index)),
            ("TRANSOM_LOCAL_RANK", u64::from(local)),
            ("TRANSOM_LOCAL_SIZE", u64::from(spec.ranks.count())),
        ];
        env.extend(own.map(|(name, value)| (name.into(), value.to_string().into())));
        mpi::show_libraries(&self.exe, &mut env);
        env
    }
}

fn numbers(fds: &[RawFd]) -> String {
    fds.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",")
}

/// The processors of each rank of this host, none if they are not bound, and what the launcher is to know of that.
fn bind(spec: &JobSpec) -> Result<(Vec<Vec<usize>>, Option<ToLauncher>), String> {
    let binding = spec.binding;
    if binding.to == Bind::None && !binding.report {
        return Ok((Vec::new(), None));
    }
    let topology =
        Topology::here().map_err(|error| format!("which processors ranks may use is not known: {error}"))?;
    let (all, count) = (topology.all(), spec.ranks.count() as usize);
    let places = topology.places(count, binding);
    let unbound = places.unit == Unit::None && binding.to != Bind::None;
    let complaint = unbound.then(|| {
        let own = if all.is_empty() { "none".to_owned() } else { list(&all) };
        format!("no rank is bound: there are {count}, and the processors that they may use are {own}")
    });
    let bound = |(local, rank): (usize, u32)| {
        let cpus = places.cpus.get(local).unwrap_or(&all);
        Bound { rank, unit: places.unit, cpus: list(cpus), names: topology.names(cpus) }
    };
    let ranks = if binding.report { spec.ranks.iter().enumerate().map(bound).collect() } else { Vec::new() };
    let bindings =
        (binding.report || complaint.is_some()).then_some(ToLauncher::Bindings { ranks, complaint });
    Ok((places.cpus, bindings))
}

/// The agent holds four descriptors for each rank. Gives the old soft limit, which the ranks get back.
fn raise_open_files() -> u64 {
    let limits: Result<_, Errno> = getrlimit(Resource::RLIMIT_NOFILE);
    let Ok((soft, hard)) = limits else { return 1024 };
    let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    soft
}
