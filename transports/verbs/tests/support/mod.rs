//! Opens ranks for tests.

use std::sync::Arc;

use transom_conformance::{Subject, opened};
use transom_transport::Transport;
use transom_verbs::{Connect, Limits, Options, Verbs};

/// Nothing, and the tests are skipped, where there is no device, unless `TRANSOM_CI_REQUIRE_VERBS=1`. Ranks take turns among
/// the devices, so that they talk across the wire where there are two.
pub fn open_with(ranks: usize, limits: &Limits, connect: Connect) -> Option<Vec<Arc<dyn Transport>>> {
    let device = std::env::var("TRANSOM_VERBS_DEVICE").ok();
    let device = device.or_else(|| transom_verbs::devices().ok().map(|names| names.join(",")));
    let options = |rank| {
        let (device, limits) = (device.clone(), limits.clone());
        Options { ranks, rank, device, limits, connect, ..Options::default() }
    };
    (0..ranks).map(|rank| opened(Verbs::new(&options(rank)), "TRANSOM_CI_REQUIRE_VERBS")).collect()
}

#[allow(dead_code, reason = "some tests have limits of their own")]
fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    open_with(ranks, &Limits::default(), Connect::Auto)
}

/// Verbs on the devices of this machine.
#[allow(dead_code, reason = "some tests have limits of their own")]
pub const VERBS: Subject = Subject { open, checks_keys: true, abandons: true };
