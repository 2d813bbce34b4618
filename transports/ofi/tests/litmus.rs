//! What completions, order and atomics mean with libfabric, over loopback. `TRANSOM_OFI_PROVIDER` chooses the provider.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use transom_litmus::{Effort, Memory, Outcome, Pair, Test, Verdict};

mod support;

/// Two connected ranks, if libfabric is here.
fn pair() -> Option<Pair> {
    let ranks = (support::OFI.open)(2)?;
    Some(Pair::connect(ranks[0].clone(), ranks[1].clone(), Memory::Allocated).unwrap())
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
