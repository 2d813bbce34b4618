//! Kinds of windows.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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
