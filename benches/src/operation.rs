//! The operations that are measured.

use serde::{Deserialize, Serialize};

/// The largest transfer of `rma-bench`.
pub const MOST_BYTES: usize = 4 << 20;
/// Bytes of a word.
pub const WORD: usize = 8;

/// What the origin asks of the target's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `MPI_Put`.
    Put,
    /// `MPI_Get`.
    Get,
    /// `MPI_Accumulate`: a sum of doubles.
    Accumulate,
    /// `MPI_Get_accumulate`: a sum of doubles.
    GetAccumulate,
    /// `MPI_Fetch_and_op`: a sum of one word.
    FetchAndOp,
    /// `MPI_Compare_and_swap` of one word.
    CompareAndSwap,
}

impl Verb {
    /// Whether it moves one word, whatever size is asked for.
    pub fn is_of_a_word(self) -> bool {
        matches!(self, Self::FetchAndOp | Self::CompareAndSwap)
    }

    /// Whether it can move so many bytes: doubles are whole.
    pub fn moves(self, bytes: usize) -> bool {
        match self {
            Self::Put | Self::Get => true,
            Self::Accumulate | Self::GetAccumulate => bytes.is_multiple_of(WORD),
            Self::FetchAndOp | Self::CompareAndSwap => bytes == WORD,
        }
    }
}

/// How an operation is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// A flush, in an epoch of `MPI_Win_lock_all` that stays open
    Flush,
    /// An exclusive lock before, the unlock after
    Lock,
    /// A fence before and one after: all ranks of the window take part
    Fence,
    /// Start and complete, while the target posts and waits
    Pscw,
}

impl Sync {
    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Lock => "lock",
            Self::Fence => "fence",
            Self::Pscw => "pscw",
        }
    }

    /// Whether the target makes calls for it, too.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Fence | Self::Pscw)
    }
}

/// Some operations on one target, and what completes them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What each does.
    pub verb: Verb,
    /// Bytes of each.
    pub bytes: usize,
    /// How many before they are completed.
    pub count: usize,
    /// What completes them.
    pub sync: Sync,
}

impl Operation {
    /// One operation, flushed.
    pub const fn new(verb: Verb, bytes: usize) -> Self {
        Self { verb, bytes, count: 1, sync: Sync::Flush }
    }

    /// So many before they are completed.
    pub const fn times(self, count: usize) -> Self {
        Self { count, ..self }
    }

    /// Completed otherwise.
    pub const fn by(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// Bytes that all of them move.
    pub fn moved(self) -> usize {
        self.bytes * self.count
    }
}
