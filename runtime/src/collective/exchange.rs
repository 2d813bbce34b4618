//! One collective's transfers between ranks, split into messages and matched by sequence number.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use transom_transport::Payload;

use crate::comm::Channel;
use crate::protocol::matching::{Key, Matching, Mismatch, Refusal};
use crate::protocol::wire::{CARRIES, HEADER_BYTES, Header, Kind as Message};
use crate::waits::{Awaits, Subject};
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
    Reduce = 11,
    Gather = 12,
    Scatter = 13,
    Alltoall = 14,
    Scan = 15,
    Exscan = 16,
    ReduceScatter = 17,
    /// A fence that nothing precedes.
    FirstFence = 18,
    /// A fence that nothing succeeds.
    LastFence = 19,
    NeighbourAllgather = 20,
    NeighbourAlltoall = 21,
    /// No collective, but messages of two ranks that travel like those of one.
    Partitioned = Matching::PARTITIONED,
}

impl Kind {
    pub fn name(code: u8) -> &'static str {
        const NAMES: [&str; 23] = [
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
            "reduce",
            "gather",
            "scatter",
            "alltoall",
            "scan",
            "exscan",
            "reduce_scatter",
            "fence with NOPRECEDE",
            "fence with NOSUCCEED",
            "neighbour allgather",
            "neighbour alltoall",
            "a partitioned message",
        ];
        NAMES.get(usize::from(code)).copied().unwrap_or("an unknown collective")
    }
}

/// What a peer has sent, and whether that was in the other of two rounds.
pub(super) type Taken = (Vec<u8>, bool);

/// One collective of one rank. Its sends and receives wait as futures: a blocking call polls them itself, a nonblocking
/// one has the engine do it.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    channel: &'a Channel,
    kind: Kind,
    sequence: u64,
    /// Whether its call blocks.
    blocks: bool,
    /// The rank that is waited for, and in which round.
    pub(super) awaited: AtomicUsize,
    round: AtomicUsize,
    /// The rank for which there is no room, while a message to it waits for that.
    full: AtomicUsize,
    /// What a thread that blocks has taken of its messages.
    direct: Mutex<Vec<u8>>,
    taken: AtomicBool,
}

impl<'a> Exchange<'a> {
    /// Starts the next collective, which blocks.
    pub fn new(channel: &'a Channel, kind: Kind) -> Self {
        Self::of(channel, kind, channel.next_sequence(), true)
    }

    /// The collective of that number, which blocks.
    pub fn blocking(channel: &'a Channel, kind: Kind, sequence: u64) -> Self {
        Self::of(channel, kind, sequence, true)
    }

    /// The collective of that number, which goes on without its caller.
    pub fn numbered(channel: &'a Channel, kind: Kind, sequence: u64) -> Self {
        Self::of(channel, kind, sequence, false)
    }

    fn of(channel: &'a Channel, kind: Kind, sequence: u64, blocks: bool) -> Self {
        Self {
            channel,
            kind,
            sequence,
            blocks,
            awaited: AtomicUsize::new(channel.rank),
            round: AtomicUsize::new(0),
            full: AtomicUsize::new(channel.rank),
            direct: Mutex::default(),
            taken: AtomicBool::new(false),
        }
    }

    /// Rank and size.
    #[inline]
    pub fn place(&self) -> (usize, usize) {
        (self.channel.rank, self.channel.size)
    }

