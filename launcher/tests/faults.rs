//! SIGKILL of ranks in full traffic, and of their launcher: at start-up, in the middle, at the end. The job ends within a
//! second, says who was killed, and leaves nothing: no process, no file, no memory.
//!
//! `TRANSOM_TEST_KILLS` is the number of kills of each kind; half of them over shared memory, half over libfabric.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
mod traffic;

use std::collections::{BTreeSet, HashSet};
use std::fs::DirEntry;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{Ended, Job};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use traffic::{ENDING, everybody, is_rank, memory_files, random, ranks, start_ranks};

const SECOND: Duration = Duration::from_secs(1);
/// The same on a machine that others keep busy; what notices a loss by silence takes longer.
const BUSY: Duration = Duration::from_secs(8);
/// Seconds of traffic for jobs that shall not end by themselves.
const LONG: f64 = 100.0;

/// Jobs whose end is timed run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kills() -> usize {
    std::env::var("TRANSOM_TEST_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

#[test]
fn rank_program() {
    traffic::rank_program();
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Start,
    Middle,
    End,
}

/// A job in traffic, and what there was before it.
struct Scene {
    job: Job,
    transport: &'static str,
    moment: Moment,
    directory: tempfile::TempDir,
    files: BTreeSet<PathBuf>,
    memory: HashSet<(u64, u64)>,
}

/// What must be the same afterwards. Others use these directories too: names of ours say so. What heeds TMPDIR is elsewhere, folders
/// among it; here they are those of other tests, which may run meanwhile.
fn shared_files() -> BTreeSet<PathBuf> {
    let all = ["/dev/shm", "/tmp"].into_iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let ours = all.flatten().filter(|entry| !is_folder(entry)).map(|entry| entry.path());
    ours.filter(|path| path.to_string_lossy().contains("transom")).collect()
}

impl Scene {
    fn new(transport: &'static str, round: usize) -> Self {
        let moment = [Moment::Start, Moment::Middle, Moment::End][round % 3];
        let files = shared_files();
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let seconds = if moment == Moment::End { 0.05 } else { LONG };
        let job = start_ranks(transport, seconds, |command| {
            command.env("TMPDIR", directory.path()).env(ENDING, directory.path().join("ending"));
        });
        Self { job, transport, moment, directory, files, memory: HashSet::new() }
    }

    /// Waits for the moment; the ranks that are there then.
    fn wait(&mut self) -> Vec<(u32, i32)> {
        let begin = Instant::now();
        let ending = self.directory.path().join("ending");
        let reached = || match self.moment {
            Moment::End => ending.exists(),
            _ => !ranks(&self.job).is_empty(),
        };
        while !reached() {
            assert!(begin.elapsed() < 100 * SECOND, "{:?}: does not come to it", self.moment);
        }
        // Microseconds: from creating windows to leaving the job a rank takes milliseconds.
        let (from, below) = match self.moment {
            Moment::Start => (0, 60_000),
            Moment::Middle => (100_000, 400_000),
            Moment::End => (0, 12_000),
        };
        std::thread::sleep(Duration::from_micros(from + random(below)));
        let mut ranks = traffic::ranks(&self.job);
        // What a process is called cannot be read at every moment of its start.
        while ranks.is_empty() && self.moment != Moment::End {
            assert!(begin.elapsed() < 100 * SECOND, "{:?}: no ranks", self.moment);
            ranks = traffic::ranks(&self.job);
        }
        self.memory = memory_files(ranks.iter().map(|(_, pid)| *pid));
        let shares = self.transport == "shm" && self.moment == Moment::Middle;
        assert!(!shares || !self.memory.is_empty(), "ranks that share no memory");
        ranks
    }

    /// The job has ended: nothing is left of it.
    fn check(directory: &tempfile::TempDir, files: &BTreeSet<PathBuf>, memory: &HashSet<(u64, u64)>) {
        let _ = std::fs::remove_file(directory.path().join("ending"));
        let temporary: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert!(temporary.is_empty(), "temporary files: {temporary:?}");
        let end = Instant::now() + BUSY;
        // Other tests' jobs have such names for a moment.
        loop {
            let new: Vec<_> = shared_files().difference(files).cloned().collect();
            if new.is_empty() {
                break;
            }
            assert!(Instant::now() < end, "new files: {new:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Who ends has no command line before it has no files.
        loop {
            let holds = |pid: &i32| !memory_files([*pid].into_iter()).is_disjoint(memory);
            let held: Vec<_> = everybody().filter(holds).collect();
            if held.is_empty() {
                break;
            }
            assert!(Instant::now() < end, "processes that hold the job's memory: {held:?}");
        }
    }
}

fn assert_blames(ended: &Ended, (rank, pid): (u32, i32)) {
    let who = format!("rank {rank} (pid {pid}) on host ");
    let words = ended.stderr.contains(&who) && ended.stderr.contains("signal 9 (SIGKILL)");
    assert!(words, "not {who}… signal 9 (SIGKILL):\n{}", ended.stderr);
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let of = |part: usize| times.get((times.len() * part / 100).min(times.len() - 1)).copied();
    eprintln!("{what}: {} kills, end after {:?} (median), {:?} (slowest)", times.len(), of(50), of(100));
    assert!(of(50) < Some(SECOND));
}

fn kill_ranks(transport: &'static str) {
    if is_rank() {
        return;
    }
    let _alone = alone();
    let mut times = Vec::new();
    let (mut in_time, mut at_end) = (0, 0);
    for round in 0..kills().div_ceil(2) {
        let mut scene = Scene::new(transport, round);
        let ranks = scene.wait();
        let victim = (!ranks.is_empty()).then(|| ranks[random(ranks.len() as u64) as usize]);
        let begin = Instant::now();
        if let Some((_, pid)) = victim {
            // ESRCH: its end was faster.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let Scene { job, moment, directory, files, memory, .. } = scene;
        let ended = job.wait();
        let took = begin.elapsed();
        match (victim, ended.code, moment) {
            (Some(victim), 137, _) => {
                in_time += 1;
                at_end += usize::from(moment == Moment::End);
                assert_blames(&ended, victim);
                times.push(took);
            }
            (_, 0, Moment::End) => {}
            _ => panic!("{transport}, {moment:?}, {victim:?}: code {}\n{}", ended.code, ended.stderr),
        }
        assert!(took < BUSY || victim.is_none(), "{transport}, {moment:?}: {took:?}\n{}", ended.stderr);
        Scene::check(&directory, &files, &memory);
    }
    assert!(in_time >= kills() / 4, "{in_time} kills came in time");
    eprintln!("{at_end} kills came in time at the end");
    report(&format!("a rank, {transport}"), times);
}

fn kill_launchers(transport: &'static str) {
    if is_rank() {
        return;
    }
    let _alone = alone();
    let mut times = Vec::new();
    for round in 0..kills().div_ceil(2) {
        let mut scene = Scene::new(transport, round);
        scene.wait();
        let begin = Instant::now();
        scene.job.child.kill().unwrap();
        scene.job.child.wait().unwrap();
        scene.job.assert_gone_within(BUSY);
        times.push(begin.elapsed());
        Scene::check(&scene.directory, &scene.files, &scene.memory);
    }
    report(&format!("the launcher, {transport}"), times);
}

#[test]
fn a_rank_over_shm() {
    kill_ranks("shm");
}

#[test]
fn a_rank_over_ofi() {
    kill_ranks("ofi");
}

#[test]
fn a_rank_over_tcp() {
    kill_ranks("tcp");
}

#[test]
fn the_launcher_over_shm() {
    kill_launchers("shm");
}

#[test]
fn the_launcher_over_ofi() {
    kill_launchers("ofi");
}

#[test]
fn the_launcher_over_tcp() {
    kill_launchers("tcp");
}
