//! Updates of the same elements by all ranks at once: none is lost, none is torn. Every operation on every type, at
//! aligned places and others, in memory that peers map and memory of the user's.
//!
//! Each transport in a process of its own, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "atomicity/large.rs"]
mod large;
#[path = "atomicity/mixed.rs"]
mod mixed;
#[path = "atomicity/torn.rs"]
mod torn;
#[path = "atomicity/values.rs"]
mod values;

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use transom::{ComplexLongDouble, Job, Result, Window, WindowOptions};

const ROLE: &str = "TRANSOM_TEST_ATOMICITY";
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

/// The transport that this process tests.
fn transport() -> &'static str {
    static TRANSPORT: OnceLock<String> = OnceLock::new();
    TRANSPORT.get_or_init(|| std::env::var(ROLE).unwrap_or_default())
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

/// Does nothing unless it is the child.
#[test]
fn child() {
    if transport().is_empty() {
        return;
    }
    type Program = fn(&Job) -> Result<()>;
    let programs: [(&str, Program); 3] = [("mixed", mixed::run), ("torn", torn::run), ("large", large::run)];
    for (name, program) in programs {
        let (start, before) = (Instant::now(), DONE.load(Ordering::Relaxed));
        transom::local(RANKS, |job| program(&job)).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {} updates, {:?}", DONE.load(Ordering::Relaxed) - before, start.elapsed());
    }
    let done = DONE.load(Ordering::Relaxed);
    println!("{done} updates of elements");
    assert!(done >= UPDATES);
}

fn run(transport: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, transport)
        .env("TRANSOM_TRANSPORT", transport)
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
            panic!("{transport}: no end after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{transport}: {status}");
}

#[test]
fn updates_over_shm() {
    run("shm");
}

#[test]
fn updates_over_ofi() {
    run("ofi");
}
