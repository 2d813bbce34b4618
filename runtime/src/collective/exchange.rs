//! One collective's transfers between ranks, split into messages and matched by sequence number.

use crate::comm::Channel;
use crate::protocol::matching::{Key, Mismatch};
use crate::protocol::wire::{HEADER_BYTES, Kind as Message};
use crate::{Class, Error, Result};

/// Which collective: a rank in another one is told so instead of waiting for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Barrier = 0,
    Broadcast = 1,
    Allgather = 2,
    Allreduce = 3,
    Window = 4,
    Fence = 5,
    Free = 6,
    Finalize = 7,
    Duplicate = 8,
    Split = 9,
    Create = 10,
}

impl Kind {
    fn name(code: u8) -> &'static str {
        const NAMES: [&str; 11] = [
            "barrier",
            "broadcast",
            "allgather",
            "allreduce",
            "window creation",
            "fence",
            "free",
            "the end of the job",
            "dup",
            "split",
            "communicator creation",
        ];
        NAMES.get(usize::from(code)).copied().unwrap_or("an unknown collective")
    }
}

/// One collective of one rank.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    channel: &'a Channel,
    kind: Kind,
    sequence: u64,
}

impl<'a> Exchange<'a> {
    /// Starts the next collective.
    pub fn new(channel: &'a Channel, kind: Kind) -> Self {
        Self { channel, kind, sequence: channel.next_sequence() }
    }

    /// Rank and size.
    pub fn place(&self) -> (usize, usize) {
        (self.channel.rank, self.channel.size)
    }

    fn operation(&self) -> &'static str {
        Kind::name(self.kind as u8)
    }

    /// Sends `bytes` to a peer, which receives them in the same round.
    pub fn send(&self, peer: usize, round: usize, bytes: &[u8]) -> Result<()> {
        let engine = &*self.channel.engine;
        let peer = self.channel.job_rank(peer);
        let room = engine.routes.to(peer).capabilities().max_message - HEADER_BYTES;
        let mut start = 0;
        loop {
            let part = &bytes[start..bytes.len().min(start + room)];
            let mut header = engine.header(Message::Collective).in_context(self.channel.context);
            header.op = self.kind as u8;
            header.offset = self.sequence;
            header.count = round as u64;
            header.value = bytes.len() as u64;
            header.compare = start as u64;
            engine.send(self.operation(), peer, &header, part)?;
            start += part.len();
            if start >= bytes.len() {
                return Ok(());
            }
        }
    }

    /// Waits for what a peer sends in this round.
    pub fn receive(&self, peer: usize, round: usize) -> Result<Vec<u8>> {
        let Channel { engine, context, .. } = self.channel;
        let source = self.channel.job_rank(peer);
        let key = Key { source, context: *context, sequence: self.sequence, round: round as u64 };
        let what = || self.awaited(peer, source);
        engine.wait_until(self.operation(), &what, None, || {
            match engine.matching.lock().take(key, self.kind as u8) {
                Ok(bytes) => bytes.map(Ok),
                Err(other) => Some(Err(self.mismatch(other))),
            }
        })
    }

    /// What a receive waits for, and what the peer does instead, as far as that is known.
    fn awaited(&self, peer: usize, source: usize) -> String {
        let Channel { engine, context, .. } = self.channel;
        let elsewhere = engine.matching.lock().elsewhere(source, *context);
        let elsewhere =
            elsewhere.map(|code| format!(" (it is in {} of another communicator)", Kind::name(code)));
        format!("rank {peer} to come to {}{}", self.operation(), elsewhere.unwrap_or_default())
    }

    fn mismatch(&self, other: Mismatch) -> Error {
        let message = format!(
            "rank {} is in {} while this rank is in {}: all ranks must call the same collectives in the same order",
            self.channel.group.rank_of(other.source).unwrap_or(other.source),
            Kind::name(other.collective),
            self.operation()
        );
        self.channel.error(Class::Collective, self.operation(), message)
    }

    /// A peer's bytes make no sense.
    pub fn malformed(&self, peer: usize, error: &dyn std::fmt::Display) -> Error {
        let message = format!("what rank {peer} sent makes no sense: {error}");
        self.channel.error(Class::Collective, self.operation(), message)
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        self.channel.engine.matching.lock().finish(self.channel.context, self.sequence);
    }
}
