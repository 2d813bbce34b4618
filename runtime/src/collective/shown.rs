//! Bytes that a rank shows to others, who get them from there, and what is sent instead where it can show none.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use transom_transport::Region;

use super::direct::Arrived;
use super::exchange::{Exchange, Taken};
use super::long::others;
use crate::comm::Channel;
use crate::engine::two_sided::{fetch_all, fetch_region, fetch_to, register};
use crate::engine::{Promise, Route};
use crate::protocol::wire::HEADER_BYTES;
use crate::{Class, RawBuffer, Result, memory};

/// So many bytes are long: getting them costs two messages more than sending them.
pub const LONG: usize = 64 << 10;

/// The same where showing them costs nothing and a message has only room for a page. No transport shows fewer.
pub const LONG_IN_PAGES: usize = 16 << 10;

/// The rounds of what is shown, and of what is said when it has been fetched, behind those of what is sent.
const SHOWN: usize = 1 << 60;
const FETCHED: usize = 1 << 61;

/// Gives a peer bytes in this round, and waits until it has them.
pub(super) async fn give(exchange: &Exchange<'_>, peer: usize, round: usize, bytes: &[u8]) -> Result<()> {
    settled(exchange, peer, round, Shown::new(exchange.channel(), bytes)).await
}

/// The same, as one of all ranks that do.
pub(super) async fn give_root(
    exchange: &Exchange<'_>,
    root: usize,
    round: usize,
    bytes: &[u8],
) -> Result<()> {
    settled(exchange, root, round, Shown::of_all(exchange.channel(), bytes)).await
}

/// Offers a peer what is shown in this round, and waits until it has it.
pub(super) async fn settled(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    mut shown: Shown<'_>,
) -> Result<()> {
    shown.offer(exchange, peer, round).await?;
    shown.settle(exchange).await
}

/// Gives a peer bytes in this round, which it may still have to get.
pub(super) async fn offered<'a>(
    exchange: &Exchange<'a>,
    peer: usize,
    round: usize,
    bytes: &'a [u8],
) -> Result<Shown<'a>> {
    let mut shown = Shown::new(exchange.channel(), bytes);
    shown.offer(exchange, peer, round).await?;
    Ok(shown)
}

/// Waits until everybody has fetched what was shown.
pub(super) async fn settle_all(exchange: &Exchange<'_>, given: Vec<Shown<'_>>) -> Result<()> {
    for shown in given {
        shown.settle(exchange).await?;
    }
    Ok(())
}

/// Offers each other rank its part in this round, as `show` says, in either form of a collective.
pub(super) async fn offer_each<'a>(
    exchange: &Exchange<'a>,
    round: usize,
    parts: &[RawBuffer],
    show: fn(&'a Channel, &'a [u8]) -> Shown<'a>,
) -> Result<Vec<Shown<'a>>> {
    let mut given = Vec::with_capacity(parts.len());
    for peer in others(exchange.channel()) {
        let mut shown = show(exchange.channel(), parts[peer].bytes());
        exchange.wait(shown.offer(exchange, peer, round)).await?;
        given.push(shown);
    }
    Ok(given)
}

/// [`settle_all`] after something that may have failed.
pub(super) async fn settle_all_after(
    exchange: &Exchange<'_>,
    given: Vec<Shown<'_>>,
    mut result: Result<()>,
) -> Result<()> {
    for shown in given {
        result = shown.settle_after(exchange, result).await;
    }
    result
}

/// What a peer gives in this round.
pub(super) async fn taken(exchange: &Exchange<'_>, peer: usize, round: usize) -> Result<Vec<u8>> {
    match arrived(exchange, peer, round).await? {
        (sent, false) => Ok(sent),
        (shown, true) => {
            let bytes = Bytes::parse(exchange, peer, &shown)?;
            Given::new(exchange, exchange.channel(), (peer, round), bytes).take().await
        }
    }
}

/// The message by which a peer gives something in this round, and whether it shows it.
fn arrived(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
) -> impl Future<Output = Result<(Vec<u8>, bool)>> {
    poll_fn(move |_| match exchange.take_either(peer, round, Some(round + SHOWN)) {
        Some(taken) => Poll::Ready(taken),
        None => Poll::Pending,
    })
}

/// Bytes that others may get until this is dropped.
pub(super) struct Shown<'a> {
    channel: &'a Channel,
    bytes: &'a [u8],
    /// Ranks that give to one at once.
    givers: usize,
    /// Whether that one gives as much to each of them.
    both_ways: bool,
    /// By number of the transport; nothing where that can register none.
    regions: Vec<(usize, Option<Box<dyn Region>>)>,
    /// Who was told, in which round.
    told: Vec<(usize, usize)>,
}

