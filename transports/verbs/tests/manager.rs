//! The same with connections by rdma_cm, which devices need an IP address for: with plenty of everything, and with as little
//! of a device as is possible, so that connections come and go.

mod support;

use std::sync::Arc;

use transom_conformance::{Subject, conformance_tests};
use transom_transport::Transport;
use transom_verbs::{Connect, Limits};

fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    support::open_with(ranks, &Limits::default(), Connect::Manager)
}

fn open_tiny(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    let limits = Limits { queue_pairs: 1, depth: 2, completions: 1, receives: 4 };
    support::open_with(ranks, &limits, Connect::Manager)
}

const MANAGER: Subject = Subject { open, checks_keys: true, abandons: true };
const TINY: Subject = Subject { open: open_tiny, checks_keys: true, abandons: true };

conformance_tests!(super::MANAGER);

mod tiny {
    use super::conformance_tests;

    conformance_tests!(super::super::TINY);
}
