//! Agents that start agents, on hosts played by a command that is called like ssh.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Job, ROLE, TRANSOM, fake_ssh, start, transom};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const HOSTS: &str = "h1,h2,h3,h4,h5,h6,h7";
const SLEEP: &str = "sleep 1004";

/// A job of two ranks on each of seven hosts, of which the launcher and each agent start two at most.
fn tree(dir: &tempfile::TempDir, program: &[&str]) -> Command {
    let ssh = fake_ssh(dir.path(), "TRANSOM_FAKE=$1 HOSTNAME=$1 exec sh -c \"$2\"");
    let flags = ["-n", "14", "--fan-out", "2", "--rsh", &ssh, "--hosts", HOSTS];
    transom(&[&flags[..], program].concat())
}

fn own(role: &str, dir: &tempfile::TempDir) -> Job {
    let exe = std::env::current_exe().unwrap();
    let program = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    start(tree(dir, &program).env(ROLE, role))
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let job = transom::init().unwrap();
    let ranks = job.allgather(&[job.rank() as u64]).unwrap().concat();
    assert_eq!(ranks, (0..job.size() as u64).collect::<Vec<_>>());
    if role == "missing" && job.rank() == 9 {
        std::thread::sleep(Duration::from_secs(100));
    }
    job.barrier().unwrap();
    job.finalize().unwrap();
}

#[test]
fn ranks_meet_and_all_are_heard() {
    let dir = tempfile::tempdir().unwrap();
    let ended = own("", &dir).wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ended = start(&mut tree(&dir, &["sh", "-c", "echo $PMI_RANK $HOSTNAME"])).wait();
    let lines: BTreeSet<&str> = ended.stdout.lines().collect();
    let expected: Vec<String> = (0..14).map(|rank| format!("{rank} h{}", rank / 2 + 1)).collect();
    assert_eq!(lines, expected.iter().map(String::as_str).collect(), "{}", ended.stderr);
}

/// Who died, and that nothing is left: `wait` looks at the whole job.
#[test]
fn an_agent_that_dies_ends_the_job() {
    for host in ["h1", "h3", "h7"] {
        let dir = tempfile::tempdir().unwrap();
        let job = start(&mut tree(&dir, &["sleep", "1004"]));
        job.wait_for(14, SLEEP);
        let mark = format!("TRANSOM_FAKE={host}");
        let is_there = |pid: &&i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let agents = job.wait_for(7, "transom agent");
        let begin = Instant::now();
        kill(Pid::from_raw(*agents.iter().find(is_there).unwrap()), Signal::SIGKILL).unwrap();
        let ended = job.wait();
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        let words = format!("the agent on host {host} was killed by signal 9 (SIGKILL)");
        assert!(ended.stderr.contains(&words), "{host}: {}", ended.stderr);
        assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    }
}

#[test]
fn the_launcher_may_be_ended() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let dir = tempfile::tempdir().unwrap();
        let job = start(&mut tree(&dir, &["sleep", "1004"]));
        job.wait_for(14, SLEEP);
        job.signal(signal);
        let ended = job.wait();
        assert_eq!(ended.code, code, "{}", ended.stderr);
    }
    let dir = tempfile::tempdir().unwrap();
    let job = start(&mut tree(&dir, &["sleep", "1004"]));
    job.wait_for(14, SLEEP);
    job.signal(Signal::SIGKILL);
    // A zombie until it is waited for.
    let end = Instant::now() + Duration::from_secs(10);
    while !job.find(SLEEP).is_empty() || !job.find("transom agent").is_empty() {
        assert!(Instant::now() < end, "left: {:?}", job.processes());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rank_that_is_missed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let job = own("missing", &dir);
    let (end, number) = (Instant::now() + Duration::from_secs(20), job.child.id().to_string());
    loop {
        let out = common::output(Command::new(TRANSOM).args(["where", &number]).env("COLUMNS", "150"));
        let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
        if text.contains("rank 9") && text.contains("h5") {
            break;
        }
        assert!(Instant::now() < end, "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Depth and connections grow with the tree, not with the hosts.
#[test]
fn two_hundred_agents() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let hosts: Vec<String> = (0..200).map(|host| format!("h{host}")).collect();
    let job = start(&mut transom(&[
        "--agents-only",
        "-n",
        "200",
        "--fan-out",
        "8",
        "--rsh",
        &ssh,
        "--hosts",
        &hosts.join(","),
        "true",
    ]));
    let ended = job.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let said = ended.stdout + &ended.stderr;
    for words in
        ["200 agents ready", "8 started from here, at most 8 by another", "3 on the way to the farthest"]
    {
        assert!(said.contains(words), "{said}");
    }
}