impl<'a> Shown<'a> {
    pub fn new(channel: &'a Channel, bytes: &'a [u8]) -> Self {
        Self { channel, bytes, givers: 1, both_ways: false, regions: Vec::new(), told: Vec::new() }
    }

    /// Of one of all ranks that give to one at once.
    pub fn of_all(channel: &'a Channel, bytes: &'a [u8]) -> Self {
        Self { givers: channel.size - 1, ..Self::new(channel, bytes) }
    }

    /// Of one of all ranks that give to each other at once.
    pub fn both_ways(channel: &'a Channel, bytes: &'a [u8]) -> Self {
        Self { both_ways: true, ..Self::of_all(channel, bytes) }
    }

    /// Whether a rank is shown them, if they can be registered: they are not too short for that.
    pub fn is_for(&self, peer: usize) -> bool {
        let Route { transport, capabilities } = self.channel.engine.routes.route(self.channel.job_rank(peer));
        let one_message = capabilities.max_message - HEADER_BYTES;
        self.bytes.len() > one_message
            && self.bytes.len() >= transport.shown_from(self.givers, self.both_ways)
    }

    /// The key by which a rank gets them; empty if there is none, or they are too short for that.
    fn key_for(&mut self, peer: usize) -> Vec<u8> {
        if !self.is_for(peer) {
            return Vec::new();
        }
        let (engine, to) = (&*self.channel.engine, self.channel.job_rank(peer));
        let transport = engine.routes.index(to);
        let place = self.regions.iter().position(|(index, _)| *index == transport).unwrap_or_else(|| {
            let region = register(engine, to, &memory::expose_read_only(self.bytes));
            self.regions.push((transport, region));
            self.regions.len() - 1
        });
        let (_, region) = &self.regions[place];
        region.as_ref().map(|region| region.key().0).unwrap_or_default()
    }

    /// Gives a peer all of them in this round: shows them, or sends them.
    pub async fn offer(&mut self, exchange: &Exchange<'_>, peer: usize, round: usize) -> Result<()> {
        let key = if self.bytes.len() < LONG_IN_PAGES { Vec::new() } else { self.key_for(peer) };
        if key.is_empty() {
            return exchange.send(peer, round, self.bytes).await;
        }
        let bytes = self.bytes;
        self.told.push((peer, round));
        let shown = [&(bytes.len() as u64).to_le_bytes(), &key[..]].concat();
        exchange.send(peer, round + SHOWN, &shown).await
    }

    /// Waits until everybody has fetched what was shown.
    pub async fn settle(mut self, exchange: &Exchange<'_>) -> Result<()> {
        let mut result = Ok(());
        for (peer, round) in std::mem::take(&mut self.told) {
            let answer = exchange.receive(peer, round + FETCHED).await?;
            if answer != [1] {
                let message = format!("rank {peer} could not get the bytes of this rank");
                result = Err(self.channel.error(Class::Peer, exchange.operation(), message));
            }
        }
        result
    }

    /// [`settle`](Self::settle) after something that may have failed: others read this rank's bytes nevertheless.
    pub async fn settle_after(self, exchange: &Exchange<'_>, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if error.class() != Class::Count => Err(error),
            result => result.and(exchange.wait(self.settle(exchange)).await),
        }
    }
}

/// What a peer gives in one round.
pub(super) struct Given<'a> {
    exchange: &'a Exchange<'a>,
    channel: &'a Channel,
    /// The rank and the round.
    from: (usize, usize),
    bytes: Bytes,
    /// Whether they could not be had. What this rank has no room for is no failure of the peer's.
    failed: AtomicBool,
}

enum Bytes {
    Sent(Vec<u8>),
    Shown { len: usize, key: Vec<u8> },
}

impl<'a> Given<'a> {
    fn new(exchange: &'a Exchange<'a>, channel: &'a Channel, from: (usize, usize), bytes: Bytes) -> Self {
        Self { exchange, channel, from, bytes, failed: AtomicBool::new(false) }
    }

    /// Waits for it.
    pub async fn wait(
        exchange: &'a Exchange<'a>,
        channel: &'a Channel,
        from: (usize, usize),
    ) -> Result<Self> {
        let taken = arrived(exchange, from.0, from.1).await?;
        Self::of(exchange, channel, from, taken)
    }

    fn of(
        exchange: &'a Exchange<'a>,
        channel: &'a Channel,
        from: (usize, usize),
        taken: Taken,
    ) -> Result<Self> {
        let bytes = match taken {
            (sent, false) => Bytes::Sent(sent),
            (shown, true) => Bytes::parse(exchange, from.0, &shown)?,
        };
        Ok(Self::new(exchange, channel, from, bytes))
    }

