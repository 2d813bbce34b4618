//! The receiving end.

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;

use super::{CUT_ROUND, Cut, End, numbered};
use crate::engine::Promise;
use crate::{Class, Communicator, Request, Result};

const NAME: &str = "partitioned receive";

/// The receiving end of a partitioned message (`MPI_Precv_init`, MPI-4.1 §4.2.1).
#[derive(Debug)]
pub struct PartitionedReceive {
    comm: Communicator,
    /// None from the null rank.
    end: Option<Arc<End>>,
    round: Arc<Mutex<Round>>,
}

/// What has come in a round.
#[derive(Debug, Default)]
struct Round {
    number: u32,
    /// How the sender cuts: known once it has started.
    cut: Option<Cut>,
    /// By partition of the sender's.
    partitions: Vec<Option<Vec<u8>>>,
    /// The first of those that may be missing.
    next: usize,
}

impl Round {
    /// Looks for the sender's cut. False if it has not come.
    fn learn(&mut self, end: &End) -> Result<bool> {
        if self.cut.is_none() {
            let Some(bytes) = end.take(CUT_ROUND)? else { return Ok(false) };
            self.cut = Cut::of_bytes(&bytes);
            if self.cut.is_none() {
                return Err(malformed(end));
            }
        }
        let cut = self.cut.map_or(0, |cut| cut.partitions);
        self.partitions.resize(cut, None);
        Ok(true)
    }

    /// Looks for one of the sender's partitions. False if it has not come.
    fn look(&mut self, end: &End, partition: usize) -> Result<bool> {
        let slot = &mut self.partitions[partition];
        if slot.is_none() {
            *slot = end.take(numbered(self.number, partition))?;
        }
        match slot {
            Some(bytes) if Some(bytes.len()) == self.cut.map(|cut| cut.bytes) => Ok(true),
            Some(_) => Err(malformed(end)),
            None => Ok(false),
        }
    }

    /// Looks for all that is missing.
    fn collect(&mut self, end: &End) -> Poll<Result<()>> {
        let mut all = || {
            if !self.learn(end)? {
                return Ok(false);
            }
            while self.next < self.partitions.len() {
                if !self.look(end, self.next)? {
                    return Ok(false);
                }
                self.next += 1;
            }
            Ok(true)
        };
        match all() {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

#[cold]
fn malformed(end: &End) -> crate::Error {
    let message = format!("what rank {} sent makes no sense", end.peer);
    end.channel.error(Class::Collective, NAME, message)
}

impl Cut {
    fn total(self) -> usize {
        self.partitions * self.bytes
    }

    /// The sender's partitions that have a part of the receiver's partition `index` of `count`, of `bytes` each. A message
    /// without bytes is divided by number.
    fn partitions_over(self, index: usize, count: usize, bytes: usize) -> Range<usize> {
        if self.total() == 0 {
            let edge = |index: usize| index as u128 * self.partitions as u128;
            let (low, high) = (edge(index) / count as u128, edge(index + 1).div_ceil(count as u128));
            return low as usize..high as usize;
        }
        let start = index.saturating_mul(bytes);
        let end = start.saturating_add(bytes);
        if start >= end || start >= self.total() {
            // Nothing of it: it is there when the message is.
            return 0..self.partitions;
        }
        start / self.bytes..end.min(self.total()).div_ceil(self.bytes)
    }
}

impl PartitionedReceive {
    /// A message from a rank with a tag.
    ///
    /// # Errors
    /// The rank or the tag is wrong.
    pub fn new(comm: &Communicator, source: usize, tag: i32) -> Result<Self> {
        let end = End::new(comm, NAME, (source, tag), false)?.map(Arc::new);
        Ok(Self { comm: comm.clone(), end, round: Arc::default() })
    }

    /// Starts a round (`MPI_Start`), which ends when all partitions have come. The last one has ended.
    pub fn start(&self) -> Request<()> {
        let mut round = self.round.lock();
        round.number = round.number.wrapping_add(1);
        round.partitions.clear();
        round.next = 0;
        drop(round);
        let Some(end) = self.end.clone() else { return Request::done(self.comm.member(), NAME, Ok(())) };
        let (engine, promise) = (self.comm.channel().engine.clone(), Promise::new());
        let request = Request::of(self.comm.member(), NAME, promise.clone());
        let (round, keeper) = (self.round.clone(), engine.clone());
        engine.start(promise.completed_by(), async move {
            let result = std::future::poll_fn(|_| round.lock().collect(&end)).await;
            promise.complete(&keeper, result);
        });
        engine.wake();
        request
    }

    /// Whether partition `index` of `count`, of `bytes` each, has come in this round (`MPI_Parrived`). Makes progress.
    ///
    /// # Errors
    /// A peer is gone, or what it sent makes no sense.
    pub fn has_arrived(&self, index: usize, count: usize, bytes: usize) -> Result<bool> {
        let Some(end) = &self.end else { return Ok(true) };
        end.channel.engine.try_progress()?;
        let mut round = self.round.lock();
        if !round.learn(end)? {
            return Ok(false);
        }
        let partitions_over = round.cut.map_or(0..0, |cut| cut.partitions_over(index, count, bytes));
        for partition in partitions_over {
            if !round.look(end, partition)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes of partition `index`, of `bytes` each, as far as they have come.
    pub fn partition(&self, index: usize, bytes: usize) -> Vec<u8> {
        let round = self.round.lock();
        let cut = round.cut.filter(|cut| cut.bytes > 0);
        let Some(cut) = cut else { return Vec::new() };
        let (start, end) = (index * bytes, (index * bytes + bytes).min(cut.total()));
        let mut found = Vec::with_capacity(end.saturating_sub(start));
        let mut at = start;
        while at < end {
            let Some(Some(partition)) = round.partitions.get(at / cut.bytes) else { break };
            let offset = at % cut.bytes;
            let len = (end - at).min(cut.bytes - offset);
            found.extend_from_slice(&partition[offset..offset + len]);
            at += len;
        }
        found
    }

    /// Bytes of the whole message, once the sender has started.
    pub fn total(&self) -> usize {
        self.round.lock().cut.map_or(0, Cut::total)
    }

    /// Lets what has come go, at the end of a round.
    pub fn clear(&self) {
        self.round.lock().partitions.clear();
    }
}
