//! Hosts and ranks of the batch job that this command is in: Slurm's, Flux's, LSF's, PBS's, Grid Engine's, or the MPI operator's of
//! Kubernetes.

mod files;
mod flux;

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::path::PathBuf;

use crate::hosts::{self, Host, HostError};
use crate::run::plan::{Route, route_to};
use crate::slurm::{self, SlurmError};

/// Values of TRANSOM_ALLOCATION: whoever is there, nobody, or one.
pub const WORDS: [&str; 8] = ["auto", "none", "slurm", "flux", "lsf", "pbs", "sge", "kubernetes"];
const VARIABLE: &str = "TRANSOM_ALLOCATION";

/// Who has given the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Slurm.
    Slurm,
    /// Flux, where this command is in an instance that a job has of its own (`flux batch`, `flux alloc`).
    Flux,
    /// IBM's Load Sharing Facility.
    Lsf,
    /// PBS, of any make, and Torque.
    Pbs,
    /// Grid Engine, in a parallel environment.
    GridEngine,
    /// The MPI operator of Kubernetes, in the pod of the launcher.
    Kubernetes,
}

impl System {
    /// In the order in which they are looked for: one may run inside of another, which then is behind it.
    const ALL: [Self; 6] =
        [Self::Flux, Self::Slurm, Self::Lsf, Self::Pbs, Self::GridEngine, Self::Kubernetes];

    fn word(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Flux => "flux",
            Self::Lsf => "lsf",
            Self::Pbs => "pbs",
            Self::GridEngine => "sge",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// The system's own command that runs another on a host of the job, called as `COMMAND… HOST EXECUTABLE ARGUMENTS`, with standard
    /// input and output passed on.
    fn starter(self) -> &'static [&'static str] {
        match self {
            Self::Lsf => &["blaunch"],
            Self::GridEngine => &["qrsh", "-inherit"],
            // PBS's pbs_tmrsh passes no output on, and flux exec wants the numbers of brokers.
            Self::Slurm | Self::Flux | Self::Pbs | Self::Kubernetes => &[],
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slurm => "Slurm",
            Self::Flux => "Flux",
            Self::Lsf => "LSF",
            Self::Pbs => "PBS",
            Self::GridEngine => "Grid Engine",
            Self::Kubernetes => "Kubernetes (MPI operator)",
        })
    }
}

/// An allocation that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Whose.
    pub system: System,
    /// What said which hosts.
    pub source: String,
    /// Its hosts, each with what ranks it takes.
    pub hosts: Vec<Host>,
    /// How many ranks the job asked for, if that is known apart from the hosts.
    pub tasks: Option<u32>,
    /// Of a heterogeneous job of Slurm's: in which of its components each host is.
    pub components: HashMap<String, u32>,
}

/// Why an allocation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AllocationError {
    /// Slurm's.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// What should say the hosts is no such thing.
    #[error(
        "{system} job: {error}; give --hosts or --hostfile, or set {VARIABLE}=none to do without {system}"
    )]
    Hosts {
        /// Whose job.
        system: System,
        /// What is wrong.
        error: HostError,
    },
    /// A command of the system does not do its work.
    #[error(
        "{system} job: `{command}`: {why}; give --hosts or --hostfile, or set {VARIABLE}=none to do without {system}"
    )]
    Command {
        /// Whose job.
        system: System,
        /// What was called.
        command: String,
        /// What came of it.
        why: String,
    },
    /// The one that was asked for is not there.
    #[error("{VARIABLE}={word}: this command is in no job of {system} ({needed} not set)")]
    Missing {
        /// What was asked for.
        word: &'static str,
        /// Whose job.
        system: System,
        /// By what it would be known.
        needed: &'static str,
    },
    /// The setting is wrong.
    #[error("{VARIABLE}={0:?} is none of auto, none, slurm, flux, lsf, pbs, sge, kubernetes")]
    Setting(String),
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The allocation, if there is one.
///
/// # Errors
/// There is one, and it cannot be used.
pub fn find() -> Result<Option<Allocation>, AllocationError> {
    let word = variable(VARIABLE).map_or_else(|| "auto".to_owned(), |word| word.trim().to_owned());
    match word.as_str() {
        "none" => Ok(None),
        "auto" => {
            for system in System::ALL {
                if let Some(allocation) = of(system)? {
                    return Ok(Some(allocation));
                }
            }
            Ok(None)
        }
        word => {
            let named = System::ALL.into_iter().find(|system| system.word() == word);
            let system = named.ok_or_else(|| AllocationError::Setting(word.to_owned()))?;
            let missing = || AllocationError::Missing { word: system.word(), system, needed: needed(system) };
            of(system)?.ok_or_else(missing).map(Some)
        }
    }
}

