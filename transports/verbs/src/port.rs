//! All of a rank's verbs objects, to be used under one lock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ibverbs::{
    Access, Batch, CompletionQueue, MemoryRegion, ProtectionDomain, QueuePair, SharedReceiveQueue,
    WorkCompletion,
};
use slab::Slab;
use transom_transport::{TransportError, TransportResult};

use crate::NAME;
use crate::connect::Connector;
use crate::device::Device;
use crate::inbound::Inbound;
use crate::link::{Link, State};
use crate::local::Registrations;
use crate::peer_receives::PeerReceives;
use crate::poll::Found;
use crate::pool::Pool;
use crate::wait::Wait;
use crate::work::{Hold, Slot, Verb, Work};

/// Completions read at once.
pub(crate) const BATCH: usize = 32;

/// Bounds that follow from the options and the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub queue_pairs: usize,
    pub depth: usize,
    /// Bytes that the device takes with a work request.
    pub inline: u32,
    /// Longest message of one work request.
    pub piece: usize,
    /// Puts and gets of up to so many bytes are copied, unless they are inline, whatever they are of.
    pub copied: usize,
    /// Parts of this process's memory in one put, and in one get.
    pub put_parts: usize,
    pub get_parts: usize,
    /// Reads of a few bytes must not cross a page of the target.
    pub short_reads_stay: bool,
    /// Reads and atomics under way that this device answers, and asks, at a time.
    pub answers: u8,
    pub questions: u8,
    /// The device's timer for answers.
    pub timer: u8,
}

/// Declared so that what uses an object is dropped before it.
#[derive(Debug)]
pub(crate) struct Port {
    pub closed: bool,
    /// Whether it is open, and all that comes does so through the completion queue: no rdma_cm, no counted receives.
    pub simple: bool,
    pub rank: usize,
    /// Who knows it may connect.
    pub secret: u64,
    pub links: Box<[Option<Box<Link>>]>,
    /// Peers with work requests that wait to be posted.
    pub dirty: BTreeSet<usize>,
    /// Peers that wait for a queue pair, and those that have one asked for.
    pub waiting: VecDeque<usize>,
    pub connecting: BTreeSet<usize>,
    /// How many links have a queue pair.
    pub open: usize,
    /// Counts uses of links.
    pub uses: u64,
    /// Queue pairs that peers post on, by peer.
    pub inbound: HashMap<usize, Inbound>,
    /// Those that go when the completion queue is empty: it may hold messages that arrived on them.
    pub retired: Vec<QueuePair>,
    /// What connections are made by.
    pub connector: Option<Connector>,
    /// Where messages arrive.
    pub receives: Option<Arc<SharedReceiveQueue>>,
    /// Where there is no shared queue of receives.
    pub peer_receives: Option<PeerReceives>,
    pub inbox: Arc<Pool>,
    pub small: Pool,
    pub large: Pool,
    /// What peers may access.
    pub regions: Slab<Arc<MemoryRegion>>,
    pub registrations: Registrations,
    /// What work requests need until they have ended, beside a buffer.
    pub holds: Slab<Hold>,
    /// Room in the completion queue for ends of work requests.
    pub credits: usize,
    pub batch: Batch,
    pub entries: Box<[WorkCompletion; BATCH]>,
    pub found: Vec<Found>,
    pub bounds: Bounds,
    /// What regions allow beside reads and writes.
    pub atomic_access: Access,
    pub wait: Wait,
    pub queue: Arc<CompletionQueue>,
    pub domain: Arc<ProtectionDomain>,
    pub device: Device,
}

impl Port {
    #[inline]
    pub fn check_open(&self) -> TransportResult<()> {
        if self.closed { Err(abandoned()) } else { Ok(()) }
    }

    /// The link to a peer that was connected.
    pub fn link(&mut self, peer: usize) -> TransportResult<&mut Link> {
        let unknown = || TransportError::Peer { peer, reason: "not connected".into() };
        self.links.get_mut(peer).and_then(Option::as_deref_mut).ok_or_else(unknown)
    }

    /// Takes a work request for a peer, and posts it if it is due.
    #[inline(never)]
    pub fn submit(&mut self, peer: usize, work: Work, now: bool) -> TransportResult<()> {
        let link = self.link(peer)?;
        let begun = link.works.is_empty();
        link.push(work);
        self.submitted(peer, begun, now)
    }

    /// Takes work requests for a peer, and posts them if they are due.
    pub fn submit_all(&mut self, peer: usize, works: &[Work]) -> TransportResult<()> {
        let link = self.link(peer)?;
        let begun = link.works.is_empty();
        works.iter().for_each(|work| link.push(*work));
        self.submitted(peer, begun, false)
    }

