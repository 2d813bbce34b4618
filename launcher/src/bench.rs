//! `transom bench`: starts the program `bench`, whose options are its own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::Duration;
use std::{env, fs, io};

use clap::{CommandFactory, ValueHint};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::cli::{Cli, MapBy, OnFailure, Reach, RunArgs, Silence, USAGE};
use crate::frames::Input;
use crate::process::is_ignored;
use crate::program;

/// The option of the program that has it measure other MPIs, too.
const RIVALS: &str = "--rivals";
/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// The flags of `transom bench`; all others are the program's.
#[derive(Debug, Clone, clap::Args)]
#[command(disable_help_flag = true, after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// Number of ranks [default: 2, or one for each host, or the slots that hosts are given]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ranks: Option<u32>,
    /// Hosts to measure between, separated by commas; HOST:N gives a host N ranks
    #[arg(long, value_name = "HOST[:N],…", conflicts_with = "hostfile")]
    pub hosts: Option<String>,
    /// How they are reached.
    #[command(flatten)]
    pub reach: Reach,
    /// When a silent host is lost.
    #[command(flatten)]
    pub silence: Silence,
    /// Measurements, and options of the program `bench`, which `transom bench --help` lists
    #[arg(allow_hyphen_values = true, value_name = "NAME… [OPTIONS]", value_hint = ValueHint::FilePath)]
    pub program: Vec<OsString>,
}

/// Starts the program: as ranks of a job, or beside other MPIs, where it starts jobs itself.
pub fn main(args: BenchArgs) -> ExitCode {
    let has = |word: &OsString| word == RIVALS || word.to_string_lossy().starts_with(&format!("{RIVALS}="));
    match args.program.iter().any(has) {
        true => match beside(&args) {
            Ok(mut command) => {
                // It takes this process's place, and is asked to end by the same signals.
                let error = command.exec();
                crate::tell(&format!("{}: {error}", command.get_program().to_string_lossy()));
                ExitCode::from(USAGE)
            }
            Err(why) => {
                crate::tell(&why);
                ExitCode::from(USAGE)
            }
        },
        false => in_rounds(&args),
    }
}

/// A job for each round, since what differs from process to process is to be seen in the samples.
///
/// Between them the program runs here, without a job. It takes in what the last job wrote, and leaves the options of the next, a line
/// each; or it finds that there is no next, and writes the figures where this command was given.
fn in_rounds(args: &BenchArgs) -> ExitCode {
    let folder = match tempfile::Builder::new().prefix("transom-bench-").tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            crate::tell(&format!("making a folder in {}: {error}", env::temp_dir().display()));
            return ExitCode::from(USAGE);
        }
    };
    let [next, part] = ["next", "part.json"].map(|name| folder.path().join(name));
    let between = |options: &[&str]| {
        let mut command = match program_here() {
            Ok(command) => command,
            Err(why) => {
                crate::tell(&why);
                return ExitCode::from(USAGE);
            }
        };
        let status = command.arg("--parts").arg(folder.path()).args(options).args(&args.program).status();
        match status {
            Ok(status) => {
                ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(USAGE))
            }
            Err(error) => {
                crate::tell(&format!("{}: {error}", command.get_program().to_string_lossy()));
                ExitCode::from(USAGE)
            }
        }
    };
    let mut interrupt = match Interrupt::new() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            crate::tell(&format!("noting Ctrl-C: {error}"));
            return ExitCode::from(USAGE);
        }
    };
    loop {
        let code = between(&[]);
        let options = match fs::read_to_string(&next) {
            Ok(options) if code == ExitCode::SUCCESS => options,
            _ => return code,
        };
        let mut job = RunArgs::from(args.clone());
        job.program.splice(1..1, options.lines().map(OsString::from));
        job.stdout_file = Some(part.clone());
        let code = crate::run::main(job);
        if code != ExitCode::SUCCESS || interrupt.has_come() {
            // What was measured until then is told.
            between(&["--over"]);
            return if code == ExitCode::SUCCESS { ExitCode::from(INTERRUPTED) } else { code };
        }
    }
}

/// Ctrl-C between two jobs, unless it was ignored when this process started.
struct Interrupt {
    runtime: tokio::runtime::Runtime,
    signals: Option<Signal>,
}

impl Interrupt {
    fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _inside = runtime.enter();
            let number = SignalKind::interrupt();
            if is_ignored(number.as_raw_value()) { None } else { Some(signal(number)?) }
        };
        Ok(Self { runtime, signals })
    }

    fn has_come(&mut self) -> bool {
        let Self { runtime, signals: Some(signals) } = self else { return false };
        runtime.block_on(async { timeout(Duration::from_millis(1), signals.recv()).await.is_ok() })
    }
}

/// The program beside other MPIs: ranks here, or two on two hosts.
fn beside(args: &BenchArgs) -> Result<process::Command, String> {
    if args.ranks == Some(1) {
        return Err(format!("{RIVALS} measures between ranks: -n 2 or more"));
    }
    if args.reach.hostfile.is_some() {
        return Err(format!("{RIVALS} takes --hosts HOST,HOST, no --hostfile"));
    }
    let mut command = program_here()?;
    // Before the others: a list of folders or names would take them in.
    command.args(args.ranks.iter().flat_map(|ranks| ["--ranks".to_owned(), ranks.to_string()]));
    if let Some(hosts) = &args.hosts {
        command.arg("--hosts").arg(hosts);
        command.args(args.reach.rsh.iter().flat_map(|rsh| ["--rsh", rsh]));
    }
    command.args(&args.program);
    Ok(command)
}

