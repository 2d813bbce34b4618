//! What is to run where, decided before anything is started.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::allocation::{self, Ways};
use crate::cli::{Bind, MapBy, OnFailure, RunArgs, seconds_or_none};
use crate::frames::{Binding, Input, JobSpec, Program, Tree};
use crate::hosts::{self, Block, Host};
use crate::ranks::{MOST, Ranks};
use crate::tree::{self, Branch, Place};

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Route {
    /// As a child of this process.
    Local,
    /// By ssh.
    Ssh,
    /// By another command that is called like ssh, given as words.
    Rsh(Vec<String>),
    /// By a batch system's command, given as words: called with the host, the executable and its arguments.
    Step(Vec<String>),
    /// As a step of this Slurm job.
    Srun {
        /// Whether the cluster binds tasks to processors.
        binds_cpus: bool,
        /// Of a heterogeneous job: which of its components the host is in.
        component: Option<u32>,
    },
}

/// Hosts, ranks and routes of a job.
#[derive(Debug)]
pub struct Plan {
    /// The ranks of each host, and the way there.
    pub hosts: Vec<(Block, Route)>,
    /// The hosts that the launcher reaches itself, each with those that its agent does.
    pub branches: Vec<Branch>,
    /// Of each host: by which other host's agent its own is started, if not by the launcher.
    pub parents: Vec<Option<u32>>,
    /// The most agents on the way to a host.
    pub height: u32,
    /// Number of ranks.
    pub size: u32,
    /// This executable.
    pub exe: PathBuf,
    template: JobSpec,
}

impl Plan {
    /// Plans a job; says why it cannot be.
    pub fn new(args: &RunArgs) -> Result<Self, String> {
        let (mut hosts, routes, mut tasks) = find_hosts(args)?;
        if let Some(ranks) = args.per_node {
            hosts::per_node(&mut hosts, ranks).map_err(|e| e.to_string())?;
            tasks = None;
        }
        let slots = hosts::total_slots(&hosts).and_then(|slots| u32::try_from(slots).ok());
        let mut programs = programs(args)?;
        let of_programs = programs.iter().map(|program| program.count).sum();
        let size = if programs.len() > 1 { of_programs } else { args.ranks.or(tasks).or(slots).unwrap_or(1) };
        if let [only] = &mut programs[..] {
            only.count = size;
        }
        let blocks = hosts::place(&hosts, size, args.map_by == MapBy::Node).map_err(|e| e.to_string())?;
        if let Input::Rank(rank) = args.stdin
            && rank >= size
        {
            return Err(format!("--stdin {rank}: the job's ranks are 0 to {}", size - 1));
        }
        let fan_out = fan_out(args, &blocks, &routes)?;
        let exe = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}"))?;
        let mut cwd = std::env::current_dir().map_err(|e| format!("working directory: {e}"))?;
        let mut env = environment();
        if let Some(folder) = &args.wdir {
            cwd.push(folder);
            set(&mut env, "PWD".into(), cwd.clone().into());
        }
        let exported = args.export.iter().map(|text| export(text, &mut env)).collect::<Result<_, _>>()?;
        let template = JobSpec {
            size,
            ranks: Ranks::default(),
            hosts: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
            kvs: format!("transom_{}", std::process::id()),
            mapping: hosts::process_mapping(&blocks),
            cwd: cwd.into(),
            programs,
            env,
            exported,
            stdin: args.stdin,
            remote: false,
            binding: binding(args)?,
            notify: args.on_failure == OnFailure::Notify,
            silence_ms: u64::try_from(host_timeout(args)?.as_millis()).unwrap_or(u64::MAX),
            tree: Tree {
                fan_out,
                exe: exe.clone().into(),
                connect_ms: u64::try_from(args.reach.connect_timeout.as_millis()).unwrap_or(u64::MAX),
                ..Tree::default()
            },
        };
        let place = |(index, block): (u32, Block)| Place { index, route: routes(&block.host), block };
        let places: Vec<Place> = (0..).zip(blocks).map(place).collect();
        let hosts = places.iter().map(|place| (place.block.clone(), place.route.clone())).collect();
        let (parents, height) = (tree::parents(&places, fan_out), tree::height(&places, fan_out));
        Ok(Self { hosts, branches: tree::split(places, fan_out), parents, height, size, exe, template })
    }

    /// Whether a host's agent is that of another one, or is below it.
    pub fn is_within(&self, host: usize, other: usize) -> bool {
        let mut at = Some(host);
        while let Some(host) = at.filter(|host| *host != other) {
            at = self.parents.get(host).copied().flatten().map(|parent| parent as usize);
        }
        at.is_some()
    }

    /// How long a host may be silent; zero: for ever.
    pub fn silence(&self) -> Duration {
        Duration::from_millis(self.template.silence_ms)
    }

    /// The hosts, by number, that the launcher sends standard input to: of their ranks, or of those below them, some read it.
    pub fn readers(&self) -> impl Iterator<Item = usize> + '_ {
        let reads = |branch: &&Branch| branch.places().any(|place| place.reads(self.template.stdin));
        self.branches.iter().filter(reads).map(|branch| branch.head.index as usize)
    }

    /// The orders for one host that the launcher reaches itself.
    pub fn spec(&self, index: usize) -> Option<JobSpec> {
        let branch = self.branches.iter().find(|branch| branch.head.index as usize == index)?;
        Some(branch.spec(&self.template))
    }
}

