//! Contended locks as jobs of processes: on one host over each transport, and on two, where agents represent the ranks of
//! the other; one job at a time.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../runtime/tests/contention/mod.rs"]
mod contention;

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Beside the time of the program: a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn rank_program() {
    let Some(program) = contention::named() else { return };
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    program(&job).unwrap_or_else(|e| panic!("{e}"));
    job.finalize().unwrap();
}

fn run(launcher: &mut Command, ranks: usize, transport: &str, program: &str, time: Duration, deadline: &str) {
    let limit = (time + LIMIT).as_secs_f64().to_string();
    let child = launcher
        .args(["-n", &ranks.to_string(), "--timeout", &limit])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env("TRANSOM_TEST_CONTENTION", program)
        .env("TRANSOM_TEST_SECONDS", time.as_secs_f64().to_string())
        .env("TRANSOM_TRANSPORT", transport)
        .env("TRANSOM_DEADLINE", deadline)
        .env_remove("SLURM_JOB_ID")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let status = contention::watch(child, time + 2 * LIMIT);
    assert!(status.success(), "{program} on {ranks} ranks over {transport}: {status}");
}

/// On this host over each transport, then on two network namespaces, if those can be made.
fn everywhere(ranks: usize, program: &str, time: Duration, deadline: &str) {
    let _alone = ONE_AT_A_TIME.lock();
    for transport in ["shm", "tcp"] {
        run(Command::new(common::TRANSOM).arg("run"), ranks, transport, program, time, deadline);
    }
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to make network namespaces (root, iproute2)");
        println!("skipped: network namespaces need root and iproute2");
        return;
    }
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    let mut launcher = Command::new(format!("{ci}/netns.sh"));
    launcher.args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", "h1:4,h2:4"]);
    run(&mut launcher, ranks, "shm,tcp", program, time, deadline);
}

#[test]
fn a_contended_lock_is_fair() {
    everywhere(7, "fair_lock", Duration::from_secs(2), "60");
}

#[test]
fn locks_of_all_kinds_at_random() {
    everywhere(7, "mixed_locks", contention::soak() / 3, "60");
}

#[test]
fn who_gives_up_blocks_nobody() {
    everywhere(5, "abandoned_locks", Duration::ZERO, "3");
}
