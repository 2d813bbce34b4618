//! Opens ranks for tests.

use std::sync::Arc;

use transom_conformance::Subject;
use transom_shm::Shm;
use transom_transport::Transport;

/// `/proc` is there wherever tests run.
#[allow(clippy::panic)]
fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    let transport = |_| match Shm::new(ranks) {
        Ok(shm) => Arc::new(shm) as Arc<dyn Transport>,
        Err(error) => panic!("{error}"),
    };
    Some((0..ranks).map(transport).collect())
}

/// Shared memory.
pub const SHM: Subject = Subject { open, checks_keys: false, abandons: false };
