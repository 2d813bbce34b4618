//! What completions, order and atomics mean on the RDMA devices of this machine. `TRANSOM_VERBS_DEVICE` chooses some.

mod support;

use transom_conformance::litmus::{hold, pair};
use transom_conformance::litmus_tests;
use transom_litmus::Memory;

litmus_tests!(pair(&support::VERBS, Memory::Allocated));

/// Those of several origins are exact, whatever the device says of the CPU's.
#[test]
fn atomics_of_several_origins_are_exact() {
    hold(pair(&support::VERBS, Memory::Allocated), 5000, &[transom_litmus::against_device]);
}

/// Puts, gets and atomics need nothing of the target.
#[test]
fn a_silent_target_is_reached() {
    hold(pair(&support::VERBS, Memory::Allocated), 1, &[transom_litmus::passive]);
}
