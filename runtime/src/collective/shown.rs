//! Bytes that a rank shows to others, who get them from there, and what is sent instead where it can show none.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::task::Poll;

use transom_transport::Region;

use super::exchange::Exchange;
use crate::comm::Channel;
use crate::engine::two_sided::{fetch_region, register};
use crate::protocol::wire::HEADER_BYTES;
use crate::{Class, Result, memory};

/// So many bytes are long: getting them costs two messages more than sending them.
pub const LONG: usize = 64 << 10;

/// The same where showing them costs nothing and a message has only room for a page.
pub(super) const LONG_IN_PAGES: usize = 16 << 10;

/// The rounds of what is shown, and of what is said when it has been fetched, behind those of what is sent.
const SHOWN: usize = 1 << 40;
const FETCHED: usize = 1 << 41;

/// Bytes that others may get until this is dropped.
pub(super) struct Shown<'a> {
    channel: &'a Channel,
    pub bytes: &'a [u8],
    /// By number of the transport; nothing where that can register none.
    regions: RefCell<BTreeMap<usize, Option<Box<dyn Region>>>>,
    /// Who was told, in which round.
    told: RefCell<Vec<(usize, usize)>>,
}

impl<'a> Shown<'a> {
    pub fn new(channel: &'a Channel, bytes: &'a [u8]) -> Self {
        Self { channel, bytes, regions: RefCell::default(), told: RefCell::default() }
    }

    /// The key by which a rank of the job gets them; empty if there is none.
    fn key(&self, to: usize) -> Vec<u8> {
        let engine = &*self.channel.engine;
        let mut regions = self.regions.borrow_mut();
        let region = regions
            .entry(engine.routes.index(to))
            .or_insert_with(|| register(engine, to, &memory::expose_read_only(self.bytes)));
        region.as_ref().map(|region| region.key().0).unwrap_or_default()
    }

    /// Gives a peer some of them in this round: shows them, or sends them.
    pub fn offer(
        &self,
        exchange: &Exchange<'_>,
        peer: usize,
        round: usize,
        range: Range<usize>,
    ) -> Result<()> {
        let to = self.channel.job_rank(peer);
        let capabilities = &self.channel.engine.routes.route(to).capabilities;
        let long = if capabilities.registration_is_free { LONG_IN_PAGES } else { LONG };
        let one_message = capabilities.max_message - HEADER_BYTES;
        let key = if range.len() < long.max(one_message + 1) { Vec::new() } else { self.key(to) };
        if key.is_empty() {
            return exchange.block(exchange.send(peer, round, &self.bytes[range]));
        }
        self.told.borrow_mut().push((peer, round));
        let numbers = [range.start as u64, range.len() as u64].map(u64::to_le_bytes);
        exchange.block(exchange.send(peer, round + SHOWN, &[numbers.as_flattened(), &key].concat()))
    }

    /// Waits until everybody has fetched what was shown.
    pub fn settle(self, exchange: &Exchange<'_>) -> Result<()> {
        let mut result = Ok(());
        for (peer, round) in self.told.take() {
            let answer = exchange.block(exchange.receive(peer, round + FETCHED))?;
            if answer != [1] {
                let message = format!("rank {peer} could not get the bytes of this rank");
                result = Err(self.channel.error(Class::Peer, exchange.operation(), message));
            }
        }
        result
    }

    /// [`settle`](Self::settle) after something that may have failed: others read this rank's bytes nevertheless.
    pub fn settle_after(self, exchange: &Exchange<'_>, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if error.class() != Class::Count => Err(error),
            result => result.and(self.settle(exchange)),
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
    failed: Cell<bool>,
}

enum Bytes {
    Sent(Vec<u8>),
    Shown { start: usize, len: usize, key: Vec<u8> },
}

impl<'a> Given<'a> {
    /// Waits for it.
    pub fn wait(exchange: &'a Exchange<'a>, channel: &'a Channel, from: (usize, usize)) -> Result<Self> {
        let (peer, round) = from;
        let (message, shown) = exchange.block(std::future::poll_fn(|_| {
            if let Some(shown) = exchange.take(peer, round + SHOWN) {
                return Poll::Ready(shown.map(|shown| (shown, true)));
            }
            // Last, since this is what is waited for: what is short is to be there soonest.
            match exchange.take(peer, round) {
                Some(sent) => Poll::Ready(sent.map(|sent| (sent, false))),
                None => Poll::Pending,
            }
        }))?;
        let bytes = match shown {
            false => Bytes::Sent(message),
            true => Bytes::parse(&message).ok_or_else(|| exchange.malformed(peer, &"half a message"))?,
        };
        Ok(Self { exchange, channel, from, bytes, failed: Cell::new(false) })
    }

    pub fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Sent(bytes) => bytes.len(),
            Bytes::Shown { len, .. } => *len,
        }
    }

    /// Copies those from `at` on.
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result<()> {
        let (peer, own) = (self.from.0, to.len());
        let range = at.checked_add(own).filter(|end| *end <= self.len()).map(|end| at..end);
        let range = range.ok_or_else(|| self.exchange.other_length(peer, self.len(), own))?;
        match &self.bytes {
            Bytes::Sent(bytes) => to.copy_from_slice(&bytes[range]),
            Bytes::Shown { start, key, .. } => {
                let from = (self.channel.job_rank(peer), key.clone());
                let fetched = fetch_region(
                    &self.channel.engine,
                    self.exchange.operation(),
                    from,
                    start.saturating_add(at),
                    to,
                );
                self.failed.set(self.failed.get() || fetched.is_err());
                fetched?;
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing is read any more.
    pub fn finish(self) -> Result<()> {
        let Bytes::Shown { .. } = self.bytes else { return Ok(()) };
        let (peer, round) = self.from;
        self.exchange.block(self.exchange.send(peer, round + FETCHED, &[u8::from(!self.failed.get())]))
    }
}

impl Bytes {
    /// Where a peer shows them, as its message says: their beginning in a region, their length, the region's key.
    fn parse(message: &[u8]) -> Option<Self> {
        let (numbers, key) = message.split_at_checked(16)?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let number = |i: usize| usize::try_from(u64::from_le_bytes(numbers[i])).ok();
        Some(Self::Shown { start: number(0)?, len: number(1)?, key: key.to_vec() })
    }
}
