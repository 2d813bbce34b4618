//! What this rank has under way at one peer: work requests in their order, posted or waiting to be, and the queue pair.
//!
//! A work request is posted at once when nothing is under way at the peer. Others wait until there are some, or until
//! somebody looks (`progress`), and are posted together with one doorbell, only the last with a completion of its own:
//! it stands for all before it, since a queue pair works in order.

use std::time::Instant;

use ibverbs::{BATCH, Batch, QueuePair};
use slab::Slab;

use crate::confirm::Confirm;
use crate::wire::Address;
use crate::work::{Hold, Identity, Work};
use crate::works::Works;

/// Work requests, or their bytes, that wait no longer for company.
const TOGETHER: usize = 16;
const TOGETHER_BYTES: usize = 16 << 10;

/// The queue pair to a peer.
#[derive(Debug)]
pub(crate) enum State {
    /// There is none.
    Unconnected,
    /// The peer was asked for a partner.
    Connecting(Box<Attempt>),
    Ready(QueuePair),
    /// Broken by a work request; the device has yet to give back those behind it.
    Breaking(#[expect(dead_code, reason = "it must not go before the device has given back all")] QueuePair),
    /// The peer cannot be reached any more.
    Lost(String),
}

/// A request for a connection.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub queue_pair: QueuePair,
    /// Number of the first packet.
    pub sequence: u32,
    pub began: Instant,
    /// When to ask again, and how long to wait then.
    pub again: Instant,
    pub pause: std::time::Duration,
}

/// What there is between this rank and one peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub address: Address,
    pub state: State,
    pub works: Works,
    /// How many of `works`, from the front, the device has.
    pub posted: usize,
    /// Bytes in those that it has not.
    staged_bytes: usize,
    /// Sequence number of the first of `works`.
    pub first: u32,
    /// Connections asked for.
    pub attempts: u32,
    /// Connections that broke without anything having succeeded on them.
    pub failures: u32,
    /// Where completions do not say that the peer has got anything: what does.
    pub confirm: Option<Box<Confirm>>,
    /// When it was last used, by the port's count.
    pub used: u64,
}

impl Link {
    pub fn new(address: Address) -> Self {
        Self {
            address,
            state: State::Unconnected,
            works: Works::default(),
            posted: 0,
            staged_bytes: 0,
            first: 0,
            attempts: 0,
            failures: 0,
            confirm: None,
            used: 0,
        }
    }

    /// Whether it has a queue pair.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Connecting(_) | State::Ready(_) | State::Breaking(_))
    }

    /// Whether its queue pair may go.
    pub fn is_idle(&self) -> bool {
        self.works.is_empty() && matches!(self.state, State::Ready(_))
    }

    /// How many wait to be posted.
    pub fn staged(&self) -> usize {
        self.works.len() - self.posted
    }

    pub fn push(&mut self, work: Work) {
        self.staged_bytes += work.staged_bytes();
        self.works.push(work);
    }

    /// Whether those that wait are to be posted now.
    pub fn is_due(&self) -> bool {
        self.posted == 0 || self.staged() >= TOGETHER || self.staged_bytes >= TOGETHER_BYTES
    }

    /// Posts those that wait, as far as `depth` allows and there are `credits` for completions.
    pub fn ring(
        &mut self,
        peer: usize,
        batch: &mut Batch,
        holds: &Slab<Hold>,
        depth: usize,
        credits: &mut usize,
    ) -> Result<(), String> {
        let State::Ready(queue_pair) = &self.state else { return Ok(()) };
        loop {
            let most = depth.saturating_sub(self.posted).min(*credits);
            let mut room = BATCH.min(self.staged()).min(most);
            if room > 0
                && let Some(confirm) = &mut self.confirm
            {
                room = confirm.batch(&mut self.works, self.posted, most);
            }
            if room == 0 {
                return Ok(());
            }
            batch.clear();
            let (mut sequence, mut bytes) = (self.first.wrapping_add(self.posted as u32), 0);
            for i in 0..room {
                let Some(work) = self.works.get(self.posted + i) else { break };
                let id = Identity::Work { peer: peer as u32, sequence }.number();
                batch.push(&work.request(id, i + 1 == room, work.parts(holds))).map_err(|e| e.to_string())?;
                sequence = sequence.wrapping_add(1);
                bytes += work.staged_bytes();
            }
            // SAFETY: `Work::local` is a buffer of ours that is given back, or the caller's memory that stays valid, until
            // the completion, and is registered unless the device copies it now (ibv_post_send(3)).
            let posted = unsafe { queue_pair.post(batch) };
            let mut taken = room;
            if let Err(refused) = &posted {
                taken = refused.taken;
                bytes = self.works.from(self.posted).take(taken).map(Work::staged_bytes).sum();
            }
            self.staged_bytes -= bytes;
            self.posted += taken;
            *credits -= taken;
            posted.map_err(|refused| refused.error.to_string())?;
            if self.staged() == 0 {
                return Ok(());
            }
        }
    }

    /// Whether the device has the work request of this sequence number, and how many before it.
    #[inline]
    pub fn position(&self, sequence: u32) -> Option<usize> {
        let position = sequence.wrapping_sub(self.first) as usize;
        (position < self.posted).then_some(position)
    }

    /// Takes the first, which the device has done with.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Work> {
        let work = self.works.pop()?;
        self.first = self.first.wrapping_add(1);
        self.posted -= 1;
        Some(work)
    }

    /// Whether its connection does not work: nothing but reads was posted on it.
    pub fn is_in_vain(&self) -> bool {
        matches!(self.state, State::Ready(_))
            && self.confirm.as_ref().is_some_and(|confirm| confirm.is_in_vain())
    }

    /// Forgets what was posted, with a connection on which nothing but reads was. How many.
    pub fn take_back(&mut self) -> usize {
        let posted = self.posted;
        for _ in 0..posted {
            self.pop();
        }
        posted
    }

    /// The device has given everything back: what it did not do waits to be posted again.
    pub fn give_back(&mut self, undone: Vec<Work>) {
        self.staged_bytes += undone.iter().map(Work::staged_bytes).sum::<usize>();
        let waiting = self.works.take();
        undone.into_iter().chain(waiting).for_each(|work| self.works.push(work));
    }
}
