//! Opens ranks for tests.

use std::sync::Arc;

use transom_conformance::Subject;
use transom_ofi::{Ofi, Options};
use transom_transport::{Transport, TransportError};

/// Nothing, and the tests are skipped, where libfabric is not installed, unless `TRANSOM_CI_REQUIRE_OFI=1`.
#[allow(clippy::panic)]
fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    let provider = std::env::var("TRANSOM_OFI_PROVIDER").ok();
    let required = std::env::var("TRANSOM_CI_REQUIRE_OFI").is_ok_and(|value| value == "1");
    (0..ranks)
        .map(|_| match Ofi::new(Options { ranks, provider: provider.clone(), loopback: true }) {
            Ok(ofi) => Some(Arc::new(ofi) as Arc<dyn Transport>),
            Err(TransportError::Unavailable { reason, .. }) if !required => {
                println!("skipped: {reason}");
                None
            }
            Err(error) => panic!("{error}"),
        })
        .collect()
}

/// libfabric over loopback; `TRANSOM_OFI_PROVIDER` chooses the provider.
pub const OFI: Subject = Subject { open, checks_keys: true, abandons: true };
