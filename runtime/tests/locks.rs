//! Contended locks as jobs of threads of one process, over each transport; one job at a time.
//!
//! A transport is chosen by environment variable, which a test cannot change for itself: so each test runs this
//! executable again as a child, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod contention;

use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Beside the time of the program: a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a program in this process; does nothing unless it is the child.
#[test]
fn child() {
    let Some(program) = contention::named() else { return };
    let ranks = std::env::var("TRANSOM_TEST_RANKS").unwrap().parse().unwrap();
    transom::local(ranks, |job| program(&job)).unwrap_or_else(|e| panic!("{e}"));
}

fn run(program: &str, ranks: usize, transport: &str, time: Duration, deadline: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("TRANSOM_TEST_CONTENTION", program)
        .env("TRANSOM_TEST_SECONDS", time.as_secs_f64().to_string())
        .env("TRANSOM_TEST_RANKS", ranks.to_string())
        .env("TRANSOM_TRANSPORT", transport)
        .env("TRANSOM_DEADLINE", deadline)
        .spawn()
        .unwrap();
    let status = contention::watch(child, time + LIMIT);
    assert!(status.success(), "{program} on {ranks} ranks over {transport}: {status}");
}

#[test]
fn a_contended_lock_is_fair() {
    let _alone = ONE_AT_A_TIME.lock();
    for transport in ["shm", "ofi"] {
        run("fair_lock", 7, transport, Duration::from_secs(2), "60");
    }
}

#[test]
fn locks_of_all_kinds_at_random() {
    let _alone = ONE_AT_A_TIME.lock();
    for transport in ["shm", "ofi"] {
        run("mixed_locks", 7, transport, contention::soak() / 2, "60");
    }
}

#[test]
fn who_gives_up_blocks_nobody() {
    let _alone = ONE_AT_A_TIME.lock();
    for transport in ["shm", "ofi"] {
        run("abandoned_locks", 3, transport, Duration::ZERO, "3");
    }
}
