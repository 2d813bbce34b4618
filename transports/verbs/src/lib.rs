//! RDMA transport: puts, gets and atomics as work requests of reliable connected queue pairs, messages as sends.
//!
//! - A rank posts only on queue pairs that it has asked for itself, so each direction of traffic has its own. They are made
//!   when a peer is first needed, by datagrams or by rdma_cm (`connect`), and go when there are more than
//!   [`Limits::queue_pairs`]: any number of peers is reached with a bounded number of them.
//! - All queue pairs share one completion queue, and one receive queue for messages.
//! - Work requests wait for a moment while others to the same peer are under way, and are then posted together: one
//!   doorbell, one completion (`link`). One that is alone at its peer goes a short way (`alone`).
//! - Small puts are written into the work request; up to 16 KiB bytes are copied through registered buffers; longer ones
//!   are registered for as long as they are under way (`local`): nothing is remembered, so nothing can be stale.
//! - A work request that the target refuses breaks its queue pair. What was behind it is posted again on a new one.
//! - iWARP differs: there completions say less, and receives must be counted (`confirm`, `peer_receives`); a refusal ends all use
//!   of the peer, since nothing tells what was refused.
//!
//! All of a rank's verbs objects are behind one lock. `unsafe` is what posts or registers memory.

use std::time::Duration;

mod alone;
mod confirm;
mod connect;
mod datagrams;
mod device;
mod inbound;
mod link;
mod list;
mod local;
mod managed;
mod manager;
mod peer_receives;
mod poll;
mod pool;
mod port;
mod posting;
pub mod raw;
mod region;
mod report;
mod setup;
mod transport;
mod verbs;
mod wait;
mod wire;
mod work;
mod works;

pub use connect::Connect;
pub use device::{devices, may_have_devices};
pub use report::{DeviceReport, describe};
pub use verbs::Verbs;

/// How to open the transport.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ranks in the job.
    pub ranks: usize,
    /// This rank.
    pub rank: usize,
    /// Device to use, as `ibv_devices` names it; of several, with commas, the ranks take turns. By default the first whose
    /// port is up; one of iWARP, which has no atomics, only if there is no other.
    pub device: Option<String>,
    /// How queue pairs are connected.
    pub connect: Connect,
    /// How long a peer's device may leave requests without an answer before the peer is lost. Devices count in powers of two, and
    /// the longest that is not longer than this is taken: of 10 s, 7.5 s.
    pub silence: Duration,
    /// How much of the device to use.
    pub limits: Limits,
}

impl Options {
    /// How long a peer may be silent unless [`Options::silence`] is set.
    pub const SILENCE: Duration = Duration::from_secs(10);
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ranks: 0,
            rank: 0,
            device: None,
            connect: Connect::default(),
            silence: Self::SILENCE,
            limits: Limits::default(),
        }
    }
}

/// How much of the device to use. What the device does not have is not asked for.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Queue pairs to post on, at least 1. When one more peer is needed, the one that has been idle the longest goes.
    pub queue_pairs: usize,
    /// Work requests under way at a peer, at least 2, on iWARP 4.
    pub depth: usize,
    /// Completions that the queue has room for, at least 16 more than `receives`.
    pub completions: usize,
    /// Messages that may arrive before the first is taken, at least 4. On iWARP each peer has an eighth of so many for
    /// itself, 4 to 64.
    pub receives: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue_pairs: 1024, depth: 256, completions: 8192, receives: 128 }
    }
}

/// The transport's name.
pub(crate) const NAME: &str = "verbs";
