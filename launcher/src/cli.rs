//! The command line: what may be asked, and what each flag means.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use serde::{Deserialize, Serialize};

use crate::bench::{self, BenchArgs};
use crate::frames::Input;

/// Exit code when the job cannot be started as asked.
pub const USAGE: u8 = 2;

/// One-sided communication as a production runtime.
#[derive(Debug, Parser)]
#[command(name = "transom", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `transom`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a program as the ranks of one job, and end with its exit code
    Run(RunArgs),
    /// Measure what the network gives one-sided programs: latency, bandwidth, synchronisation and more, beside their limits
    Bench(BenchArgs),
    /// List your jobs that run on this host
    Ps(PsArgs),
    /// Say what each rank of a running job waits for, since when, and who holds it up
    #[command(after_help = WHERE_HELP)]
    Where(WhereArgs),
    /// Show what the ranks of a running job do: states, processor time, memory, operations and bytes per second by path
    #[command(after_help = TOP_HELP)]
    Top(TopArgs),
    /// Say what this host (or others) has for jobs: limits, shared memory, network, atomics, settings
    Info(InfoArgs),
    /// Try what jobs rely on: when data is visible, what atomics exclude, limits; and say what to do
    Doctor(DoctorArgs),
    /// Say what each setting is, where that comes from (environment, files, default), what it means and which values it may have
    #[command(after_help = CONFIG_HELP)]
    Config(ConfigArgs),
    /// Print a script that completes this command's words in a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell that is to read it
        shell: Shell,
    },
    /// Write the manual pages, transom.1 and one for each command
    Man {
        /// Folder that they are written to
        #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// How other hosts are reached.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Reach {
    /// File of hosts, one a line: `HOST`, `HOST:N` or `HOST slots=N max_slots=M`; `#` starts a comment
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub hostfile: Option<PathBuf>,
    /// Command that runs a command line on another host, called as `CMD HOST COMMANDLINE` [default: the
    /// variable TRANSOM_RSH, the batch system's own command, or ssh, which is not used for this host itself]
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub rsh: Option<String>,
    /// Seconds to wait for a host to answer
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub connect_timeout: Duration,
}

/// How long other hosts of a job may be silent.
#[derive(Debug, Clone, clap::Args)]
pub struct Silence {
    /// Seconds without a sign of life from another host after which the job is ended; 0: never [default: the variable
    /// TRANSOM_HOST_TIMEOUT, or 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_none)]
    pub host_timeout: Option<Duration>,
}

/// The flags of `transom ps`.
#[derive(Debug, clap::Args)]
pub struct PsArgs {
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The flags of `transom where`.
#[derive(Debug, clap::Args)]
pub struct WhereArgs {
    /// The job, as `transom ps` numbers it [default: the only one]
    pub job: Option<u32>,
    /// Print what the ranks say, as JSON, instead of what follows of it
    #[arg(long)]
    pub json: bool,
}

/// What the lines of `transom top` go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The number of the first rank
    Rank,
    /// Processor time, most first
    Cpu,
    /// Memory, most first
    Memory,
    /// Bytes per second, then operations per second, most first
    Rate,
    /// How long a call has blocked, longest first
    Wait,
}

/// The flags of `transom top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// The job, as `transom ps` numbers it [default: the only one]
    pub job: Option<u32>,
    /// Print one page, of the second that follows, instead of one each second [default where the output is no terminal]
    #[arg(long)]
    pub once: bool,
    /// A line for each rank; without it for each host if the job has more than 16 ranks
    #[arg(long)]
    pub ranks: bool,
    /// What stands first
    #[arg(long, value_enum, default_value = "rank")]
    pub sort: Sort,
    /// Print what has been counted since the job began as OpenMetrics text, and end
    #[arg(long, conflicts_with_all = ["once", "ranks", "sort"])]
    pub metrics: bool,
}

/// The flags of `transom info`.
#[derive(Debug, Default, clap::Args)]
pub struct InfoArgs {
    /// Hosts to ask, separated by commas, one after the other [default: this one]
    #[arg(long, value_name = "HOST,…", conflicts_with = "hostfile")]
    pub hosts: Option<String>,
    /// How they are reached.
    #[command(flatten)]
    pub reach: Reach,
    /// Show what this libfabric provider does of each atomic operation; may be given several times [default: the
    /// provider that a job would use]
    #[arg(long, value_name = "PROVIDER")]
    pub atomics: Vec<String>,
}

/// The flags of `transom config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Say all of one setting, by its variable or its name in files: also what is set and does not count
    #[arg(long, value_name = "NAME")]
    pub explain: Option<String>,
}

