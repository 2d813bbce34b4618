//! The limit of the transport over RDMA: the same requests on a queue pair of its own between the same two devices, posted
//! and polled for in a plain loop. The memory is registered once, and its pages are there.

use std::time::{Duration, Instant};

use anyhow::Context;
use transom::Communicator;
use transom_verbs::raw::{Raw, RawAddress, RawTransfer};

pub use transom_verbs::raw::RawVerb as Verb;

/// What one operation asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// What each does.
    pub verb: Verb,
    /// Bytes of each.
    pub bytes: usize,
    /// How many, before the end of all is awaited.
    pub count: usize,
    /// At how many places, one behind the other at both ends: they go through them in turns.
    pub places: usize,
    /// How many are posted with one doorbell and one completion.
    pub together: usize,
}

impl Requests {
    /// As many with one doorbell as bring anything.
    pub const TOGETHER: usize = 32;

    /// For the table.
    pub fn name(self) -> String {
        let verb = match self.verb {
            Verb::Write => "write",
            Verb::Read => "read",
            Verb::FetchAdd => "fetch-and-add",
            Verb::CompareSwap => "compare-and-swap",
        };
        match self {
            Self { count: 1, .. } => format!("RDMA {verb}"),
            Self { count, together: 1, .. } => format!("RDMA: {count} {verb}s, each with a doorbell"),
            Self { count, together, .. } if together < count => {
                format!("RDMA: {count} {verb}s, {together} a doorbell")
            }
            Self { count, .. } => format!("RDMA: {count} {verb}s, one doorbell"),
        }
    }
}

/// This rank's end.
#[derive(Debug)]
pub struct Device(Raw);

impl Device {
    /// An end with so many bytes, connected. Collective.
    pub fn connect(pair: &Communicator, bytes: usize) -> anyhow::Result<Self> {
        let device = std::env::var("TRANSOM_VERBS_DEVICE").ok();
        let mut raw = Raw::open(device.as_deref(), pair.rank(), bytes).context("the raw RDMA limit")?;
        let all: Vec<Vec<u64>> = pair.allgather(&raw.address())?;
        let peer = RawAddress::try_from(&all[1 - pair.rank()][..])?;
        raw.connect(&peer).context("the raw RDMA limit")?;
        pair.barrier()?;
        Ok(Self(raw))
    }

    /// The requests, `count` times; to be called by one of the ranks.
    pub fn sample(&mut self, requests: Requests, count: u64) -> anyhow::Result<Duration> {
        let Requests { verb, bytes, count: each, places, together } = requests;
        let transfer = RawTransfer { verb, bytes, places };
        let mut once = || self.0.run(transfer, each as u64, together);
        once()?;
        let start = Instant::now();
        for _ in 0..count {
            once()?;
        }
        Ok(start.elapsed())
    }
}
