//! Each test finds the defect that it is for, in a transport that has it, and nothing in one that has none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use support::{Defect, pair};
use transom_litmus::{Effort, FlushMethod, Outcome, Test, Verdict, flush_method, run};
use transom_transport::AtomicScope;

const EFFORT: Effort = Effort { rounds: 2000, time: Duration::from_millis(300) };

fn examine(defect: Defect, test: Test) -> Verdict {
    test(&pair(defect, AtomicScope::System), EFFORT)
}

fn fails(defect: Defect, test: Test) -> Verdict {
    let verdict = examine(defect, test);
    assert_eq!(verdict.outcome, Outcome::Fails, "{verdict:?}");
    verdict
}

#[test]
fn a_transport_without_defects_passes() {
    let verdicts = run(&pair(Defect::None, AtomicScope::System), EFFORT);
    for verdict in &verdicts {
        // Elements below 8 bytes are not what its atomics are for.
        let expected = verdict.test == "neighbours of elements" || verdict.outcome == Outcome::Holds;
        assert!(expected && !verdict.is_bad(), "{verdict:?}");
    }
    assert_eq!(flush_method(&verdicts), FlushMethod::Delivery);
}

#[test]
fn completions_before_the_data() {
    for test in [transom_litmus::delivery, transom_litmus::delivery_passive, transom_litmus::inline] {
        let verdict = fails(Defect::EarlyCompletion, test);
        assert!(verdict.is_bad() && verdict.meaning.contains("too early"), "{verdict:?}");
    }
}

/// Data comes late, but nothing overtakes it: a get, or a message, tells when it is there.
#[test]
fn early_completions_in_order_leave_a_flush_method() {
    let verdicts = run(&pair(Defect::EarlyCompletion, AtomicScope::System), EFFORT);
    assert_eq!(flush_method(&verdicts), FlushMethod::ReadBack, "{verdicts:#?}");
}

#[test]
fn puts_that_overtake() {
    let verdict = fails(Defect::Overtaking, transom_litmus::order);
    assert!(!verdict.is_bad(), "{verdict:?}");
    assert_eq!(examine(Defect::Overtaking, transom_litmus::delivery).outcome, Outcome::Holds);
}

#[test]
fn messages_and_gets_that_overtake() {
    fails(Defect::Overtaking, transom_litmus::message_after_put);
    fails(Defect::Overtaking, transom_litmus::read_back);
}

#[test]
fn atomics_that_lose_updates() {
    for scope in [AtomicScope::Device, AtomicScope::System] {
        let pair = pair(Defect::TornAtomics, scope);
        let verdict = transom_litmus::against_cpu(&pair, EFFORT);
        assert_eq!(verdict.outcome, Outcome::Fails, "{verdict:?}");
        // It matters where it was promised.
        assert_eq!(verdict.is_bad(), scope == AtomicScope::System);
        let verdict = transom_litmus::against_device(&pair, EFFORT);
        assert!(verdict.is_bad(), "{verdict:?}");
    }
}

#[test]
fn wide_atomics_undo_their_neighbours_stores() {
    let verdict = fails(Defect::TornAtomics, transom_litmus::neighbour);
    assert!(!verdict.is_bad() && verdict.evidence.starts_with("lost: "), "{verdict:?}");
}

#[test]
fn no_atomics_is_no_failure() {
    let pair = pair(Defect::None, AtomicScope::None);
    for test in [transom_litmus::against_cpu, transom_litmus::against_device, transom_litmus::neighbour] {
        assert_eq!(test(&pair, EFFORT).outcome, Outcome::NotApplicable);
    }
}

/// libfabric#5662, #6244.
#[test]
fn complaint_27_stale_registrations() {
    for test in [transom_litmus::remap_put, transom_litmus::remap_get] {
        let verdict = fails(Defect::StaleRegistrations, test);
        assert!(verdict.is_bad() && verdict.meaning.contains("FI_MR_CACHE"), "{verdict:?}");
    }
}

/// libfabric#4803.
#[test]
fn complaint_22_completions_too_many() {
    let verdict = fails(Defect::DoubleCompletion, transom_litmus::count_audit);
    assert!(verdict.is_bad(), "{verdict:?}");
    assert!(!verdict.evidence.contains(" 0 completions too many"), "{verdict:?}");
}

#[test]
fn complaint_22_completions_missing() {
    let verdict = fails(Defect::LostCompletion, transom_litmus::count_audit);
    assert!(verdict.is_bad(), "{verdict:?}");
}

#[test]
fn a_target_that_must_make_calls() {
    let verdict = fails(Defect::NeedsTarget, transom_litmus::passive);
    assert!(!verdict.is_bad() && verdict.evidence.contains("put not"), "{verdict:?}");
    assert_eq!(
        examine(Defect::NeedsTarget, transom_litmus::delivery_passive).outcome,
        Outcome::NotApplicable
    );
    assert_eq!(examine(Defect::NeedsTarget, transom_litmus::delivery).outcome, Outcome::Holds);
}

#[test]
fn a_transport_that_fails_is_a_verdict() {
    for verdict in run(&pair(Defect::Refuses, AtomicScope::System), EFFORT) {
        assert_eq!(verdict.outcome, Outcome::Fails, "{verdict:?}");
        assert!(verdict.evidence.contains("the cable is out"), "{verdict:?}");
    }
}
