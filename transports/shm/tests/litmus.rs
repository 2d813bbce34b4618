//! What completions, order and atomics mean on shared memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use transom_conformance::litmus::pair;
use transom_conformance::litmus_tests;
use transom_litmus::{Effort, Memory, Outcome};

// Memory of the ranks' own is reached by cross-memory attach.
litmus_tests!(pair(&support::SHM, Memory::Own));

/// Mapped windows are updated by the CPU.
#[test]
fn mapped_windows_pass_everything() {
    let pair = pair(&support::SHM, Memory::Allocated).unwrap();
    let effort = Effort { rounds: 1000, time: Duration::from_millis(200) };
    for verdict in transom_litmus::run(&pair, effort) {
        assert_ne!(verdict.outcome, Outcome::Fails, "{verdict:?}");
    }
}
