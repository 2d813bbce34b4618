//! The suite as jobs inside one process, of 1, 2, 3, 4 and 7 ranks, over each transport.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

#[path = "common/child.rs"]
mod child;
mod suite;

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];
const LIMIT: Duration = Duration::from_secs(900);

/// Runs every program.
fn run(transport: &str, test: &str) {
    child::run(transport, test, LIMIT, || {
        for ranks in RANKS {
            for (name, program) in suite::PROGRAMS {
                let start = Instant::now();
                transom::local(ranks, |job| program(&job))
                    .unwrap_or_else(|e| panic!("{name} on {ranks} ranks: {e}"));
                eprintln!("{name}: {ranks} ranks over {transport}, {:?}", start.elapsed());
            }
        }
    });
}

#[test]
fn suite_over_shm() {
    run("shm", "suite_over_shm");
}

#[test]
fn suite_over_ofi() {
    run("ofi", "suite_over_ofi");
}
