//! Peers that are not as they should be, and how ranks find those that are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers are part of tests as well")]

mod connecting;
mod hosts;
mod peer;
mod records;
mod strangers;
mod streams;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use transom_tcp::Tcp;
use transom_transport::Transport;

/// A rank that listens on loopback.
fn rank(rank: usize, ranks: usize) -> Arc<Tcp> {
    Arc::new(Tcp::new(&support::options(rank, ranks)).unwrap())
}

/// Connects ranks to each other and to themselves.
fn introduce(ranks: &[Arc<Tcp>]) {
    for transport in ranks {
        for (peer, other) in ranks.iter().enumerate() {
            transport.connect(peer, &other.address()).unwrap();
        }
    }
}