/// Seconds that a host may be silent, if nothing else is said.
const HOST_TIMEOUT: Duration = Duration::from_secs(10);

fn host_timeout(args: &RunArgs) -> Result<Duration, String> {
    match (args.silence.host_timeout, std::env::var("TRANSOM_HOST_TIMEOUT")) {
        (Some(limit), _) => Ok(limit),
        (None, Err(_)) => Ok(HOST_TIMEOUT),
        (None, Ok(text)) => {
            seconds_or_none(text.trim()).map_err(|why| format!("TRANSOM_HOST_TIMEOUT={text:?}: {why}"))
        }
    }
}

/// How many hosts are reached from one, if nothing else is said.
const FAN_OUT: u32 = 32;

fn fan_out(args: &RunArgs, blocks: &[Block], routes: &Routes) -> Result<u32, String> {
    // What agents merge on the way up takes a rank that died for the end. And batch systems have no other host start something, nor
    // Slurm one of another component.
    let of_launcher = |route| matches!(route, Route::Step(_) | Route::Srun { component: Some(_), .. });
    let by_system = blocks.iter().any(|block| of_launcher(routes(&block.host)));
    if args.on_failure == OnFailure::Notify || by_system {
        return Ok(0);
    }
    let of_variable = || std::env::var("TRANSOM_FAN_OUT").ok();
    match (args.fan_out, of_variable()) {
        (Some(number), _) => Ok(number),
        (None, None) => Ok(FAN_OUT),
        (None, Some(text)) => {
            text.trim().parse().map_err(|_| format!("TRANSOM_FAN_OUT={text:?} is not a number of hosts"))
        }
    }
}

fn binding(args: &RunArgs) -> Result<Binding, String> {
    let by_numa = args.map_by == MapBy::Numa;
    let to = args.bind.unwrap_or(if by_numa { Bind::Numa } else { Bind::None });
    if by_numa && to == Bind::None {
        return Err(
            "--map-by numa says to which NUMA node each rank is bound, and --bind none that none is".into()
        );
    }
    Ok(Binding { to, by_numa, report: args.report_bindings })
}

/// `A ARGS : -n N B ARGS`: the programs of a job. A colon without a number of ranks behind it is an argument like any other.
fn programs(args: &RunArgs) -> Result<Vec<Program>, String> {
    let words = &args.program;
    let is_start =
        |at: &usize| words[*at] == ":" && words.get(at + 1).is_some_and(|word| number_word(word).is_some());
    let starts: Vec<usize> = (1..words.len()).filter(is_start).collect();
    let first_end = starts.first().copied().unwrap_or(words.len());
    let mut programs = vec![Program { count: args.ranks.unwrap_or(0), argv: words[..first_end].to_vec() }];
    if !starts.is_empty() && args.ranks.is_none() {
        return Err("several programs (A : -n N B): give the first its number of ranks, too (-n)".into());
    }
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(words.len());
        let mut words = words[start + 1..end].iter();
        let inline = words.next().and_then(|word| number_word(word)).flatten();
        let number = inline.or_else(|| words.next().map(|word| word.to_string_lossy().into_owned()));
        let number = number.unwrap_or_default();
        let count = number.parse().ok().filter(|count| (1..=MOST).contains(count));
        let count =
            count.ok_or_else(|| format!(": -n {number:?}: is no number of ranks from 1 to {MOST}"))?;
        let argv: Vec<OsString> = words.cloned().collect();
        match argv.first() {
            None => return Err(format!(": -n {number}: no program behind it")),
            Some(word) if word.as_bytes().starts_with(b"-") => {
                return Err(format!(
                    ": -n {number} {word:?}: options other than -n stand before the first program"
                ));
            }
            Some(_) => programs.push(Program { count, argv }),
        }
    }
    let total: u64 = programs.iter().map(|program| u64::from(program.count)).sum();
    if total > u64::from(MOST) {
        return Err(format!("{total} ranks: the most are {MOST}"));
    }
    Ok(programs)
}