/// Whether this command is in a job of any, without a look at its hosts.
pub fn is_there() -> bool {
    let named = variable(VARIABLE).filter(|word| word.trim() != "auto");
    let has = |system: &System| marks(*system).iter().all(|name| variable(name).is_some());
    named.map_or_else(|| System::ALL.iter().any(has), |word| word.trim() != "none")
}

/// The variables by which a job is known.
fn marks(system: System) -> &'static [&'static str] {
    match system {
        System::Slurm => &["SLURM_JOB_ID", "SLURM_JOB_NODELIST"],
        // A task of `flux run` has FLUX_JOB_ID, and is no place to start others from.
        System::Flux => &["FLUX_URI", "FLUX_ENCLOSING_ID"],
        System::Lsf => &["LSB_JOBID"],
        System::Pbs => &["PBS_JOBID", "PBS_NODEFILE"],
        System::GridEngine => &["JOB_ID", "PE_HOSTFILE"],
        System::Kubernetes => &["K_MPI_JOB_ROLE"],
    }
}

fn needed(system: System) -> &'static str {
    match system {
        System::Slurm => "SLURM_JOB_ID, SLURM_JOB_NODELIST",
        System::Flux => "FLUX_URI, FLUX_ENCLOSING_ID",
        System::Lsf => "LSB_JOBID, and LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS or LSB_HOSTS",
        System::Pbs => "PBS_JOBID, PBS_NODEFILE",
        System::GridEngine => "JOB_ID, PE_HOSTFILE",
        System::Kubernetes => "K_MPI_JOB_ROLE=launcher",
    }
}

fn of(system: System) -> Result<Option<Allocation>, AllocationError> {
    if marks(system).iter().any(|name| variable(name).is_none()) {
        return Ok(None);
    }
    let found = match system {
        System::Slurm => {
            let Some(found) = slurm::allocation()? else { return Ok(None) };
            let slurm::Found { list, hosts, tasks, components } = found;
            let source = format!("SLURM_JOB_NODELIST={list}");
            return Ok(Some(Allocation { system, source, hosts, tasks, components }));
        }
        System::Flux => return flux::allocation().map(Some),
        System::Lsf => lsf(),
        System::Pbs => variable("PBS_NODEFILE").map(|file| from_file("PBS_NODEFILE", &file, files::nodes)),
        System::GridEngine => {
            variable("PE_HOSTFILE").map(|file| from_file("PE_HOSTFILE", &file, files::grid_engine))
        }
        System::Kubernetes => kubernetes(),
    };
    let Some(found) = found else { return Ok(None) };
    let (source, hosts) = found.map_err(|error| AllocationError::Hosts { system, error })?;
    Ok(Some(Allocation { system, source, hosts, tasks: None, components: HashMap::new() }))
}

type Found = Result<(String, Vec<Host>), HostError>;

fn from_file(name: &str, file: &str, read: fn(&str, &str) -> Result<Vec<Host>, HostError>) -> Found {
    let source = format!("{name}={file}");
    let text = std::fs::read_to_string(file).map_err(|e| HostError::Unread(source.clone(), e.to_string()))?;
    let hosts = read(&text, &source)?;
    Ok((source, hosts))
}

