//! The suite as jobs inside one process, of 1, 2, 3, 4 and 7 ranks, over each transport.
//!
//! A transport is chosen by environment variable, which a test cannot change for itself: so each test runs this
//! executable again as a child, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;
use std::time::{Duration, Instant};

mod suite;

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];
const LIMIT: Duration = Duration::from_secs(240);

/// Runs every program in this process; does nothing unless it is the child.
#[test]
fn child() {
    let Ok(ranks) = std::env::var("TRANSOM_TEST_RANKS") else { return };
    let ranks: usize = ranks.parse().unwrap();
    for (name, program) in suite::PROGRAMS {
        let start = Instant::now();
        transom::local(ranks, |job| program(&job)).unwrap_or_else(|e| panic!("{name} on {ranks} ranks: {e}"));
        println!("{name}: {ranks} ranks, {:?}", start.elapsed());
    }
}

fn run(transport: &str) {
    for ranks in RANKS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env("TRANSOM_TRANSPORT", transport)
            .env("TRANSOM_TEST_RANKS", ranks.to_string())
            .env("TRANSOM_DEADLINE", "60")
            .spawn()
            .unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("{ranks} ranks over {transport}: no end after {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{ranks} ranks over {transport}: {status}");
    }
}

#[test]
fn suite_over_shm() {
    run("shm");
}

#[test]
fn suite_over_ofi() {
    run("ofi");
}
