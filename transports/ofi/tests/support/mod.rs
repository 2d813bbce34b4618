//! Opens ranks for tests.

use std::sync::Arc;
use std::time::Duration;

use transom_conformance::{Subject, opened};
use transom_ofi::{Ofi, Options};
use transom_transport::Transport;

/// Nothing, and the tests are skipped, where libfabric is not installed, unless `TRANSOM_CI_REQUIRE_OFI=1`.
pub fn open(ranks: usize, patience: Option<Duration>) -> Option<Vec<Arc<dyn Transport>>> {
    let provider = std::env::var("TRANSOM_OFI_PROVIDER").ok();
    let options = || Options { ranks, provider: provider.clone(), loopback: true, patience };
    (0..ranks).map(|_| opened(Ofi::new(options()), "TRANSOM_CI_REQUIRE_OFI")).collect()
}

/// libfabric over loopback; `TRANSOM_OFI_PROVIDER` chooses the provider.
pub const OFI: Subject =
    Subject { open: |ranks| open(ranks, Some(transom_ofi::PATIENCE)), checks_keys: true, abandons: true };
