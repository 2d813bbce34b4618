//! Complaints about what completions, order and atomics mean: the litmus tests behind them must hold on every transport.

use std::time::Duration;

use transom_litmus::{Effort, Memory, Outcome, Pair, Test, Verdict};

use crate::Subject;

/// Two connected ranks, if the transport is here.
pub fn pair(subject: &Subject, memory: Memory) -> Option<Pair> {
    let ranks = (subject.open)(2)?;
    Some(Pair::connect(ranks[0].clone(), ranks[1].clone(), memory).unwrap())
}

/// Runs tests on two ranks; they must hold, unless the transport has nothing that they are about.
pub fn hold(pair: Option<Pair>, rounds: u64, tests: &[Test]) -> Vec<Verdict> {
    let Some(pair) = pair else { return Vec::new() };
    // For a machine that emulates another and is busy beside.
    let effort = Effort { rounds, time: Duration::from_secs(100) };
    let verdicts: Vec<_> = tests.iter().map(|test| test(&pair, effort)).collect();
    for verdict in &verdicts {
        assert_ne!(verdict.outcome, Outcome::Fails, "{verdict:?}");
    }
    verdicts
}

/// ompi#7982, libfabric#6169.
pub fn completions_before_the_data(pair: Option<Pair>) {
    hold(pair, 300, &[transom_litmus::delivery, transom_litmus::delivery_passive]);
}

/// libfabric#5601, mpich#6310: small puts above all.
pub fn small_puts_are_injected(pair: Option<Pair>) {
    hold(pair, 1000, &[transom_litmus::inline]);
}

/// libfabric#4803, #12656.
pub fn every_operation_completes_once(pair: Option<Pair>) {
    for verdict in hold(pair, 100_000, &[transom_litmus::count_audit]) {
        assert!(verdict.evidence.starts_with("100000 operations, "), "{verdict:?}");
    }
}

/// libfabric#5662, #6244.
pub fn memory_that_was_unmapped(pair: Option<Pair>) {
    hold(pair, 50, &[transom_litmus::remap_put, transom_litmus::remap_get]);
}

/// Makes a `#[test]` of every complaint here, for a function that connects a pair of ranks if it can.
#[macro_export]
macro_rules! litmus_tests {
    ($pair:expr) => {
        $crate::litmus_tests!($pair;
            complaint_20_completions_before_the_data: completions_before_the_data,
            complaint_21_small_puts_are_injected: small_puts_are_injected,
            complaint_22_every_operation_completes_once: every_operation_completes_once,
            complaint_27_memory_that_was_unmapped: memory_that_was_unmapped
        );
    };
    ($pair:expr; $($test:ident: $check:ident),*) => {$(
        #[test]
        fn $test() {
            $crate::litmus::$check($pair);
        }
    )*};
}