    /// Waits for it, in a blocking call: how long it is if it comes in messages meanwhile and fits into `place`, where it is then.
    pub fn wait_now(
        exchange: &'a Exchange<'a>,
        channel: &'a Channel,
        from: (usize, usize),
        place: &mut [u8],
    ) -> Result<std::result::Result<usize, Self>> {
        match exchange.receive_now(from, Some(from.1 + SHOWN), place)? {
            Arrived::InPlace(len) => Ok(Ok(len)),
            Arrived::Elsewhere(taken) => Self::of(exchange, channel, from, taken).map(Err),
        }
    }

    /// The same in either form.
    pub async fn wait_at(
        exchange: &'a Exchange<'a>,
        channel: &'a Channel,
        from: (usize, usize),
        place: RawBuffer,
    ) -> Result<std::result::Result<usize, Self>> {
        if exchange.blocks() {
            return Self::wait_now(exchange, channel, from, place.bytes_mut());
        }
        Self::wait(exchange, channel, from).await.map(Err)
    }

    pub fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Sent(bytes) => bytes.len(),
            Bytes::Shown { len, .. } => *len,
        }
    }

    /// Copies those from `at` on.
    pub async fn read(&self, at: usize, to: RawBuffer) -> Result<()> {
        let (peer, own) = (self.from.0, to.len());
        let range = at.checked_add(own).filter(|end| *end <= self.len()).map(|end| at..end);
        let range = range.ok_or_else(|| self.exchange.other_length(peer, self.len(), own))?;
        let key = match &self.bytes {
            Bytes::Sent(bytes) => {
                to.bytes_mut().copy_from_slice(&bytes[range]);
                return Ok(());
            }
            Bytes::Shown { key, .. } => key.clone(),
        };
        let (engine, operation) = (&*self.channel.engine, self.exchange.operation());
        let from = (self.channel.job_rank(peer), key);
        let fetched = if self.exchange.blocks() {
            fetch_region(engine, operation, from, at, to.bytes_mut())
        } else {
            let promise = Promise::new();
            let fetched = promise.clone();
            let then = Box::new(move |engine: &_, bytes| fetched.complete(engine, bytes));
            fetch_to(engine, operation, from, at, to, then);
            self.fetched(&promise).await.map(drop)
        };
        if fetched.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        fetched
    }

    /// Waits until bytes are here: while whoever shows them lives, since they come to where the program may not look before.
    fn fetched<B>(&self, promise: &Promise<B>) -> impl Future<Output = Result<B>> {
        let from = self.channel.job_rank(self.from.0);
        let in_vain = move || match self.channel.engine.dead.has(from) {
            true => self.exchange.in_vain().map(Err),
            false => None,
        };
        poll_fn(move |_| match promise.take().or_else(in_vain) {
            Some(bytes) => Poll::Ready(bytes),
            None => Poll::Pending,
        })
    }

    /// All of them, and the peer is told.
    pub async fn take(mut self) -> Result<Vec<u8>> {
        let (len, key) = match &mut self.bytes {
            Bytes::Sent(bytes) => return Ok(std::mem::take(bytes)),
            Bytes::Shown { len, key } => (*len, std::mem::take(key)),
        };
        let (engine, promise) = (&*self.channel.engine, Promise::new());
        let fetched = promise.clone();
        let then = Box::new(move |engine: &_, bytes| fetched.complete(engine, bytes));
        fetch_all(engine, self.exchange.operation(), (self.channel.job_rank(self.from.0), key), len, then);
        let bytes = self.fetched(&promise).await;
        self.failed.store(bytes.is_err(), Ordering::Relaxed);
        self.finish().await?;
        bytes
    }

    /// Tells the peer that nothing is read any more.
    pub async fn finish(self) -> Result<()> {
        let Bytes::Shown { .. } = self.bytes else { return Ok(()) };
        let (peer, round) = self.from;
        self.exchange.send(peer, round + FETCHED, &[u8::from(!self.failed.load(Ordering::Relaxed))]).await
    }
}

impl Bytes {
    /// What a peer shows, as its message says: their length, the region's key.
    fn parse(exchange: &Exchange<'_>, peer: usize, message: &[u8]) -> Result<Self> {
        let parsed = message.split_first_chunk().and_then(|(len, key)| {
            Some(Self::Shown { len: usize::try_from(u64::from_le_bytes(*len)).ok()?, key: key.to_vec() })
        });
        parsed.ok_or_else(|| exchange.malformed(peer, &"half a message"))
    }
}
