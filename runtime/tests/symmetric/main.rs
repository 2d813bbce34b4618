//! Allocated windows in the ranks' heaps: places that differ and are agreed on, memory that comes again, and what a window
//! costs.
//!
//! Each test runs this executable again as a child, with a transport and a heap of some size.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod costs;
mod programs;
#[path = "../common/resident.rs"]
mod resident;

use std::process::Command;
use std::time::{Duration, Instant};

use transom::{Job, Result};

type Program = fn(&Job) -> Result<()>;

const PROGRAMS: &[(&str, Program)] = &[
    ("ranks_with_different_histories", programs::different_histories),
    ("windows_in_any_order", programs::any_order),
    ("a_dropped_window_keeps_its_place", programs::dropped),
    ("an_overlapping_window_keeps_the_place", programs::overlapping),
    ("threads_make_windows_at_once", programs::threads),
    ("costs", costs::costs),
];

#[test]
fn child() {
    let Ok(name) = std::env::var("TRANSOM_TEST_PROGRAM") else { return };
    let ranks = std::env::var("TRANSOM_TEST_RANKS").unwrap().parse().unwrap();
    let (_, program) = PROGRAMS.iter().find(|(n, _)| *n == name).unwrap();
    transom::local(ranks, |job| program(&job)).unwrap();
}

/// Runs a program on so many ranks, with a heap of so many bytes, and returns what it prints.
fn run(name: &str, transport: &str, ranks: usize, heap: Option<usize>) -> String {
    let mut command = Command::new("timeout");
    command
        .arg("150")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("TRANSOM_TRANSPORT", transport)
        .env("TRANSOM_TEST_PROGRAM", name)
        .env("TRANSOM_TEST_RANKS", ranks.to_string())
        .env("TRANSOM_DEADLINE", "100");
    if let Some(heap) = heap {
        command.env("TRANSOM_HEAP", heap.to_string());
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} over {transport}: {}\n{text}\n{errors}", output.status);
    text
}

macro_rules! tests {
    ($($name:ident)*) => {
        mod shm { $(#[test] fn $name() { super::everywhere(stringify!($name), "shm"); })* }
        mod tcp { $(#[test] fn $name() { super::everywhere(stringify!($name), "tcp"); })* }
    };
}

/// With heaps as usual, so small that many windows have no place, and without.
fn everywhere(name: &str, transport: &str) {
    for heap in [None, Some(40_960), Some(0)] {
        run(name, transport, 4, heap);
    }
}

tests! {
    ranks_with_different_histories
    windows_in_any_order
    a_dropped_window_keeps_its_place
    an_overlapping_window_keeps_the_place
    threads_make_windows_at_once
}

/// Bytes of bookkeeping and mappings that [`costs`] found.
fn cost(transport: &str, ranks: usize) -> (usize, usize) {
    let text = run("costs", transport, ranks, None);
    println!("{transport}, {ranks} ranks: {}", text.replace("running 1 test", "").trim());
    let line = text.lines().find_map(|line| line.split("bytes ").nth(1)).unwrap();
    let (bytes, maps) = line.split_once(" maps ").unwrap();
    (bytes.parse().unwrap(), maps.trim().parse().unwrap())
}

#[test]
fn a_windows_bookkeeping_does_not_grow_with_the_ranks() {
    let start = Instant::now();
    for transport in ["shm", "tcp"] {
        let ((few, few_maps), (many, many_maps)) = (cost(transport, 2), cost(transport, 8));
        // Pages of the allocator, and of 2,000 control slots, make some difference.
        assert!(
            many <= few + few / 4 + 256,
            "{transport}: {few} bytes at each of 2 ranks, {many} at each of 8"
        );
        assert!(few_maps.max(many_maps) < 200, "{transport}: windows have mappings of their own");
    }
    assert!(start.elapsed() < Duration::from_secs(200));
}