/// The program, started here and not as a rank.
fn program_here() -> Result<process::Command, String> {
    let cwd = env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
    let (exe, path) = (env::current_exe().ok(), env::var_os("PATH"));
    let program = program::find(&bench(), &cwd, exe.as_deref().and_then(Path::parent), path.as_deref());
    program.map(process::Command::new).map_err(|error| error.to_string())
}

impl From<BenchArgs> for RunArgs {
    fn from(BenchArgs { ranks, hosts, reach, silence, program }: BenchArgs) -> Self {
        let ranks = ranks.or_else(|| match &hosts {
            Some(hosts) => one_each(hosts),
            None => reach.hostfile.is_none().then_some(2),
        });
        Self {
            ranks,
            per_node: None,
            export: Vec::new(),
            wdir: None,
            stdin: Input::Rank(0),
            output_dir: None,
            stdout_file: None,
            hosts,
            reach,
            timeout: None,
            silence,
            on_failure: OnFailure::End,
            tag: false,
            bind: None,
            map_by: MapBy::Slot,
            report_bindings: false,
            fan_out: None,
            agents_only: false,
            program: std::iter::once(bench()).chain(program).collect(),
        }
    }
}

/// A rank for each host, two at least, unless it is said how many each of them has.
fn one_each(hosts: &str) -> Option<u32> {
    let count = u32::try_from(hosts.split(',').count()).ok()?;
    let is_said = |host: &str| host.rsplit_once(':').is_some_and(|(_, ranks)| ranks.parse::<u32>().is_ok());
    (!hosts.split(',').all(is_said)).then_some(count.max(2))
}

/// The program: beside `transom`, or where packages have it, apart from what others call so.
fn bench() -> OsString {
    let exe = env::current_exe().ok();
    let packaged = exe.as_deref().and_then(Path::parent).map(|bin| bin.join("../lib/transom/libexec/bench"));
    let packaged = packaged.and_then(|file| file.canonicalize().ok());
    packaged.map_or_else(|| "bench".into(), Into::into)
}

const BENCH_HELP: &str = "\
A job of the program `bench` for each round; in an allocation of a batch system the ranks are on its hosts.
transom bench --list names the measurements; without a name all are made, in about a minute.
transom bench --rivals [DIR…] measures MPI's C interface, in turns with MPIs that are installed there.

Exit code: 0, or with --compare 0 when nothing is slower and 1 when something is; 1 when data was wrong; 2 when it could not be
measured as asked; 130 after Ctrl-C, with what was measured until then.";

/// The command line with the options of `transom bench` before those of the program: clap leaves all to the program that stands after
/// the first that is not its own.
pub fn own_options_first(args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_none_or(|command| command != "bench") {
        return args;
    }
    let cli = Cli::command();
    let options = cli.find_subcommand("bench").into_iter().flat_map(clap::Command::get_opts);
    let names: Vec<(Option<&str>, Option<char>)> =
        options.map(|option| (option.get_long(), option.get_short())).collect();
    let mut args = args.into_iter();
    let (mut own, mut program): (Vec<OsString>, Vec<OsString>) =
        (args.by_ref().take(2).collect(), Vec::new());
    while let Some(arg) = args.next() {
        let word = arg.to_string_lossy().into_owned();
        let (long, value) = word.split_once('=').map_or((&*word, false), |(name, _)| (name, true));
        let is_long = names.iter().any(|(name, _)| name.is_some() && long.strip_prefix("--") == *name);
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let letter = short.and_then(|rest| rest.chars().next());
        if is_long {
            own.push(arg);
            own.extend(if value { None } else { args.next() });
        } else if letter.is_some() && names.iter().any(|(_, name)| *name == letter) {
            // -n4 is -n 4: clap would leave it to the program, too.
            let (name, value) = word.split_at(2);
            own.push(name.into());
            own.extend(if value.is_empty() { args.next() } else { Some(value.into()) });
        } else {
            program.push(arg);
        }
    }
    own.extend(program);
    own
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Command;

    fn bench(words: &[&str]) -> RunArgs {
        args(words).into()
    }

    fn args(words: &[&str]) -> BenchArgs {
        let words = ["transom", "bench"].iter().chain(words).map(OsString::from).collect();
        match Cli::try_parse_from(own_options_first(words)) {
            Ok(Cli { command: Command::Bench(args) }) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn beside_others() {
        for (words, says) in [
            (&["--rivals", "peers", "-n", "1"][..], "-n 2"),
            (&["--rivals", "peers", "--hostfile", "hosts"], "--hosts"),
        ] {
            assert!(beside(&args(words)).is_err_and(|why| why.contains(says)), "{words:?}");
        }
    }

    #[test]
    fn what_is_not_the_launchers_is_the_programs() {
        let job = bench(&[]);
        assert_eq!((job.ranks, job.program), (Some(2), vec!["bench".into()]));
        let job = bench(&["--quick", "-n", "4", "put-latency", "--json", "a.json", "--help"]);
        let words = ["bench", "--quick", "put-latency", "--json", "a.json", "--help"];
        assert_eq!((job.ranks, job.program), (Some(4), words.map(OsString::from).to_vec()));
        assert_eq!(bench(&["-n4"]).ranks, Some(4));
        assert_eq!(bench(&["--sync", "pscw", "--ranks=3"]).ranks, Some(3));
        let job = bench(&["fence", "--hosts", "a:2,b:2"]);
        assert_eq!((job.ranks, job.hosts.as_deref()), (None, Some("a:2,b:2")));
        assert_eq!(bench(&["--hosts", "a,b,c"]).ranks, Some(3));
        assert_eq!(bench(&["--hosts", "a", "-n", "4"]).ranks, Some(4));
        let job = bench(&["fence", "--host-timeout", "60", "--quick"]);
        assert_eq!((job.silence.host_timeout, job.program.len()), (Some(Duration::from_secs(60)), 3));
    }
}