/// A host for each slot in a file, or pairs of a host and its slots (LSF leaves the latter out where it grows too long), or a host for
/// each slot.
fn lsf() -> Option<Found> {
    if let Some(file) = variable("LSB_DJOB_HOSTFILE") {
        return Some(from_file("LSB_DJOB_HOSTFILE", &file, files::nodes));
    }
    let of = |name: &str, read: fn(&str, &str) -> Result<Vec<Host>, HostError>| {
        let text = variable(name)?;
        Some(read(&text, name).map(|hosts| (name.to_owned(), hosts)))
    };
    of("LSB_MCPU_HOSTS", files::pairs).or_else(|| of("LSB_HOSTS", files::words))
}

/// The operator tells the file to the MPI that it was told of, in the way of that one.
fn kubernetes() -> Option<Found> {
    const NAMES: [&str; 3] = ["OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"];
    if variable("K_MPI_JOB_ROLE").is_none_or(|role| role != "launcher") {
        return None;
    }
    let named = NAMES.into_iter().find_map(|name| Some((name, variable(name)?)));
    let (source, file) = match named {
        Some((name, file)) => (format!("{name}={file}"), PathBuf::from(file)),
        None => ("/etc/mpi/hostfile".to_owned(), PathBuf::from("/etc/mpi/hostfile")),
    };
    Some(hosts::read_file(&file).map(|hosts| (source, hosts)))
}

/// The ways to the hosts of an allocation.
#[derive(Debug)]
pub struct Ways {
    hosts: std::collections::HashSet<String>,
    own: Option<String>,
    other: Option<Route>,
    components: HashMap<String, u32>,
}

impl Ways {
    /// Those of an allocation; `rsh` is what the user wants to be used outside of Slurm.
    pub fn new(allocation: &Allocation, rsh: Option<&[String]>) -> Self {
        let hosts: std::collections::HashSet<String> =
            allocation.hosts.iter().map(|host| host.name.clone()).collect();
        if allocation.system == System::Slurm {
            let own = env::var("SLURMD_NODENAME").ok();
            let others = hosts.iter().any(|host| own.as_ref() != Some(host));
            let srun = Route::Srun { binds_cpus: others && slurm::binds_cpus(), component: None };
            return Self { hosts, own, other: Some(srun), components: allocation.components.clone() };
        }
        // With a command of the user's, no host is this one: it may be meant for all.
        let own = hosts.iter().find(|host| rsh.is_none() && hosts::is_this(host)).cloned();
        let starter = allocation.system.starter();
        let step = || {
            let is_there = starter.first().is_some_and(|command| crate::program::in_path(command));
            is_there.then(|| Route::Step(starter.iter().map(|word| (*word).to_owned()).collect()))
        };
        let other = match rsh {
            Some(words) => Some(Route::Rsh(words.to_vec())),
            None => step(),
        };
        Self { hosts, own, other, components: HashMap::new() }
    }

    /// The way to a host; `None`: it is not of the allocation.
    pub fn route(&self, host: &str) -> Option<Route> {
        let route = || match &self.other {
            _ if self.own.as_deref() == Some(host) => Route::Local,
            Some(Route::Srun { binds_cpus, .. }) => {
                Route::Srun { binds_cpus: *binds_cpus, component: self.components.get(host).copied() }
            }
            Some(route) => route.clone(),
            None => route_to(host, None),
        };
        self.hosts.contains(host).then(route)
    }
}

/// What `transom info` says.
pub fn describe() -> String {
    match find() {
        Ok(None) => "none: run uses this host alone, or those of --hosts and --hostfile".to_owned(),
        Ok(Some(Allocation { system, source, hosts, tasks, .. })) => {
            let count = match hosts.len() {
                1 => "1 host".to_owned(),
                count => format!("{count} hosts"),
            };
            let slots = hosts::total_slots(&hosts).map_or(String::new(), |slots| format!(", {slots} slots"));
            let tasks = tasks.map_or(String::new(), |tasks| format!(", {tasks} tasks"));
            format!("{system}: {count}{slots}{tasks} ({source})")
        }
        Err(error) => error.to_string(),
    }
}
