//! Tests on this machine's RDMA devices, the first two or the only one. Skipped where there is none, unless
//! `TRANSOM_CI_REQUIRE_VERBS` is set.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod datagram;
mod failures;
mod managed;
mod messages;
mod one_sided;
mod queues;
mod setup;
mod support;
