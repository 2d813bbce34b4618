//! libfabric transport: puts and gets as remote memory access of a provider, messages as its sends.
//!
//! One endpoint per rank. All of libfabric's objects of a rank are behind one lock, which lets the provider leave its own
//! locks out (`FI_THREAD_DOMAIN`); messages are handed out without it.
//!
//! - A put is posted with `FI_DELIVERY_COMPLETE`: its completion means that the bytes are in the target's memory.
//! - Nothing is left to the provider's promises of progress: `FI_PROGRESS_MANUAL`, and the runtime's own thread sleeps
//!   on the completion queue's descriptor.
//! - Keys of regions are random numbers of 64 bits where the provider lets us choose them.
//!
//! `TRANSOM_OFI_INTERFACE` names the network interface to listen on, or begins its address (`eth1`, `10.1.`); see
//! [`Options`] for the rest.

mod buffers;
mod interface;
mod ofi;
mod operations;
mod port;
mod posting;
mod progress;
mod provider;
mod region;
mod setup;
mod transport;
mod wait;
mod wire;

pub use ofi::Ofi;

use std::env;
use std::time::Duration;

use transom_transport::TransportResult;
use transom_transport::devices::may_be_there;

/// How long a peer may take nothing at first, where nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How to open the transport.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ranks in the job.
    pub ranks: usize,
    /// Provider to use; by default the first that can.
    pub provider: Option<String>,
    /// All ranks are on this host: listen on the loopback address only.
    pub loopback: bool,
    /// How long a peer may take nothing at first, before it counts as out of reach; none: for ever.
    pub patience: Option<Duration>,
}

/// The provider that drives a network card of this host: `provider`, if that is given, else the best there is.
///
/// # Errors
/// There is no libfabric, or no such provider.
pub fn card(provider: Option<&str>) -> TransportResult<String> {
    provider::card(setup::library()?, provider)
}

/// Whether [`card`] may find one: libfabric is not opened where the kernel shows no such device, and nobody has named a provider.
pub fn may_have_card(provider: Option<&str>) -> bool {
    // Another library may know of others.
    provider.is_some() || env::var_os("TRANSOM_LIBFABRIC").is_some() || may_be_there(&provider::DEVICES)
}

/// The transport's name.
pub(crate) const NAME: &str = "ofi";
