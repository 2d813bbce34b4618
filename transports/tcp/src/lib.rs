//! TCP transport: puts, gets and messages over sockets of the kernel, with nothing to install.
//!
//! One connection for each pair of ranks, made when it is first needed. On it travel records (`wire.rs`): a put with its data, a
//! get, a reply, a message, a count of the puts that are in memory. The target's side of puts and gets is in
//! [`progress`](transom_transport::Transport::progress), and asks no more than that somebody calls it.
//!
//! - All of a rank is behind one lock (`port.rs`); messages are handed out without it.
//! - A record goes out at once if it is the first to its peer since somebody looked for arrivals. Those behind it gather, and
//!   leave together when they are many, or with the next look (`posting.rs`).
//! - Long data is sent from where it is and received where it belongs (`output.rs`, `input.rs`).
//! - Who connects proves to know secrets that the job's ranks exchanged when it started (`handshake.rs`).

mod card;
mod connect;
mod dial;
mod handshake;
mod input;
mod interface;
mod link;
mod listen;
mod output;
mod parse;
mod port;
mod posting;
mod reading;
mod region;
mod replies;
mod socket;
mod tcp;
mod transport;
mod under_way;
mod wait;
mod wire;

pub use interface::{Interface, interfaces};
pub use tcp::Tcp;

use std::time::Duration;

/// How to open the transport.
#[derive(Debug, Clone)]
pub struct Options {
    /// This rank.
    pub rank: usize,
    /// Ranks in the job.
    pub ranks: usize,
    /// All ranks are on this host: listen on the loopback address only, unless `interface` says otherwise.
    pub loopback: bool,
    /// Interfaces to listen on: names, addresses and networks (`eth0,10.1.0.0/16`); by default all that are up.
    pub interface: Option<String>,
    /// How long a peer is tried before it counts as unreachable.
    pub connect_timeout: Duration,
    /// How long a peer's host may leave data unacknowledged before it counts as gone.
    pub peer_timeout: Duration,
}

impl Options {
    /// How long a peer is tried, unless something else is asked for.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long a host may be silent, unless something else is asked for.
    pub const PEER_TIMEOUT: Duration = Duration::from_secs(10);
}

/// The transport's name.
pub(crate) const NAME: &str = "tcp";
