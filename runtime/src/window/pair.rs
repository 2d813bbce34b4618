//! What this rank and a peer signal each other in one window: in words that they raise in each other's memory where they share
//! it, else by messages.

use std::sync::OnceLock;

use transom_transport::TransportResult;

use super::Core;
use crate::Result;
use crate::engine::{Line, PeerSleepers};
use crate::protocol::pscw::{Call, Consumed};
use crate::protocol::signals::{self, Word};
use crate::protocol::wire::Kind;

/// Signals to and from a peer.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Where the peer raises words, if memory is shared with it and the line is its own.
    heard: Option<Line>,
    /// Where this rank does. Nowhere if it has to send messages.
    told: OnceLock<Option<(Line, PeerSleepers)>>,
    /// The peer's calls of post and complete that this rank has consumed.
    pub consumed: Consumed,
}

impl Pair {
    /// Whether the peer may raise words here.
    pub fn is_near(&self) -> bool {
        self.heard.is_some()
    }
}

impl Core {
    /// Signals to and from a rank of the window.
    #[inline]
    pub fn pair(&self, rank: usize) -> &Pair {
        let peer = &self.peers[rank];
        match peer.pair.get() {
            Some(pair) => pair,
            None => peer.pair.get_or_init(|| self.make_pair(rank)),
        }
    }

    #[cold]
    fn make_pair(&self, rank: usize) -> Box<Pair> {
        let near = rank != self.rank && self.member.engine.routes.is_near(self.peers.world(rank));
        // A line that cannot be found is nobody's: its rank cannot raise words in it either.
        let line = near.then(|| self.member.control.own_line(self.number, rank).ok().flatten()).flatten();
        Box::new(Pair { heard: line, told: OnceLock::new(), consumed: Consumed::default() })
    }

    /// The line in which this rank raises words at another, if it has one.
    #[inline]
    fn line_at(&self, operation: &'static str, rank: usize) -> Result<Option<&(Line, PeerSleepers)>> {
        let told = &self.pair(rank).told;
        match told.get() {
            Some(told) => Ok(told.as_ref()),
            None => {
                let found = self.find_line(rank).map_err(|e| self.failed(operation, rank, &e))?;
                Ok(told.get_or_init(|| found).as_ref())
            }
        }
    }

    #[cold]
    fn find_line(&self, rank: usize) -> TransportResult<Option<(Line, PeerSleepers)>> {
        let (engine, control) = (&self.member.engine, &self.member.control);
        let (world, number) = (self.peers.world(rank), self.peers.number(rank));
        if rank == self.rank {
            return Ok(None);
        }
        let line = control.line_at(&engine.routes, world, number, self.rank)?;
        Ok(line.zip(control.sleepers_at(engine, world)?))
    }

    /// Raises words of this rank's at another by `raise`, and wakes the other if it sleeps. False if it has none there, and
    /// has to send a message.
    #[inline]
    fn raise(
        &self,
        operation: &'static str,
        rank: usize,
        raise: impl FnOnce(&Line) -> TransportResult<()>,
    ) -> Result<bool> {
        let Some((line, sleepers)) = self.line_at(operation, rank)? else { return Ok(false) };
        let ring = raise(line).and_then(|()| sleepers.must_ring());
        if ring.map_err(|e| self.failed(operation, rank, &e))? {
            self.ring(rank);
        }
        Ok(true)
    }

    #[cold]
    fn ring(&self, rank: usize) {
        let engine = &self.member.engine;
        engine.send_later(self.peers.world(rank), &engine.header(Kind::Ring), &[]);
    }

    /// Counts a call at another rank, and returns whether that was possible.
    #[inline]
    pub fn raise_call(&self, operation: &'static str, rank: usize, call: Call) -> Result<bool> {
        self.raise(operation, rank, |line| {
            signals::count(line.calls(call)?);
            Ok(())
        })
    }

    /// Raises the flag of round `sequence` of fences, which is of a kind, at another rank; returns whether that was possible.
    #[inline]
    pub fn raise_flag(&self, operation: &'static str, rank: usize, sequence: u64, kind: u8) -> Result<bool> {
        self.raise(operation, rank, |line| {
            signals::flag(line.flags()?, sequence, kind);
            Ok(())
        })
    }

    /// Whether a rank of the window has raised that flag, and of what kind the round is if it still says so.
    #[inline]
    pub fn flagged(&self, rank: usize, sequence: u64) -> Option<Option<u8>> {
        let line = self.pair(rank).heard.as_ref()?;
        let flagged = signals::flagged(line.flags().ok()?, sequence)?;
        line.is_of(rank).ok()?.then_some(flagged)
    }

    /// How often a rank of the window has made a call, as far as it has arrived.
    #[inline]
    fn arrived(&self, rank: usize, pair: &Pair, call: Call) -> u64 {
        let raised = pair.heard.as_ref().and_then(|line| {
            let count = line.calls(call).ok()?.read();
            line.is_of(rank).ok()?.then_some(count)
        });
        let messages = self.exposure.count_calls(call, || self.peers.world(rank));
        raised.unwrap_or(0).wrapping_add(messages)
    }

    /// Whether a rank of the window has made a call that has not been consumed.
    #[inline]
    pub fn has_called(&self, rank: usize, call: Call) -> bool {
        let pair = self.pair(rank);
        pair.consumed.is_open(call, self.arrived(rank, pair, call))
    }
}
