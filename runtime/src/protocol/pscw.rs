//! Post, start, complete, wait: which matching calls have arrived, counted per rank (MPI-4.1 §12.5.2).
//!
//! A post is consumed by one start of the rank that it names, a complete by one wait. Calls may run ahead: counts keep them
//! apart. What arrives is counted in shared memory by ranks of the node ([`super::signals`]), or by messages; what is
//! consumed is counted here. Memory and work grow with the groups, not with the job. Pure state, without threads or
//! messages.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use super::signals::{Word, count};

/// What one rank signals to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// My window is posted to you.
    Post,
    /// I have completed my accesses to your window.
    Complete,
}

/// What has arrived at one rank by messages, for one window. Ranks are those of the job.
#[derive(Debug, Default)]
pub struct Arrivals {
    posts: HashMap<usize, u64>,
    completes: HashMap<usize, u64>,
}

impl Arrivals {
    /// A message of `rank` has arrived.
    pub fn arrived(&mut self, call: Call, rank: usize) {
        let counts = match call {
            Call::Post => &mut self.posts,
            Call::Complete => &mut self.completes,
        };
        let arrived = counts.entry(rank).or_insert(0);
        *arrived = arrived.wrapping_add(1);
    }

    /// How many have.
    pub fn count(&self, call: Call, rank: usize) -> u64 {
        let counts = match call {
            Call::Post => &self.posts,
            Call::Complete => &self.completes,
        };
        counts.get(&rank).copied().unwrap_or(0)
    }
}

/// A count of each call.
#[derive(Debug, Default)]
pub struct Counts<W = AtomicU64> {
    posts: W,
    completes: W,
}

impl<W> Counts<W> {
    /// That of a call.
    pub fn of(&self, call: Call) -> &W {
        match call {
            Call::Post => &self.posts,
            Call::Complete => &self.completes,
        }
    }
}

/// How many of one peer's calls have been consumed.
#[derive(Debug, Default)]
pub struct Consumed<W = AtomicU64>(Counts<W>);

impl<W: Word> Consumed<W> {
    /// Whether one of those that have arrived, by signals and by messages together, is still to be consumed. Some may have
    /// been consumed before they arrived: ends of epochs without access, and exposures that were given up.
    #[inline]
    pub fn is_open(&self, call: Call, arrived: u64) -> bool {
        arrived.wrapping_sub(self.0.of(call).read()).cast_signed() > 0
    }

    /// Consumes the next, whether or not it has arrived. One thread at a time.
    #[inline]
    pub fn consume(&self, call: Call) {
        count(self.0.of(call));
    }
}

#[cfg(test)]
#[path = "pscw_tests.rs"]
mod tests;
