//! Signals between this rank and a peer in one window (post, complete, rounds of a fence): in shared memory where the two
//! have it, else by messages.

use std::sync::OnceLock;

use transom_transport::TransportResult;

use super::Core;
use crate::Result;
use crate::engine::{PeerSleepers, SignalLine};
use crate::protocol::pscw::{Call, Consumed, Counts};
use crate::protocol::signals::{self, Word};
use crate::protocol::wire::Kind;

/// Signals to and from a peer.
#[derive(Debug)]
pub(crate) struct PeerSignals {
    /// Where the peer signals this rank, if memory is shared with it and it owns the line.
    incoming: Option<SignalLine>,
    /// Where this rank signals the peer. None if it has to send messages.
    outgoing: OnceLock<Option<Outgoing>>,
    /// The peer's calls of post and complete that this rank has consumed.
    pub consumed: Consumed,
}

/// Where this rank signals a peer.
#[derive(Debug)]
struct Outgoing {
    line: SignalLine,
    sleepers: PeerSleepers,
    /// The calls that it has signalled there.
    told: Counts,
}

impl PeerSignals {
    /// Whether the peer may signal in shared memory.
    pub fn shares_memory(&self) -> bool {
        self.incoming.is_some()
    }
}

impl Core {
    /// Signals to and from a rank of the window.
    #[inline]
    pub fn signals(&self, rank: usize) -> &PeerSignals {
        let peer = &self.peers[rank];
        match peer.signals.get() {
            Some(signals) => signals,
            None => peer.signals.get_or_init(|| self.make_signals(rank)),
        }
    }

    #[cold]
    fn make_signals(&self, rank: usize) -> Box<PeerSignals> {
        let shares_memory =
            rank != self.rank && self.member.engine.routes.shares_memory(self.peers.world(rank));
        // Without a line here the peer has none either, and sends messages.
        let line = shares_memory
            .then(|| self.member.control.incoming_line(self.number, rank).ok().flatten())
            .flatten();
        Box::new(PeerSignals { incoming: line, outgoing: OnceLock::new(), consumed: Consumed::default() })
    }

    /// The line in which this rank signals another, if it has one.
    #[inline]
    fn outgoing(&self, operation: &'static str, rank: usize) -> Result<Option<&Outgoing>> {
        let outgoing = &self.signals(rank).outgoing;
        match outgoing.get() {
            Some(outgoing) => Ok(outgoing.as_ref()),
            None => {
                let found = self.find_outgoing(rank).map_err(|e| self.failed(operation, rank, &e))?;
                Ok(outgoing.get_or_init(|| found).as_ref())
            }
        }
    }

    #[cold]
    fn find_outgoing(&self, rank: usize) -> TransportResult<Option<Outgoing>> {
        let (engine, control) = (&self.member.engine, &self.member.control);
        let (world, number) = (self.peers.world(rank), self.peers.number(rank));
        if rank == self.rank {
            return Ok(None);
        }
        let line = control.outgoing_line(&engine.routes, world, number, self.rank)?;
        let outgoing = line.zip(control.sleepers_at(engine, world)?);
        Ok(outgoing.map(|(line, sleepers)| {
            let told: Counts = Counts::default();
            // Zero, unless another view of the window has signalled there.
            for call in [Call::Post, Call::Complete] {
                told.of(call).write(line.calls(call).read());
            }
            Outgoing { line, sleepers, told }
        }))
    }

    /// Signals another rank by `signal`, and wakes it if it sleeps. False if this rank has no line there, and has to send a
    /// message.
    #[inline]
    fn signal(&self, operation: &'static str, rank: usize, signal: impl FnOnce(&Outgoing)) -> Result<bool> {
        let Some(outgoing) = self.outgoing(operation, rank)? else { return Ok(false) };
        signal(outgoing);
        if outgoing.sleepers.must_wake() {
            self.ring(rank);
        }
        Ok(true)
    }

    #[cold]
    fn ring(&self, rank: usize) {
        let engine = &self.member.engine;
        engine.send_later(self.peers.world(rank), &engine.header(Kind::Ring), &[]);
    }

    /// Signals a post or complete to another rank in shared memory; returns whether that was possible.
    #[inline]
    pub fn signal_call(&self, operation: &'static str, rank: usize, call: Call) -> Result<bool> {
        let count = |to: &Outgoing| signals::count_there(to.line.calls(call), to.told.of(call));
        self.signal(operation, rank, count)
    }

    /// Signals round `sequence` of a fence, which is of a kind, to another rank in shared memory; returns whether that was
    /// possible.
    #[inline]
    pub fn signal_fence(
        &self,
        operation: &'static str,
        rank: usize,
        sequence: u64,
        kind: u8,
    ) -> Result<bool> {
        self.signal(operation, rank, |to| signals::flag(to.line.flags(), sequence, kind))
    }

    /// Whether a rank of the window has signalled that round, and of what kind it is if the flag still says so.
    #[inline]
    pub fn fence_signalled(&self, rank: usize, sequence: u64) -> Option<Option<u8>> {
        let line = self.signals(rank).incoming.as_ref()?;
        let flagged = signals::flagged(line.flags(), sequence)?;
        line.is_owned_by(rank).then_some(flagged)
    }

    /// How many posts or completes of a rank of the window have arrived.
    #[inline]
    fn arrived(&self, rank: usize, signals: &PeerSignals, call: Call) -> u64 {
        let signalled = signals.incoming.as_ref().and_then(|line| {
            let count = line.calls(call).read();
            line.is_owned_by(rank).then_some(count)
        });
        let messages = self.exposure.count_calls(call, || self.peers.world(rank));
        signalled.unwrap_or(0).wrapping_add(messages)
    }

    /// Whether a rank of the window has made a call that has not been consumed.
    #[inline]
    pub fn has_called(&self, rank: usize, call: Call) -> bool {
        self.has_signalled(rank, self.signals(rank), call)
    }

    /// The same where its signals have been found.
    #[inline]
    pub fn has_signalled(&self, rank: usize, signals: &PeerSignals, call: Call) -> bool {
        signals.consumed.is_open(call, self.arrived(rank, signals, call))
    }
}
