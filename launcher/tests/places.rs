//! `transom where` says where in its program a rank waits, by function and line; and ranks that are looked at do not notice.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Job, ROLE, TRANSOM, start, transom};
use nix::sys::prctl::set_dumpable;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Pid, geteuid};
use transom::{Result, Sum};
use transom_launcher::hang::Report;

/// What the ranks of the last test watch for.
const STOP: &str = "TRANSOM_TEST_STOP";
/// Time for a job to come to where it is to be found, on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Questions to a job that is busy, and looks at each of its ranks besides, over each transport.
const QUESTIONS: usize = 20;
const LOOKS: usize = 1000;
/// Looks by one process.
const AT_ONCE: usize = 100;

fn exchange(job: &transom::Job) -> Result<()> {
    job.barrier() // at: exchange
}

fn solve() -> ! {
    let mut number = 1u64;
    loop {
        number = std::hint::black_box(number).wrapping_mul(3);
    }
}

fn idle() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600)); // at: idle
    }
}

/// The innermost function that is the program's counts, also where Transom has called it.
fn closed(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    window.lock_all(|_| {
        job.recv::<u8>((job.rank() + 1) % job.size(), 0).map(drop) // at: closed
    })
}

/// All but the first are away.
fn places(job: &transom::Job) -> Result<()> {
    match job.rank() {
        1 => solve(),
        2 => idle(),
        _ => exchange(job),
    }
}

/// A rank that stops itself, and goes on when it is continued.
fn stops(job: &transom::Job) -> Result<()> {
    if job.rank() == 1 {
        raise(Signal::SIGSTOP).unwrap(); // at: stops
    }
    exchange(job)
}

/// Ranks that let nobody read their memory: what is the kernel's default for those with more rights than their user.
fn shut(job: &transom::Job) -> Result<()> {
    job.barrier()?;
    set_dumpable(false).unwrap();
    places(job)
}

/// Until somebody makes a file: each rank counts in all windows, passes numbers round, and ends with what all have counted.
fn busy(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(2)?;
    let (rank, size) = (job.rank(), job.size());
    let stop = std::env::var(STOP).unwrap();
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut rounds = 0u64;
    loop {
        rounds += 1;
        window.lock_all(|epoch| {
            for target in 0..size {
                epoch.accumulate(target, 0, Sum, &[1])?;
            }
            epoch.flush_all()
        })?;
        // The first rank says when it is enough.
        let is_last = rank == 0 && rounds.is_multiple_of(64) && Path::new(&stop).exists();
        let number = rounds << 1 | u64::from(is_last);
        let request = job.irecv::<u64>(left, 1, 1);
        let passed = if rank == 0 {
            job.send(right, 1, &[number])?;
            request.wait()?.0[0]
        } else {
            let number = request.wait()?.0[0];
            job.send(right, 1, &[number])?;
            number
        };
        assert_eq!(passed >> 1, rounds, "a message is lost, or comes twice");
        if passed & 1 == 1 {
            break;
        }
    }
    job.barrier()?;
    let mut counted = [0];
    window.lock_all(|epoch| epoch.get(rank, 0, &mut counted))?;
    assert_eq!(counted, [rounds * size as u64], "an update is lost, or done twice");
    println!("{rounds} rounds");
    job.barrier()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let program = match &*role {
        "closed" => closed,
        "places" => places,
        "shut" => shut,
        "stops" => stops,
        _ => busy,
    };
    let job = transom::init().unwrap();
    program(&job).unwrap();
    job.finalize().unwrap();
}

fn run(program: &str, ranks: &str, transport: &str, env: &[(&str, &str)]) -> Job {
    start(command(program, ranks, transport).envs(env.iter().copied()))
}

fn command(program: &str, ranks: &str, transport: &str) -> Command {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = transom(&[&["-n", ranks][..], &own].concat());
    command.env(ROLE, program).env("TRANSOM_TRANSPORT", transport);
    command
}

