//! Signals in memory that two ranks of a node map: a cache line of counters and flags for each direction, and the threads
//! that sleep until one changes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use transom_transport::{Span, TransportResult, barrier, memory};

use crate::protocol::pscw::Call;
use crate::protocol::signals::{Asleep, Sleepers as _};

/// What one rank signals to another, for one window: a cache line, so that the reader gets all counters and flags at once.
#[derive(Debug, Clone)]
pub(crate) struct SignalLine(Span);

/// Offsets in a line: its owner, posts, completes, and the two flags of fences.
const OWNER: usize = 0;
const POSTS: usize = 8;
const COMPLETES: usize = 16;
const FLAGS: usize = 24;

impl SignalLine {
    pub const BYTES: usize = 64;

    /// The line at `offset` of a control block.
    pub fn find(control: &Span, offset: usize) -> TransportResult<Self> {
        let line = Self(control.part(offset, Self::BYTES)?);
        line.0.word64(0)?;
        Ok(line)
    }

    /// Claims the line for rank `rank` of the window, unless another rank owns it.
    pub fn claim(&self, rank: usize) -> TransportResult<bool> {
        let (own, owner) = (rank as u64 + 1, self.0.word64(OWNER)?);
        let taken = owner.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        Ok(taken.is_ok() || taken == Err(own))
    }

    /// Whether rank `rank` of the window owns it.
    #[inline]
    pub fn is_owned_by(&self, rank: usize) -> TransportResult<bool> {
        Ok(self.0.word64(OWNER)?.load(Ordering::Acquire) == rank as u64 + 1)
    }

    /// The count of a call.
    #[inline]
    pub fn calls(&self, call: Call) -> TransportResult<&AtomicU64> {
        self.0.word64(match call {
            Call::Post => POSTS,
            Call::Complete => COMPLETES,
        })
    }

    /// The flags of fences.
    #[inline]
    pub fn flags(&self) -> TransportResult<[&AtomicU64; 2]> {
        Ok([self.0.word64(FLAGS)?, self.0.word64(FLAGS + 8)?])
    }
}

/// Threads of this rank that sleep until a peer signals.
#[derive(Debug)]
pub(crate) struct Sleepers {
    words: Span,
    /// Whether a sleeper executes the memory barrier of the threads that may wake it (membarrier).
    barriers: bool,
}

/// Offsets: how many sleep, and whether they execute the barrier for all processes of the node that have joined.
const COUNT: usize = 0;
const BARRIERS: usize = 4;

impl Sleepers {
    pub const BYTES: usize = 64;

    /// The sleepers of this rank, in its control block.
    pub fn new(words: Span) -> TransportResult<Self> {
        let barriers = barrier::join();
        words.word32(COUNT)?;
        words.word32(BARRIERS)?.store(barriers.into(), Ordering::Release);
        Ok(Self { words, barriers })
    }

    /// This thread is about to sleep. To be followed by a last check. `None`: no wake-up can be relied on.
    pub fn announce_sleep(&self) -> Option<Asleep<'_, AtomicU32>> {
        let asleep = Asleep::new(self.words.word32(COUNT).ok()?);
        if self.barriers {
            return barrier::everywhere().then_some(asleep);
        }
        memory::store_load_fence();
        Some(asleep)
    }

    /// Whether these threads execute the barrier for their peers.
    pub fn has_barriers(&self) -> bool {
        self.barriers
    }
}

/// Threads of a peer that sleep until this rank signals.
#[derive(Debug)]
pub(crate) struct PeerSleepers {
    words: Span,
    /// Whether they execute the barrier for this rank.
    barriers: bool,
}

impl PeerSleepers {
    /// The sleepers of a peer, in its control block.
    pub fn new(words: Span, own: &Sleepers) -> TransportResult<Self> {
        words.word32(COUNT)?;
        let barriers = own.has_barriers() && words.word32(BARRIERS)?.load(Ordering::Acquire) == 1;
        Ok(Self { words, barriers })
    }

    /// Whether one of them must be woken, after a signal.
    #[inline]
    pub fn must_wake(&self) -> TransportResult<bool> {
        if self.barriers {
            compiler_fence(Ordering::SeqCst);
        } else {
            memory::store_load_fence();
        }
        Ok(self.words.word32(COUNT)?.any())
    }
}
