//! What every transport must do, on shared memory: several ranks in one process.

mod support;

use transom_conformance::conformance_tests;

conformance_tests!(super::support::SHM);
