//! The same with as little of a device as is possible: one queue pair for all peers, two work requests under way, four
//! receives.

mod support;

use std::sync::Arc;

use transom_conformance::{Subject, conformance_tests};
use transom_transport::Transport;
use transom_verbs::{Connect, Limits};

fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    support::open_with(
        ranks,
        &Limits { queue_pairs: 1, depth: 2, completions: 1, receives: 4 },
        Connect::Auto,
    )
}

const TINY: Subject = Subject { open, checks_keys: true, abandons: true };

conformance_tests!(super::TINY);
