//! `--on-failure notify`: ranks are killed at random moments while all count. Those that live shrink, make their window anew and go
//! on; after every round each update that a survivor was told is complete is there, and none is twice.
//!
//! `TRANSOM_TEST_KILLS` is the number of jobs, each with one death or two. This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;
mod counter;
mod disasters;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{ROLE, fake_ssh, start, transom};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const RANKS: usize = 4;
/// Where a rank says that it has joined: a file of its number, with its process number.
const JOINED: &str = "TRANSOM_TEST_JOINED";
fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % below
}

#[test]
fn rank_program() {
    if std::env::var_os(ROLE).is_some() {
        counter::main();
    }
}

/// The ranks' processes, once all have joined.
fn joined(directory: &Path, end: Instant) -> BTreeMap<usize, i32> {
    loop {
        let read = |rank: usize| {
            let text = std::fs::read_to_string(directory.join(rank.to_string())).ok()?;
            Some((rank, text.parse().ok()?))
        };
        let pids: BTreeMap<usize, i32> = (0..RANKS).filter_map(read).collect();
        if pids.len() == RANKS || Instant::now() > end {
            return pids;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One job over a transport, or with ranks on two hosts, which have both.
fn bereave(transport: &str, turn: usize) {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let directory = tempfile::tempdir().unwrap();
    let ranks = RANKS.to_string();
    let mut args = vec!["-n", &ranks, "--on-failure", "notify"];
    let ssh = fake_ssh(directory.path(), "exec sh -c \"$2\"");
    if transport == "mixed" {
        args.extend(["--rsh", &ssh, "--hosts", "h1:2,h2:2"]);
    }
    let mut command = transom(&[&args[..], &own].concat());
    command.env(ROLE, "count").env(JOINED, directory.path());
    if transport != "mixed" {
        command.env("TRANSOM_TRANSPORT", transport);
    }
    let job = start(&mut command);
    let pids = joined(directory.path(), Instant::now() + Duration::from_secs(20));
    let mut victims: Vec<usize> = Vec::new();
    for _ in 0..=turn % 2 {
        std::thread::sleep(Duration::from_micros(random(250_000)));
        let alive: Vec<usize> = pids.keys().copied().filter(|rank| !victims.contains(rank)).collect();
        let Some(victim) = alive.get(random(alive.len().max(1) as u64) as usize) else { break };
        // ESRCH: its end was faster.
        let _ = kill(Pid::from_raw(pids[victim]), Signal::SIGKILL);
        victims.push(*victim);
    }
    let ended = job.wait();
    let said = format!("{transport}, dead {victims:?}: {}{}", ended.stdout, ended.stderr);
    assert_eq!(pids.len(), RANKS, "{said}");
    for rank in (0..RANKS).filter(|rank| !victims.contains(rank)) {
        assert!(ended.stdout.contains(&format!("SURVIVED {rank}\n")), "rank {rank}: {said}");
    }
    assert!(
        ended.code == 137 || (0..RANKS).all(|rank| ended.stdout.contains(&format!("SURVIVED {rank}\n"))),
        "{said}"
    );
    assert!(!ended.stderr.contains("panicked"), "{said}");
}

fn each(transport: &str) {
    // A rank's process is a test program, too.
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let jobs = std::env::var("TRANSOM_TEST_KILLS").map_or(10, |kills| kills.parse::<usize>().unwrap());
    for turn in 0..jobs {
        bereave(transport, turn);
    }
}

#[test]
fn over_shared_memory() {
    each("shm");
}

#[test]
fn over_tcp() {
    each("tcp");
}

#[test]
fn on_two_hosts() {
    each("mixed");
}
