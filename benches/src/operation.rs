//! The operations that are measured.

use serde::{Deserialize, Serialize};

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

    /// Whether many of them go to different places. Sums are of one place.
    fn goes_apart(self) -> bool {
        matches!(self, Self::Put | Self::Get)
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
    /// At how many places, one behind the other at both ends: puts and gets go through them in turns.
    pub places: usize,
    /// What completes them.
    pub sync: Sync,
}

impl Operation {
    /// One operation, flushed.
    pub const fn new(verb: Verb, bytes: usize) -> Self {
        Self { verb, bytes, count: 1, places: 1, sync: Sync::Flush }
    }

    /// So many before they are completed; puts and gets at different places, as far as so many bytes of memory allow.
    pub fn times(self, count: usize, memory: usize) -> Self {
        let places = if self.verb.goes_apart() { (memory / self.bytes.max(1)).clamp(1, count) } else { 1 };
        Self { count, places, ..self }
    }

    /// Completed otherwise.
    pub const fn by(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// Whether it is one word, which travels as a value.
    pub fn is_of_value(self) -> bool {
        self.bytes == WORD && self.count == 1
    }

    /// What each moves, and where.
    pub fn transfers(self) -> Transfers {
        Transfers { bytes: self.bytes, places: self.places }
    }

    /// Bytes that all of them move.
    pub fn moved(self) -> usize {
        self.bytes * self.count
    }
}

/// Transfers of so many bytes each, one behind the other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfers {
    /// Bytes of each.
    pub bytes: usize,
    /// Places, which are gone through in turns.
    pub places: usize,
}

impl Transfers {
    /// All of them to one place.
    pub const fn to_one_place(bytes: usize) -> Self {
        Self { bytes, places: 1 }
    }

    /// Bytes of all places.
    pub fn memory(self) -> usize {
        self.bytes * self.places
    }

    /// Where the transfers begin, one after the other, without an end.
    pub fn offsets(self) -> Offsets {
        Offsets { next: 0, transfers: self }
    }
}

/// Where transfers begin. An addition and a comparison each: those of the standard library take longer than a small put does.
#[derive(Debug)]
pub struct Offsets {
    next: usize,
    transfers: Transfers,
}

impl Offsets {
    /// Of the next transfer.
    #[inline]
    pub fn step(&mut self) -> usize {
        let at = self.next;
        self.next += self.transfers.bytes;
        if self.next >= self.transfers.memory() {
            self.next = 0;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_far_apart_as_there_is_memory() {
        let put = |memory| Operation::new(Verb::Put, 8).times(4, memory).transfers();
        let offsets = |memory| {
            let mut offsets = put(memory).offsets();
            [(); 5].map(|()| offsets.step())
        };
        assert_eq!(offsets(1000), [0, 8, 16, 24, 0]);
        assert_eq!(offsets(23), [0, 8, 0, 8, 0]);
        assert_eq!(offsets(0), [0; 5]);
        assert_eq!(Operation::new(Verb::Accumulate, 8).times(4, 1000).places, 1);
    }
}
