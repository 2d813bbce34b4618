//! What every transport must do, on TCP over loopback.

mod support;

use transom_conformance::conformance_tests;

conformance_tests!(super::support::TCP);