    /// The link to a peer was given work; had it none before?
    fn submitted(&mut self, peer: usize, begun: bool, now: bool) -> TransportResult<()> {
        self.uses += 1;
        let uses = self.uses;
        let link = self.link(peer)?;
        link.used = uses;
        if begun && matches!(link.state, State::Unconnected) {
            self.want(peer);
        } else if now || link.is_due() {
            self.ring(peer);
            return Ok(());
        }
        self.dirty.insert(peer);
        Ok(())
    }

    /// Posts what waits for a peer.
    pub fn ring(&mut self, peer: usize) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if let Err(reason) =
            link.ring(peer, &mut self.batch, &self.holds, self.bounds.depth, &mut self.credits)
        {
            self.refused(peer, &reason);
        } else if link.is_in_vain() {
            tracing::debug!(peer, "nothing comes back on a new connection");
            self.credits += link.take_back();
            self.reconnect(peer);
        } else if link.staged() > 0 {
            self.dirty.insert(peer);
        } else if !self.dirty.is_empty() {
            self.dirty.remove(&peer);
        }
    }

    /// Writes nothing to each peer at which nothing is under way: its device answers, whatever its process does, and no key is
    /// looked at (InfiniBand Architecture Specification, C9-88). Adds those that were lost.
    pub fn try_idle(&mut self, lost: &mut Vec<(usize, String)>) {
        for peer in 0..self.links.len() {
            let Some(Some(link)) = self.links.get_mut(peer) else { continue };
            match &link.state {
                State::Lost(reason) => lost.push((peer, reason.clone())),
                _ if link.is_idle() => {
                    link.push(Work { verb: Verb::Write { address: 0, key: 0 }, ..Work::NOTHING });
                    self.ring(peer);
                }
                _ => {}
            }
        }
    }

    /// The device has refused a work request to a peer.
    #[cold]
    pub fn refused(&mut self, peer: usize, reason: &str) {
        tracing::debug!(peer, reason, "a work request was refused");
        self.lose(peer, &format!("a work request was refused: {reason}"));
    }

    /// Posts what waits for a peer, if anything does.
    #[inline]
    pub fn ring_some(&mut self, peer: usize) {
        if !self.dirty.is_empty() {
            self.ring(peer);
        }
    }

    /// Posts what waits for anybody.
    #[inline(always)]
    pub fn ring_all(&mut self) {
        if !self.dirty.is_empty() {
            self.ring_dirty();
        }
    }

    #[inline(never)]
    fn ring_dirty(&mut self) {
        for peer in std::mem::take(&mut self.dirty) {
            self.ring(peer);
        }
    }

    /// A peer cannot be reached any more: everything that is under way there fails.
    pub fn lose(&mut self, peer: usize, reason: &str) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if matches!(link.state, State::Lost(_)) {
            return;
        }
        if link.is_open() {
            self.open -= 1;
        }
        // Dropped at once: after that the device touches no buffer of it any more (ibv_destroy_qp(3)).
        link.state = State::Lost(reason.to_owned());
        self.credits += link.posted;
        link.posted = 0;
        let works = link.works.take();
        self.part(peer);
        self.dirty.remove(&peer);
        self.connecting.remove(&peer);
        self.waiting.retain(|waiting| *waiting != peer);
        tracing::debug!(peer, reason, works = works.len(), "a peer is lost");
        let mut failed = None;
        for work in works {
            let context = work.context();
            if context.is_some() && context != failed {
                self.report(context, TransportError::Peer { peer, reason: reason.to_owned() });
            }
            failed = context.or(failed);
            self.release(&work);
        }
        self.admit();
    }

    /// Keeps something for a work request.
    pub fn hold(&mut self, hold: Hold) -> Option<u32> {
        Some(self.holds.insert(hold) as u32)
    }

    /// Gives back what a work request used.
    pub fn release(&mut self, work: &Work) {
        if let Some(slot) = work.slot {
            self.pool(slot).give(slot.index);
        }
        if let Some(hold) = work.hold {
            self.holds.try_remove(hold as usize);
        }
    }

    #[inline]
    pub fn pool(&mut self, slot: Slot) -> &mut Pool {
        if slot.large { &mut self.large } else { &mut self.small }
    }

    /// A buffer for so many bytes, if one is free.
    #[inline]
    pub fn take_slot(&mut self, len: usize) -> Option<Slot> {
        let large = len > self.small.size();
        let index = if large { self.large.take() } else { self.small.take() }?;
        Some(Slot { large, index })
    }

    /// Ends all use of the caller's memory, and of peers.
    pub fn close(&mut self) {
        self.closed = true;
        self.simple = false;
        self.links.iter_mut().for_each(|link| *link = None);
        self.inbound.clear();
        self.retired.clear();
        self.connector = None;
        self.receives = None;
        self.peer_receives = None;
        self.regions.clear();
        self.holds.clear();
    }
}

#[cold]
fn abandoned() -> TransportError {
    TransportError::Unavailable { transport: NAME, reason: "its operations were abandoned".into() }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}