/// Whether a word is `-n`, by any of its names; with the number if that is in it.
fn number_word(word: &OsStr) -> Option<Option<String>> {
    let text = word.to_str()?;
    if ["-n", "-np", "--np", "--ranks"].contains(&text) {
        return Some(None);
    }
    let inside = text
        .strip_prefix("--ranks=")
        .or_else(|| text.strip_prefix("-n").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    inside.map(|number| Some(number.to_owned()))
}

/// Carries out `-x VAR[=VALUE]`; gives VAR.
fn export(text: &OsStr, env: &mut Vec<(OsString, OsString)>) -> Result<OsString, String> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
        None => (text, None),
    };
    let shown = text.to_string_lossy();
    if name.is_empty() {
        return Err(format!("-x {shown}: no name of a variable"));
    }
    if is_launchers(name) {
        return Err(format!("-x {shown}: this variable is the launcher's own to set"));
    }
    let missing = || format!("-x {shown}: this command has no such variable; -x {shown}=VALUE sets it");
    let value = value.or_else(|| std::env::var_os(name)).ok_or_else(missing)?;
    set(env, name.to_owned(), value);
    Ok(name.to_owned())
}

fn set(env: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    env.retain(|(known, _)| *known != name);
    env.push((name, value));
}

type Routes = Box<dyn Fn(&str) -> Route>;

fn find_hosts(args: &RunArgs) -> Result<(Vec<Host>, Routes, Option<u32>), String> {
    let named = match (&args.hosts, &args.reach.hostfile) {
        (Some(list), _) => Some(hosts::parse_list(list)),
        (_, Some(file)) => Some(hosts::read_file(file)),
        (None, None) => None,
    };
    let rsh = args.reach.rsh.clone().or_else(|| std::env::var("TRANSOM_RSH").ok());
    let rsh = rsh.as_deref().map(words).transpose()?;
    if let Some(hosts) = named.transpose().map_err(|e| e.to_string())? {
        // Without an answer of the batch system, hosts are reached as they are outside of it.
        let allocation = if rsh.is_none() { allocation::find().ok().flatten() } else { None };
        let ways = allocation.map(|allocation| Ways::new(&allocation, None));
        let route = move |host: &str| {
            let way = ways.as_ref().and_then(|ways| ways.route(host));
            way.unwrap_or_else(|| route_to(host, rsh.as_deref()))
        };
        return Ok((hosts, Box::new(route), None));
    }
    if let Some(allocation) = allocation::find().map_err(|e| e.to_string())? {
        let ways = Ways::new(&allocation, rsh.as_deref());
        let mut hosts = allocation.hosts;
        let slots = hosts::total_slots(&hosts);
        // More ranks than the job's tasks: it is the user's allocation, so that only the spread is decided here.
        if args.ranks.zip(slots).is_some_and(|(ranks, slots)| u64::from(ranks) > slots) {
            hosts.iter_mut().for_each(|host| host.slots = None);
        }
        let route = move |host: &str| ways.route(host).unwrap_or(Route::Local);
        return Ok((hosts, Box::new(route), allocation.tasks));
    }
    let here = Host { name: crate::process::host_name(), slots: None };
    Ok((vec![here], Box::new(|_| Route::Local), None))
}

/// The way to a host outside of batch systems.
pub(crate) fn route_to(host: &str, rsh: Option<&[String]>) -> Route {
    match rsh {
        Some(words) => Route::Rsh(words.to_vec()),
        None if hosts::is_local(host) => Route::Local,
        None => Route::Ssh,
    }
}

/// A command as words.
pub(crate) fn words(command: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err("--rsh: no command in it".to_owned()) } else { Ok(words) }
}

/// Whether launchers set a variable to tell ranks of themselves.
fn is_launchers(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let own = [
        "TRANSOM_HOST_COUNT",
        "TRANSOM_HOST_NUMBER",
        "TRANSOM_LOCAL_RANK",
        "TRANSOM_LOCAL_SIZE",
        "TRANSOM_TERMINAL_WIDTH",
    ];
    name.starts_with("PMI_") || name.starts_with("PMIX_") || own.contains(&&*name)
}

/// This process's environment without what an outer launcher put into it.
fn environment() -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| !is_launchers(name)).collect();
    let size = std::io::stderr().is_terminal().then(|| terminal_size::terminal_size_of(std::io::stderr()));
    if let Some(Some((width, _))) = size {
        env.push(("TRANSOM_TERMINAL_WIDTH".into(), width.0.to_string().into()));
    }
    env
}
