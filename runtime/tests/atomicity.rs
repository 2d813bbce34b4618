//! Updates of the same elements by all ranks at once: none is lost, none is torn. Every operation on every type, at
//! aligned places and others, in memory that peers map and memory of the user's.
//!
//! Each transport in a process of its own, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "common/child.rs"]
mod child;
#[path = "atomicity/mod.rs"]
mod programs;

use std::time::{Duration, Instant};

use programs::{RANKS, done, large, mixed, torn};
use transom::{Job, Result};

const LIMIT: Duration = Duration::from_secs(400);
/// Updates of elements that each transport sees at least; an emulated device a tenth of them.
const UPDATES: usize = 1_000_000;

/// Runs all programs over `transport`, as the test named `test`.
fn run(transport: &str, test: &str, least: usize) {
    type Program = fn(&Job) -> Result<()>;
    let programs: [(&str, Program); 3] = [("mixed", mixed::run), ("torn", torn::run), ("large", large::run)];
    child::run(transport, test, LIMIT, || {
        for (name, program) in programs {
            let (start, before) = (Instant::now(), done());
            transom::local(RANKS, |job| program(&job)).unwrap_or_else(|e| panic!("{name}: {e}"));
            eprintln!("{name}: {} updates, {:?}", done() - before, start.elapsed());
        }
        eprintln!("{} updates of elements over {transport}", done());
        assert!(done() >= least);
    });
}

#[test]
fn updates_over_shm() {
    run("shm", "updates_over_shm", UPDATES);
}

#[test]
fn updates_over_ofi() {
    run("ofi", "updates_over_ofi", UPDATES);
}

#[test]
fn updates_over_tcp() {
    run("tcp", "updates_over_tcp", UPDATES);
}

#[test]
fn updates_over_verbs() {
    run("verbs", "updates_over_verbs", UPDATES / 20);
}
