//! Opens ranks for tests.

use std::sync::Arc;

use transom_conformance::Subject;
use transom_tcp::{Options, Tcp};
use transom_transport::Transport;

/// How the ranks of tests are opened.
pub fn options(rank: usize, ranks: usize) -> Options {
    Options {
        rank,
        ranks,
        loopback: true,
        interface: None,
        connect_timeout: Options::CONNECT_TIMEOUT,
        peer_timeout: Options::PEER_TIMEOUT,
    }
}

fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    (0..ranks)
        .map(|rank| Tcp::new(&options(rank, ranks)).ok().map(|tcp| Arc::new(tcp) as Arc<dyn Transport>))
        .collect()
}

/// TCP over loopback.
pub const TCP: Subject = Subject { open, checks_keys: true, abandons: true };
