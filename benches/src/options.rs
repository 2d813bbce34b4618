//! Options of `rma-bench`.

use std::net::IpAddr;

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

/// One-sided communication between two ranks, beside its limits.
///
/// Run as `transom run -n 2 rma-bench`. Rank 0 measures; rank 1 only waits, computes, or takes part in measuring a limit.
/// TRANSOM_TRANSPORT=ofi measures libfabric instead of shared memory.
#[derive(Debug, Clone, Parser)]
#[command(name = "rma-bench", version)]
pub struct Options {
    /// Passive progress: time each operation while the target computes without a call to the runtime.
    #[arg(long)]
    pub passive: bool,

    /// Synchronisation against the number of ranks: 2, 3, 4, 6, 8, 12, 16, as far as the job has them.
    #[arg(long, conflicts_with_all = ["passive", "window", "address"])]
    pub sync: bool,

    /// Comma-separated values, all times in nanoseconds.
    #[arg(long)]
    pub csv: bool,

    /// A few iterations only: the figures mean nothing.
    #[arg(long)]
    pub quick: bool,

    /// Only windows of this kind.
    #[arg(long, value_enum)]
    pub window: Option<Kind>,

    /// Only operations whose name contains this; or, if given more than once, one of these.
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,

    /// No operations that move more bytes than this.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["passive", "sync"])]
    pub most: Option<usize>,

    /// Let the system move ranks between cores. By default each is bound to one; its progress thread never is.
    #[arg(long)]
    pub unbound: bool,

    /// Rank 1's address, as rank 0 reaches it, for the raw TCP limit [default: found out]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
}

impl Options {
    /// The kinds of windows to measure.
    pub fn kinds(&self) -> Vec<Kind> {
        self.window.map_or_else(|| vec![Kind::Allocated, Kind::Created], |kind| vec![kind])
    }

    /// Whether an operation of this name is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text))
    }
}

/// Whose memory a window is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The runtime's (`MPI_Win_allocate`), which ranks of one node map
    Allocated,
    /// The program's own (`MPI_Win_create`)
    Created,
    /// One range that all ranks map (`MPI_Win_allocate_shared`): on one node only
    Shared,
    /// Attached later (`MPI_Win_create_dynamic`)
    Dynamic,
}

impl Kind {
    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Created => "created",
            Self::Shared => "shared",
            Self::Dynamic => "dynamic",
        }
    }
}
