//! What TCP listens on.

use std::time::Duration;

use transom_tcp::{Options, Tcp};
use transom_transport::Transport;

/// How a rank of a job of two opens the transport here; `loopback`: the job is on this host alone.
pub(crate) fn options(rank: usize, loopback: bool) -> Options {
    // Times that make no sense are told of among the settings.
    let seconds = |name: &str| std::env::var(name).ok()?.trim().parse().ok().map(Duration::from_secs);
    Options {
        rank,
        ranks: 2,
        loopback,
        interface: std::env::var("TRANSOM_TCP_INTERFACE").ok(),
        connect_timeout: seconds("TRANSOM_TCP_CONNECT").unwrap_or(Options::CONNECT_TIMEOUT),
        peer_timeout: seconds("TRANSOM_TCP_SILENCE").unwrap_or(Options::PEER_TIMEOUT),
    }
}

/// Opens the transport as a rank of a job on several hosts does: what it says of itself, or why that is not possible.
pub(crate) fn choice() -> Result<String, String> {
    Tcp::new(&options(0, false)).map(|tcp| tcp.capabilities().provider.clone()).map_err(|e| e.to_string())
}

/// The addresses that a job on several hosts would listen on, best first.
pub(crate) fn fact() -> String {
    match transom_tcp::interfaces(&options(0, false)) {
        Ok(all) => {
            let all: Vec<_> = all.iter().map(|i| format!("{} ({})", i.address, i.name)).collect();
            all.join(", ")
        }
        Err(error) => error.to_string(),
    }
}
