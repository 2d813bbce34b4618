//! Tests against the libfabric of this machine. Skipped where there is none, unless `TRANSOM_CI_REQUIRE_OFI` is set.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod loopback;
mod providers;
mod support;