/// The flags of `transom doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code: 0 when all that Transom relies on was seen to hold, 1 otherwise.")]
pub struct DoctorArgs {
    /// Examine this libfabric provider too; may be given several times [default: those that jobs would use]
    #[arg(long, value_name = "NAME")]
    pub provider: Vec<String>,
    /// Rounds of each test, however long they take [default: what 0.2 s allow, at most 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
    /// Ranks of the largest job that the limits are to be enough for
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ranks: u32,
    /// Say what it means, too, that a property holds
    #[arg(long, short)]
    pub verbose: bool,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    pub json: bool,
    /// Examine this subject only, in this process, and print verdicts
    #[arg(long, value_name = "SUBJECT", hide = true)]
    pub subject: Option<String>,
}

/// What each rank is bound to. Only processors count that this command's agent on the host may use (cpusets, taskset).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Bind {
    /// A core of its own with all its hardware threads; where a host has more ranks than cores, a hardware thread of its own; where it
    /// has more ranks than those, nothing, and that is said
    Core,
    /// The processors of one socket, which the ranks of a host share out evenly, neighbours together
    Socket,
    /// The processors of one NUMA node, shared out in the same way
    Numa,
    /// Nothing: a rank runs where the kernel puts it
    None,
}

/// How ranks are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MapBy {
    /// Consecutive ranks are on the same host, as many as it has slots, and next to each other where they are bound
    Slot,
    /// Consecutive ranks are on different hosts, in turn
    Node,
    /// As slot; of the ranks of a host, consecutive ones are bound to different NUMA nodes, in turn
    Numa,
}

/// What the death of a rank means to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// The job ends
    End,
    /// The other ranks are told, and go on: their calls that need the dead rank return errors
    Notify,
}

/// The flags of `transom run`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct RunArgs {
    /// Number of ranks [default: the slots of the hosts, the number of tasks of the batch job, or 1]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ranks: Option<u32>,
    /// Number of ranks on each host; without -n as many as the hosts then take
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub per_node: Option<u32>,
    /// Hosts to run on, separated by commas; HOST:N gives a host N ranks
    #[arg(long, value_name = "HOST[:N],…", conflicts_with = "hostfile")]
    pub hosts: Option<String>,
    /// How they are reached.
    #[command(flatten)]
    pub reach: Reach,
    /// Set a variable for the ranks, or pass on this command's, also one that belongs to a host (HOSTNAME, SSH_…) and that ranks on
    /// other hosts would have from there; may be given several times
    #[arg(short = 'x', value_name = "VAR[=VALUE]")]
    pub export: Vec<OsString>,
    /// Working directory of the ranks, on every host; a PROGRAM with a slash is looked for from there [default: this command's]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub wdir: Option<PathBuf>,
    /// Who reads this command's standard input: a rank, all (each gets all of it, as fast as the slowest reads), or none
    #[arg(long, value_name = "RANK|all|none", default_value = "0")]
    pub stdin: Input,
    /// Write what ranks print to files in this folder of this host, DIR/rank-N.out and DIR/rank-N.err, instead of passing it on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "tag")]
    pub output_dir: Option<PathBuf>,
    /// A file that gets the ranks' standard output in place of this command's.
    #[arg(skip)]
    pub stdout_file: Option<PathBuf>,
    /// Seconds after which the job is ended with exit code 124, and what its ranks wait for is printed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// When a silent host is lost.
    #[command(flatten)]
    pub silence: Silence,
    /// What follows when a rank is killed, or exits without leaving the job
    #[arg(long, value_enum, value_name = "end|notify", default_value = "end")]
    pub on_failure: OnFailure,
    /// Hosts that are reached from one: if there are more, the agents of some start those of the others (so each of these hosts must
    /// reach others as this one does); 0: all are reached from here [default: the variable TRANSOM_FAN_OUT, or 32]
    #[arg(long, value_name = "N")]
    pub fan_out: Option<u32>,
    /// Start the agents, but no rank; say how long it took and how they are connected; end
    #[arg(long, hide = true)]
    pub agents_only: bool,
    /// Put `[RANK] ` before each line of output
    #[arg(long)]
    pub tag: bool,
    /// What of a host's processors each rank is bound to [default: none; with --map-by numa: numa]
    #[arg(long, value_enum, value_name = "core|socket|numa|none")]
    pub bind: Option<Bind>,
    /// How ranks are spread over the hosts and over a host's NUMA nodes
    #[arg(long, value_enum, value_name = "slot|node|numa", default_value = "slot")]
    pub map_by: MapBy,
    /// Print a table of the processors that each rank is bound to, on standard error, before the ranks start
    #[arg(long)]
    pub report_bindings: bool,
    /// The program and its arguments. Without a slash it is looked for beside `transom`, then in PATH
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]", value_hint = ValueHint::CommandWithArguments)]
    pub program: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Inside a batch job the hosts are those of the job, if none are named: Slurm's, Flux's (flux batch, flux alloc), LSF's
(LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS), PBS's (PBS_NODEFILE), Grid Engine's (PE_HOSTFILE), those of Kubernetes' MPI operator.
`transom info` says which were found, TRANSOM_ALLOCATION=none that none count. Agents are started by srun, blaunch (LSF) or
qrsh -inherit (Grid Engine), on hosts of the job that --hosts names, too; elsewhere by ssh, or by --rsh.
Several programs are one job: transom run -n 2 A ARGS : -n 1 B ARGS. Ranks 0 and 1 are A, rank 2 is B.
Ranks get this command's environment (PATH too), working directory and signals; rank 0 its standard input (--stdin).
In front of their LD_LIBRARY_PATH are Transom's libraries of MPI: programs run that were built for MPI-5's ABI
(libmpi_abi.so.1) or MPICH's (libmpi.so.12, libmpich.so.12). MPI4PY_LIBMPI names the latter to mpi4py unless it is set.

Exit code: 0 when every rank ended with 0; else that of the first rank that failed (with --on-failure notify, too, whatever
the others did), 128 + N for signal N;
124 after --timeout, 127 when there is no such program, 126 when it cannot be executed, 2 when the job could not
be started as asked.";

const WHERE_HELP: &str = "\
Ask on the host where `transom run` was started, as the same user; ranks of all hosts are told of, and
stopped ones, too. Calls are noted that block for longer than 0.05 s. A rank that waits for nothing
computes, or sleeps, outside of Transom. Functions are named where the program has symbols, lines where
it was compiled with -g.

Exit code: 0 when the job has answered, 2 when there is none or it does not.";

const TOP_HELP: &str = "\
Operations are counted of windows with the hint transom_explain, and of all in jobs that are started with
TRANSOM_EXPLAIN=count; counting costs every operation some nanoseconds. Paths: direct, cpu and stripe are loads,
stores and atomics in shared memory; attach is cross-memory attach; others have their transport's name in front.
Ask on the host where `transom run` was started, as the same user.

Exit code: 0 when the job has answered, 2 when there is none or it does not.";

const COMPLETIONS_HELP: &str = "\
To have them in every shell that starts (of zsh, where the folder is one of its fpath):
    transom completions bash > ~/.local/share/bash-completion/completions/transom
    transom completions zsh > ~/.zfunc/_transom
    transom completions fish > ~/.config/fish/completions/transom.fish";

const CONFIG_HELP: &str = "\
The first of these counts that has a setting:
    the environment                TRANSOM_TCP_SILENCE=20
    the user's file                $XDG_CONFIG_HOME/transom.toml, else
                                   ~/.config/transom.toml
    the system's file              /etc/transom.toml, or what TRANSOM_CONFIG
                                   names; none: no file is read at all
In files names are in small letters and have no TRANSOM_ in front:
    tcp_silence = 20
    transport = [\"shm\", \"tcp\"]

run, bench, info and doctor read the files, and ranks on all hosts get what
run has read, as their environment. Ranks that other launchers start (srun,
MPICH's mpiexec) have the environment only.

Exit code: 0; 1 when a variable has a value that it may not have; 2 when a file
is wrong, or cannot be read.";

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() && number <= 1e9 => Ok(duration),
        _ => Err("must be more than 0 and at most 1000000000 seconds".to_owned()),
    }
}

/// A number of seconds; zero: for ever.
pub fn seconds_or_none(text: &str) -> Result<Duration, String> {
    if text.parse() == Ok(0.0) { Ok(Duration::ZERO) } else { seconds(text) }
}

/// Parses a command line and does what it says.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let parsed = Cli::try_parse_from(bench::own_options_first(args));
    let reads_files = |command: &Command| {
        matches!(command, Command::Run(_) | Command::Bench(_) | Command::Info(_) | Command::Doctor(_))
    };
    if parsed.as_ref().is_ok_and(|cli| reads_files(&cli.command))
        && let Err(message) = crate::config::apply()
    {
        crate::tell(&message);
        return ExitCode::from(USAGE);
    }
    match parsed {
        Ok(Cli { command: Command::Run(args) }) => crate::run::main(args),
        Ok(Cli { command: Command::Bench(args) }) => bench::main(args),
        Ok(Cli { command: Command::Ps(args) }) => crate::hang::ask::ps(&args),
        Ok(Cli { command: Command::Where(args) }) => crate::hang::ask::whereabouts(&args),
        Ok(Cli { command: Command::Top(args) }) => crate::top::main(&args),
        Ok(Cli { command: Command::Info(args) }) => crate::info::main(&args),
        Ok(Cli { command: Command::Doctor(args) }) => crate::doctor::main(&args),
        Ok(Cli { command: Command::Config(args) }) => crate::config::main(&args),
        Ok(Cli { command: Command::Completions { shell } }) => crate::manual::completions(shell),
        Ok(Cli { command: Command::Man { folder } }) => crate::manual::pages(&folder),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
        }
    }
}