    /// The ranks that take part.
    #[inline]
    pub fn channel(&self) -> &'a Channel {
        self.channel
    }

    pub fn operation(&self) -> &'static str {
        Kind::name(self.kind as u8)
    }

    /// Which collective it is, and its number.
    pub fn number(&self) -> (Kind, u64) {
        (self.kind, self.sequence)
    }

    /// Whether its call blocks: then its futures are ready when they are polled first.
    #[inline]
    pub fn blocks(&self) -> bool {
        self.blocks
    }

    /// Waits for something in the form of the collective: in the calling thread, or as a future.
    #[inline]
    pub async fn wait<R>(&self, future: impl Future<Output = Result<R>>) -> Result<R> {
        if self.blocks { self.block(future) } else { future.await }
    }

    /// Runs a collective to its end in the calling thread.
    pub fn block<R>(&self, future: impl Future<Output = Result<R>>) -> Result<R> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        // A send is over at once, most often.
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        let what = || self.awaits_for();
        let takes = |header: &Header, kind, payload: Payload<'_>| self.takes(header, kind, payload);
        self.channel.engine.wait_taking(self.operation(), &what, takes, || {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            }
        })
    }

    /// Whether a message is one that a peer sends in this round.
    #[inline]
    pub fn is_of(&self, peer: usize, round: usize, header: &Header, kind: Message) -> bool {
        kind == Message::Collective
            && header.status != CARRIES
            && header.op == self.kind as u8
            && (header.offset, header.count) == (self.sequence, round as u64)
            && header.context() == self.channel.context
            && header.origin as usize == self.channel.job_rank(peer)
    }

    /// Takes a message whole, if it is the one that is waited for.
    #[inline]
    fn takes(&self, header: &Header, kind: Message, payload: Payload<'_>) -> bool {
        let peer = self.awaited.load(Ordering::Relaxed);
        let round = self.round.load(Ordering::Relaxed);
        if peer == self.channel.rank
            || !self.is_of(peer, round, header, kind)
            || self.taken.load(Ordering::Relaxed)
        {
            return false;
        }
        let taken = header.with_part(payload, |total, start, data| {
            let is_whole = (total, start) == (data.len() as u64, 0);
            if is_whole && !data.is_empty() {
                data.append_to(&mut self.direct.lock());
            }
            is_whole
        });
        if taken {
            self.taken.store(true, Ordering::Release);
        }
        taken
    }

    /// Bytes of data that one message to a rank of the job holds.
    pub fn room(&self, to: usize) -> usize {
        self.channel.engine.routes.route(to).capabilities.max_message - HEADER_BYTES
    }

    /// The message of a part of so many bytes of this round, from `start` on.
    #[inline]
    pub fn part<'b>(
        &self,
        (round, bytes): (usize, usize),
        start: usize,
        part: &'b [u8],
    ) -> (Header, &'b [u8]) {
        let mut header = self.channel.engine.header(Message::Collective).in_context(self.channel.context);
        header.op = self.kind as u8;
        header.offset = self.sequence;
        header.count = round as u64;
        header.value = bytes as u64;
        header.compare = start as u64;
        // What fits in the header, all of it, is one cache line on shared memory.
        if part.len() == bytes { header.carrying(part) } else { (header, part) }
    }

    /// Sends `bytes` to a peer, which receives them in the same round.
    pub async fn send(&self, peer: usize, round: usize, bytes: &[u8]) -> Result<()> {
        let engine = &*self.channel.engine;
        self.in_vain().map_or(Ok(()), Err)?;
        let to = self.channel.job_rank(peer);
        let room = self.room(to);
        let mut start = 0;
        loop {
            let part = &bytes[start..bytes.len().min(start + room)];
            let (header, payload) = self.part((round, bytes.len()), start, part);
            let attempt = || engine.try_send(self.operation(), to, &header, payload);
            match attempt() {
                Some(result) => result?,
                None => {
                    self.full.store(peer, Ordering::Relaxed);
                    // A peer that is gone makes no room.
                    let sent = engine.wait_for_space(|| attempt().or_else(|| self.in_vain().map(Err))).await;
                    self.full.store(self.channel.rank, Ordering::Relaxed);
                    sent?;
                }
            }
            start += part.len();
            if start >= bytes.len() {
                return Ok(());
            }
        }
    }

    /// Waits for what a peer sends in this round.
    pub fn receive(&self, peer: usize, round: usize) -> impl Future<Output = Result<Vec<u8>>> {
        std::future::poll_fn(move |_| match self.take(peer, round) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        })
    }

    /// Notes what is waited for, unless that has been taken and is to be fetched.
    pub fn awaits(&self, peer: usize, round: usize) {
        if !self.taken.load(Ordering::Acquire) {
            self.awaited.store(peer, Ordering::Relaxed);
            self.round.store(round, Ordering::Relaxed);
        }
    }

    /// What a peer has sent in this round, if it has come.
    pub fn take(&self, peer: usize, round: usize) -> Option<Result<Vec<u8>>> {
        self.take_either(peer, round, None).map(|taken| taken.map(|(bytes, _)| bytes))
    }

    /// The same, or what it has sent in the other round, and whether it is that.
    pub fn take_either(&self, peer: usize, round: usize, other: Option<usize>) -> Option<Result<Taken>> {
        if let Some(revoked) = self.revoked() {
            return Some(Err(revoked));
        }
        let is_awaited =
            || (self.awaited.load(Ordering::Relaxed), self.round.load(Ordering::Relaxed)) == (peer, round);
        if self.taken.load(Ordering::Acquire) && is_awaited() {
            self.taken.store(false, Ordering::Release);
            self.awaited.store(self.channel.rank, Ordering::Relaxed);
            return Some(Ok((std::mem::take(&mut *self.direct.lock()), false)));
        }
        if !self.may_be_matched() {
            self.awaits(peer, round);
            return self.in_vain().map(Err);
        }
        match self.take_matched(peer, round, other) {
            Ok(None) => {
                self.awaits(peer, round);
                self.in_vain().map(Err)
            }
            Ok(Some(taken)) => Some(Ok(taken)),
            Err(refusal) => Some(Err(self.refused(peer, refusal))),
        }
    }

    /// Whether the table of what has come may know of something that concerns this collective.
    #[inline]
    pub fn may_be_matched(&self) -> bool {
        let engine = &self.channel.engine;
        engine.has_collectives.load(Ordering::Acquire) || engine.waiting.load(Ordering::Acquire)
    }

    fn take_matched(
        &self,
        peer: usize,
        round: usize,
        other: Option<usize>,
    ) -> std::result::Result<Option<Taken>, Refusal> {
        let mut matching = self.channel.engine.matching.lock();
        if let Some(bytes) = matching.take(self.key(peer, round), self.kind as u8)? {
            return Ok(Some((bytes, false)));
        }
        let Some(other) = other else { return Ok(None) };
        Ok(matching.take(self.key(peer, other), self.kind as u8)?.map(|bytes| (bytes, true)))
    }

    /// All that a peer has sent in this round, of so many bytes, behind those that were taken before, if it has come: with room for
    /// these.
    pub fn take_behind(
        &self,
        peer: usize,
        round: usize,
        (taken, total): (usize, usize),
    ) -> Result<Option<Vec<u8>>> {
        let matched = self.channel.engine.matching.lock().take_behind(self.key(peer, round), taken as u64);
        match matched.map_err(|refusal| self.refused(peer, refusal))? {
            Some(all) if all.len() != total => Err(self.malformed(peer, &"parts of two messages")),
            matched => Ok(matched),
        }
    }

    fn key(&self, peer: usize, round: usize) -> Key {
        let source = self.channel.job_rank(peer);
        Key { source, context: self.channel.context, sequence: self.sequence, round: round as u64 }
    }

    /// That the communicator is revoked.
    #[inline]
    pub fn revoked(&self) -> Option<Error> {
        // The job ends on it all the same.
        if self.kind == Kind::Finalize {
            return None;
        }
        self.channel.check_use(self.operation()).err()
    }

    /// The error of a member that has died, which the others would wait for: also who need not hear from it; or that the communicator
    /// is revoked.
    pub fn in_vain(&self) -> Option<Error> {
        let engine = &self.channel.engine;
        if !engine.dead.any() {
            return None;
        }
        if let Some(revoked) = self.revoked() {
            return Some(revoked);
        }
        match self.kind {
            // Two ranks' own affair: their wait says whom it needs.
            Kind::Partitioned => None,
            _ => engine.dead_among(self.operation(), &self.channel.group, 0),
        }
    }

    /// The rank that is waited for: to take something, or to send it.
    fn holding_up(&self) -> usize {
        match self.full.load(Ordering::Relaxed) {
            own if own == self.channel.rank => self.awaited.load(Ordering::Relaxed),
            full => full,
        }
    }

    /// What this rank waits for, and what the peer does instead, as far as that is known.
    pub fn awaited(&self) -> String {
        let Channel { engine, context, .. } = self.channel;
        let peer = self.holding_up();
        let (matching, source) = (engine.matching.lock(), self.channel.job_rank(peer));
        let form = |(sequence, code)| Some((self.channel.other_form(self.sequence, sequence)?, code));
        let instead = match matching.of_source(source, *context).find_map(form) {
            Some((form, code)) => {
                format!(" (it is in the {form} {}, which matches no other)", Kind::name(code))
            }
            None => matching.elsewhere(source, *context).map_or_else(String::new, |code| {
                format!(" (it is in {} of another communicator)", Kind::name(code))
            }),
        };
        format!("rank {peer} to come to {}{instead}", self.operation())
    }

    /// The same, as a wait notes it.
    pub fn awaits_for(&self) -> Awaits {
        let subject = Subject::Collective { context: self.channel.context, sequence: self.sequence };
        let peer = self.channel.job_rank(self.holding_up());
        let on = (peer != self.channel.engine.rank).then_some(peer);
        let awaits = Awaits::new(self.awaited(), subject, on);
        let awaits = if self.kind == Kind::Finalize { awaits } else { awaits.on_channel(self.channel) };
        if self.kind == Kind::Partitioned { awaits } else { awaits.among(&self.channel.group) }
    }

    /// Another rank's bytes are of another length than this one's.
    pub fn other_length(&self, peer: usize, theirs: usize, own: usize) -> Error {
        let message = format!("rank {peer} has {theirs} bytes, this rank {own}: all must have as many");
        self.channel.error(Class::Count, self.operation(), message)
    }

    /// What a peer has sent cannot be taken.
    pub fn refused(&self, peer: usize, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Mismatch(other) => self.mismatch(other),
            Refusal::NoMemory(bytes) => {
                let message = format!("no memory for {bytes} bytes from rank {peer}");
                self.channel.error(Class::NoMemory, self.operation(), message)
            }
        }
    }

    /// Another rank is in another collective.
    pub fn mismatch(&self, other: Mismatch) -> Error {
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
        self.channel.engine.finish_collective(self.channel.context, self.sequence);
        if self.blocks {
            // Word of a barrier before, which came late, would have each of the next look for what it is about.
            self.channel.engine.forget_waiting(self.channel.context, self.sequence);
        }
    }
}
