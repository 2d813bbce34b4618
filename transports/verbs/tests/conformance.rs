//! What every transport must do, on the RDMA devices of this machine. `TRANSOM_VERBS_DEVICE` chooses some.

mod support;

use transom_conformance::conformance_tests;

conformance_tests!(super::support::VERBS);