/// What `transom where` says, with single blanks; or its JSON.
fn ask(job: &Job, options: &[&str]) -> String {
    let number = job.child.id().to_string();
    let out =
        common::output(Command::new(TRANSOM).arg("where").arg(number).args(options).env("COLUMNS", "160"));
    String::from_utf8(out.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asks until the answer has all of `words`.
fn find(job: &Job, words: &[String]) -> String {
    let end = Instant::now() + WATCHDOG;
    loop {
        let text = ask(job, &[]);
        let Some(missing) = words.iter().find(|word| !text.contains(*word)) else { return text };
        assert!(Instant::now() < end, "not in it: {missing:?}\n{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// `FUNCTION at places.rs:LINE`, by a comment in this file. Debug information of lines alone has functions without their modules.
fn at(function: &str, mark: &str) -> String {
    let mark = format!("// at: {mark}");
    let line = include_str!("places.rs").lines().position(|line| line.ends_with(&mark)).unwrap() + 1;
    format!("{function} at places.rs:{line}")
}

#[test]
fn calls_that_block_and_ranks_that_are_elsewhere() {
    for transport in ["shm", "tcp"] {
        let (exchange, idle) = (at("exchange", "exchange"), at("idle", "idle"));
        let job = run("places", "4", transport, &[]);
        let words = [
            "barrier: rank 2 to come, in ".into(),
            exchange.clone(),
            "nothing: computes outside of Transom".into(),
            format!("{idle} -> it has to call barrier, too"),
        ];
        let text = find(&job, &words);
        assert!(!text.contains("solve"), "whose registers are in use has none to read: {text}");
        let job = run("places", "2", transport, &[]);
        let computes =
            "it computes outside of Transom -> it has to call barrier, too; look at its stack: gdb";
        let text = find(&job, &["barrier: rank 1 to come, in ".into(), exchange, computes.into()]);
        // Who is stopped by somebody else is where it was.
        let process = text.split_once("gdb -p ").unwrap().1.split(' ').next().unwrap();
        kill(Pid::from_raw(process.parse().unwrap()), Signal::SIGSTOP).unwrap();
        find(&job, &[format!("rank 1 is stopped (process {process}, in "), "solve at places.rs:".into()]);
    }
}

#[test]
fn a_call_in_a_function_that_transom_calls() {
    for transport in ["shm", "tcp"] {
        let job = run("closed", "2", transport, &[]);
        let at = at("", "closed"); // a closure has no name that all compilers give it
        find(&job, &["recv: a message with tag 0 from rank 0, in ".into(), at]);
    }
}

#[test]
fn a_stopped_rank_stays_stopped() {
    let job = run("stops", "2", "shm", &[]);
    find(&job, &[format!("{}); rank 0 waits for it", at("stops", "stops"))]);
    let report: Report = serde_json::from_str(&ask(&job, &["--json"])).unwrap();
    let pid = report.ranks.iter().find(|rank| rank.rank == 1).unwrap().pid;
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next()
    };
    for _ in 0..10 {
        assert!(ask(&job, &[]).contains("rank 1 is stopped"));
        assert_eq!(state(), Some('T'));
    }
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    let ended = job.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// Ends who watches, also when a test fails meanwhile.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn ranks_that_may_not_be_read_are_named_and_all_else_is_said() {
    let plain = command("shut", "3", "tcp");
    let job = if geteuid().is_root() {
        // Root may read them all the same, unless it gives that up.
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]);
        without.arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => without.env(name, value),
                None => without.env_remove(name),
            };
        }
        start(&mut without)
    } else {
        let mut plain = plain;
        start(&mut plain)
    };
    let words = [
        "barrier: rank 2 to come".into(),
        "no lines of ranks 0-2: the kernel forbids reading their stacks".into(),
        "it sleeps outside of Transom -> it has to call barrier, too; look at its stack: gdb".into(),
    ];
    let text = find(&job, &words);
    assert!(!text.contains("places.rs"), "{text}");
}

/// The states that processes are seen in until that is enough, and how often they were looked at.
fn watch(processes: &[i32], enough: &AtomicBool) -> (BTreeSet<char>, usize) {
    let (mut states, mut looks) = (BTreeSet::new(), 0);
    while !enough.load(Ordering::Relaxed) {
        for process in processes {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
            states.extend(stat.rsplit_once(") ").unwrap().1.chars().next());
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            assert!(status.contains("TracerPid:\t0\n"), "{status}");
            looks += 1;
        }
    }
    (states, looks)
}

/// Has the stacks of processes read so often as their agent would; counts the places that it has told.
fn look(processes: &[i32]) -> usize {
    let each = processes.iter().map(|process| format!("{process}:{process}:0"));
    let looks: Vec<String> = each.cycle().take(processes.len() * AT_ONCE).collect();
    let out = common::output(Command::new(TRANSOM).arg("stacks").args(looks));
    String::from_utf8(out.stdout).unwrap().matches("places.rs").count()
}

#[test]
fn a_job_that_is_asked_again_and_again_loses_nothing_and_is_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    for transport in ["shm", "tcp"] {
        let stop = folder.path().join(transport);
        let job = run("busy", "2", transport, &[(STOP, stop.to_str().unwrap())]);
        find(&job, &["running for".into()]);
        let report = || -> Report { serde_json::from_str(&ask(&job, &["--json"])).unwrap() };
        let processes: Vec<i32> = report().ranks.iter().map(|rank| rank.pid).collect();
        let enough = AtomicBool::new(false);
        let (places, (states, samples)) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(&processes, &enough));
            let ends = Ends(&enough);
            let mut places = 0;
            for _ in 0..QUESTIONS {
                let report = report();
                assert_eq!(report.ranks.len(), 2, "{report:?}");
                places += report.ranks.iter().filter(|rank| rank.place().is_some()).count();
            }
            places += (0..LOOKS / AT_ONCE).map(|_| look(&processes)).sum::<usize>();
            // Who waits for a core, as on a busy machine, is not to be seen.
            let end = Instant::now() + WATCHDOG;
            while places == 0 && Instant::now() < end {
                places += look(&processes);
            }
            drop(ends);
            (places, watcher.join().unwrap())
        });
        std::fs::write(&stop, "").unwrap();
        let ended = job.wait();
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout.matches(" rounds\n").count(), 2, "{}", ended.stdout);
        assert!(places > 0, "no rank was seen");
        let is_stopped = states.iter().any(|state| "Tt".contains(*state));
        assert!(samples > LOOKS && !is_stopped, "{states:?} in {samples} samples");
    }
}
