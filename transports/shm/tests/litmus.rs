//! What completions, order and atomics mean on shared memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use transom_litmus::{Effort, Memory, Outcome, Pair, Test, Verdict};

use std::sync::Arc;

use transom_shm::Shm;

/// Two connected ranks; their memory is reached by cross-memory attach.
fn pair() -> Option<Pair> {
    let rank = || Arc::new(Shm::new(2).unwrap());
    Some(Pair::connect(rank(), rank(), Memory::Own).unwrap())
}

/// Runs tests on two ranks; they must hold, unless the transport has nothing that they are about.
fn hold(rounds: u64, tests: &[Test]) -> Vec<Verdict> {
    let Some(pair) = pair() else { return Vec::new() };
    // For a machine that emulates another and is busy beside.
    let effort = Effort { rounds, time: Duration::from_secs(100) };
    let verdicts: Vec<_> = tests.iter().map(|test| test(&pair, effort)).collect();
    for verdict in &verdicts {
        assert_ne!(verdict.outcome, Outcome::Fails, "{verdict:?}");
    }
    verdicts
}

/// ompi#7982, libfabric#6169.
#[test]
fn complaint_20_completions_before_the_data() {
    hold(300, &[transom_litmus::delivery, transom_litmus::delivery_passive]);
}

/// libfabric#5601, mpich#6310: small puts above all.
#[test]
fn complaint_21_small_puts_are_injected() {
    hold(1000, &[transom_litmus::inline]);
}

/// libfabric#4803, #12656.
#[test]
fn complaint_22_every_operation_completes_once() {
    for verdict in hold(100_000, &[transom_litmus::count_audit]) {
        assert!(verdict.evidence.starts_with("100000 operations, "), "{verdict:?}");
    }
}

/// libfabric#5662, #6244.
#[test]
fn complaint_27_memory_that_was_unmapped() {
    hold(50, &[transom_litmus::remap_put, transom_litmus::remap_get]);
}

/// Mapped windows are updated by the CPU.
#[test]
fn mapped_windows_pass_everything() {
    let rank = || Arc::new(Shm::new(2).unwrap());
    let pair = Pair::connect(rank(), rank(), Memory::Allocated).unwrap();
    let effort = Effort { rounds: 1000, time: Duration::from_millis(200) };
    for verdict in transom_litmus::run(&pair, effort) {
        assert_ne!(verdict.outcome, Outcome::Fails, "{verdict:?}");
    }
}
