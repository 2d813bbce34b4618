//! Signals in memory that two ranks of a node map: a cache line of counters and flags for each direction, and the threads
//! that sleep until one changes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use transom_transport::{Span, TransportResult, Words, barrier, memory};

use crate::protocol::pscw::Call;
use crate::protocol::signals::{Asleep, Sleepers as _};

/// What one rank signals to another, for one window or communicator: a cache line, so that the reader gets all counters and flags at
/// once.
#[derive(Debug, Clone)]
pub(crate) struct SignalLine(Words<{ SignalLine::BYTES / size_of::<u64>() }, u64>);

/// Words of a line: its owner, posts, completes, the two flags of fences or barriers, and the communicator's context.
const OWNER: usize = 0;
const POSTS: usize = 1;
const COMPLETES: usize = 2;
const FLAGS: usize = 3;
const CONTEXT: usize = 5;

impl SignalLine {
    pub const BYTES: usize = 64;

    /// The line at `offset` of a control block.
    pub fn find(control: &Span, offset: usize) -> TransportResult<Self> {
        Words::new(control, offset).map(Self)
    }

    /// Claims the line for rank `rank` of the window, unless another rank owns it.
    pub fn claim(&self, rank: usize) -> bool {
        let own = rank as u64 + 1;
        let taken = self.0[OWNER].compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(own)
    }

    /// Claims the line for rank `rank` of the communicator of a context, which has it from then on, unless another one has it.
    pub fn claim_in(&self, context: u64, rank: usize) -> bool {
        let own = context.wrapping_add(1);
        let taken = self.0[CONTEXT].compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        (taken.is_ok() || taken == Err(own)) && self.claim(rank)
    }

    /// Whether rank `rank` of the communicator owns it.
    #[inline]
    pub fn is_owned_in(&self, context: u64, rank: usize) -> bool {
        self.is_owned_by(rank) && self.0[CONTEXT].load(Ordering::Relaxed) == context.wrapping_add(1)
    }

    /// Whether rank `rank` of the window owns it.
    #[inline]
    pub fn is_owned_by(&self, rank: usize) -> bool {
        self.0[OWNER].load(Ordering::Acquire) == rank as u64 + 1
    }

    /// The count of a call.
    #[inline]
    pub fn calls(&self, call: Call) -> &AtomicU64 {
        match call {
            Call::Post => &self.0[POSTS],
            Call::Complete => &self.0[COMPLETES],
        }
    }

    /// The flags of fences or barriers.
    #[inline]
    pub fn flags(&self) -> [&AtomicU64; 2] {
        [&self.0[FLAGS], &self.0[FLAGS + 1]]
    }
}

/// Threads of this rank that sleep until a peer signals.
#[derive(Debug)]
pub(crate) struct Sleepers {
    words: Words<2>,
    /// Whether a sleeper executes the memory barrier of the threads that may wake it (membarrier).
    barriers: bool,
}

/// Words: how many sleep, and whether they execute the barrier for all processes of the node that have joined.
const COUNT: usize = 0;
const BARRIERS: usize = 1;

impl Sleepers {
    pub const BYTES: usize = 64;

    /// The sleepers of this rank, in its control block.
    pub fn new(words: &Span) -> TransportResult<Self> {
        let (words, barriers) = (Words::<2>::new(words, 0)?, barrier::join());
        words[BARRIERS].store(barriers.into(), Ordering::Release);
        Ok(Self { words, barriers })
    }

    /// This thread is about to sleep. To be followed by a last check. `None`: no wake-up can be relied on.
    pub fn announce_sleep(&self) -> Option<Asleep<'_, AtomicU32>> {
        let asleep = Asleep::new(&self.words[COUNT]);
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
    words: Words<2>,
    /// Whether they execute the barrier for this rank.
    barriers: bool,
}

impl PeerSleepers {
    /// The sleepers of a peer, in its control block.
    pub fn new(words: &Span, own: &Sleepers) -> TransportResult<Self> {
        let words = Words::<2>::new(words, 0)?;
        let barriers = own.has_barriers() && words[BARRIERS].load(Ordering::Acquire) == 1;
        Ok(Self { words, barriers })
    }

    /// Whether one of them must be woken, after a signal.
    #[inline]
    pub fn must_wake(&self) -> bool {
        if self.barriers {
            compiler_fence(Ordering::SeqCst);
        } else {
            memory::store_load_fence();
        }
        self.words[COUNT].any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_owner() -> TransportResult<()> {
        let memory = Span::anonymous(4096)?;
        let line = SignalLine::find(&memory, 0)?;
        assert!(line.claim(3) && line.claim(3) && !line.claim(4));
        assert!(line.is_owned_by(3) && !line.is_owned_by(4));
        // Of communicators: equal ranks of others are strangers, too.
        let line = SignalLine::find(&memory, SignalLine::BYTES)?;
        assert!(!line.is_owned_in(0, 0));
        assert!(line.claim_in(7, 3) && line.claim_in(7, 3) && !line.claim_in(7, 4) && !line.claim_in(8, 3));
        assert!(line.is_owned_in(7, 3) && !line.is_owned_in(7, 4) && !line.is_owned_in(8, 3));
        Ok(())
    }
}
