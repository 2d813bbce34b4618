//! The operations that are measured, on windows of both element types.

use std::hint::black_box;
use std::time::Duration;

use transom::{Job, LockKind, Result, Sum, Window};

use crate::options::Kind;
use crate::time::timed;

/// The largest transfer.
pub const MOST_BYTES: usize = 4 << 20;
/// Bytes of a word.
pub const WORD: usize = 8;

/// What rank 0 does to rank 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A put of so many bytes, and a flush.
    Put(usize),
    /// `count` puts of `bytes` each, and a flush.
    Puts {
        /// Bytes of each put.
        bytes: usize,
        /// Puts before the flush.
        count: usize,
    },
    /// A get of so many bytes, complete.
    Get(usize),
    /// Adds to a word and fetches what was there.
    FetchAdd,
    /// Compares a word and swaps it.
    CompareSwap,
    /// A sum of so many bytes of doubles, and a flush.
    Accumulate(usize),
    /// An exclusive lock, a put of a word, unlock.
    LockPut,
    /// A fence, a put of a word, a fence. Rank 1 takes part.
    FencePut,
}

impl Operation {
    /// Bytes of each transfer.
    pub fn bytes(self) -> usize {
        match self {
            Self::Put(bytes) | Self::Get(bytes) | Self::Accumulate(bytes) | Self::Puts { bytes, .. } => bytes,
            Self::FetchAdd | Self::CompareSwap | Self::LockPut | Self::FencePut => WORD,
        }
    }
}

/// The windows of one kind, and rank 0's buffers.
#[derive(Debug)]
pub struct Windows {
    words: Window<u64>,
    doubles: Window<f64>,
    own_words: Vec<u64>,
    own_doubles: Vec<f64>,
}

impl Windows {
    /// Collective.
    ///
    /// # Errors
    /// As [`transom::Communicator::allocate`].
    pub fn new(job: &Job, kind: Kind) -> Result<Self> {
        let count = MOST_BYTES / WORD;
        let (words, doubles) = match kind {
            Kind::Allocated => (job.allocate(count)?, job.allocate(count)?),
            Kind::Created => (job.create(vec![0; count])?, job.create(vec![0.0; count])?),
        };
        // Memory in use, as a program's is: its pages are there.
        words.local().write(0, &vec![0; count])?;
        doubles.local().write(0, &vec![0.0; count])?;
        Ok(Self { words, doubles, own_words: vec![1; count], own_doubles: vec![1.0; count] })
    }

    /// Time that rank 0 takes for `count` operations, after one to warm up.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn time(&mut self, operation: Operation, count: u64) -> Result<Duration> {
        let Self { words, doubles, own_words, own_doubles } = self;
        match operation {
            Operation::LockPut => timed(count, || {
                words.lock(LockKind::Exclusive, 1, |epoch| epoch.put_value(1, 0, black_box(1)))
            }),
            Operation::FencePut => timed(count, || words.fence(|epoch| epoch.put_value(1, 0, black_box(1)))),
            Operation::Accumulate(bytes) => doubles.lock_all(|epoch| {
                timed(count, || {
                    epoch.accumulate(1, 0, Sum, &own_doubles[..bytes / WORD])?;
                    epoch.flush(1)
                })
            }),
            Operation::Get(bytes) if bytes > WORD => words.lock_all(|epoch| {
                timed(count, || {
                    epoch.read(1, 0, &mut own_words[..bytes / WORD])?;
                    epoch.flush(1)
                })
            }),
            _ => time_words(words, own_words, operation, count),
        }
    }

    /// One operation in an epoch of its own.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn once(&mut self, operation: Operation) -> Result<()> {
        // The warm-up is the operation.
        self.time(operation, 0).map(drop)
    }

    /// Rank 1's part of what [`Windows::time`] does at rank 0.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn take_part(&mut self, operation: Operation, count: u64) -> Result<()> {
        match operation {
            Operation::FencePut => timed(count, || self.words.fence(|_| Ok(()))).map(drop),
            _ => Ok(()),
        }
    }

    /// Collective.
    ///
    /// # Errors
    /// As [`Window::free`].
    pub fn free(self) -> Result<()> {
        self.words.free()?;
        self.doubles.free()
    }
}

/// Operations on words inside one epoch.
fn time_words(words: &Window<u64>, own: &[u64], operation: Operation, count: u64) -> Result<Duration> {
    words.lock_all(|epoch| match operation {
        Operation::Put(WORD) => timed(count, || {
            epoch.put_value(1, 0, black_box(1))?;
            epoch.flush(1)
        }),
        Operation::Put(bytes) => timed(count, || {
            epoch.put(1, 0, &own[..bytes / WORD])?;
            epoch.flush(1)
        }),
        Operation::Puts { bytes: WORD, count: puts } => timed(count, || {
            (0..puts).try_for_each(|i| epoch.put_value(1, i, black_box(1)))?;
            epoch.flush(1)
        }),
        Operation::Puts { bytes, count: puts } => timed(count, || {
            (0..puts).try_for_each(|_| epoch.put(1, 0, &own[..bytes / WORD]))?;
            epoch.flush(1)
        }),
        Operation::FetchAdd => timed(count, || {
            black_box(epoch.fetch_add(1, 0, black_box(1))?);
            Ok(())
        }),
        Operation::CompareSwap => timed(count, || {
            black_box(epoch.compare_and_swap(1, 0, black_box(1), black_box(1))?);
            Ok(())
        }),
        _ => timed(count, || {
            black_box(epoch.get_value(1, 0)?);
            epoch.flush(1)
        }),
    })
}
