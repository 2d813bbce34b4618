//! Updates of the same elements by all ranks at once: none is lost, none is torn. Every operation on every type, at
//! aligned places and others, in memory that peers map and memory of the user's.
//!
//! Each transport in a process of its own, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "common/child.rs"]
mod child;
#[path = "atomicity/large.rs"]
mod large;
#[path = "atomicity/mixed.rs"]
mod mixed;
#[path = "atomicity/torn.rs"]
mod torn;
#[path = "atomicity/values.rs"]
mod values;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use transom::{ComplexLongDouble, Job, Result, Window, WindowOptions};

const RANKS: usize = 4;
const LIMIT: Duration = Duration::from_secs(400);
/// Updates of elements that each transport sees at least.
const UPDATES: usize = 1_000_000;

/// Aligned for every type; displacements count bytes.
type Memory = Window<ComplexLongDouble>;

static DONE: AtomicUsize = AtomicUsize::new(0);

fn count(updates: usize) {
    DONE.fetch_add(updates, Ordering::Relaxed);
}

/// A window of so many bytes, allocated or of the user's memory.
fn window(job: &Job, created: bool, bytes: usize) -> Result<Memory> {
    let len = bytes.div_ceil(size_of::<ComplexLongDouble>());
    if created {
        job.create_with(vec![ComplexLongDouble::default(); len], &WindowOptions::unit(1))
    } else {
        job.allocate_with(len, &WindowOptions::unit(1))
    }
}

/// Runs all programs over `transport`, as the test named `test`.
fn run(transport: &str, test: &str) {
    type Program = fn(&Job) -> Result<()>;
    let programs: [(&str, Program); 3] = [("mixed", mixed::run), ("torn", torn::run), ("large", large::run)];
    child::run(transport, test, LIMIT, || {
        for (name, program) in programs {
            let (start, before) = (Instant::now(), DONE.load(Ordering::Relaxed));
            transom::local(RANKS, |job| program(&job)).unwrap_or_else(|e| panic!("{name}: {e}"));
            eprintln!("{name}: {} updates, {:?}", DONE.load(Ordering::Relaxed) - before, start.elapsed());
        }
        let done = DONE.load(Ordering::Relaxed);
        eprintln!("{done} updates of elements over {transport}");
        assert!(done >= UPDATES);
    });
}

#[test]
fn updates_over_shm() {
    run("shm", "updates_over_shm");
}

#[test]
fn updates_over_ofi() {
    run("ofi", "updates_over_ofi");
}

#[test]
fn updates_over_verbs() {
    run("verbs", "updates_over_verbs");
}
