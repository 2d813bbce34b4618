//! Receives where there is no *receiver not ready*: on iWARP a message that finds no receive breaks its connection. So each
//! peer has receives of its own, may send as many messages as it has, and learns from a count that it reads (`confirm`)
//! how many have been given back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ibverbs::{Access, Local, MemoryRegion, ProtectionDomain, QueuePair, VerbsError};
use transom_transport::TransportResult;

use crate::confirm::{Confirm, READS};
use crate::pool::Pool;
use crate::port::Port;
use crate::wire::Grant;
use crate::work::Identity;

/// Bytes of a count, and of what is read of it.
const COUNT: usize = 8;

/// What becomes of the queue pair of a peer that does not use it any more.
#[derive(Debug)]
enum Closing {
    /// It has failed; messages that arrived on it may be in the completion queue.
    Failed(#[expect(dead_code, reason = "it must not go before its messages were taken")] QueuePair),
    /// It is gone; receives that it gave back may be in the completion queue.
    Gone,
}

/// Receives of each peer.
#[derive(Debug)]
pub(crate) struct PeerReceives {
    /// How many each peer has.
    each: usize,
    /// Buffers that the caller looks at, and how many of a peer's the device has.
    held: Box<[bool]>,
    posted: Box<[u32]>,
    /// Peers that do not use their queue pair any more, until the device has given all receives back.
    closing: HashMap<usize, Closing>,
    /// Registrations of peers' buffers, made when a peer first connects; they go before the memory.
    regions: Box<[Option<MemoryRegion>]>,
    inbox: Arc<Pool>,
    /// By peer: how many receives were given back. Peers read them.
    counts: Pool,
    /// Where reads of peers' counts arrive.
    sinks: Pool,
    domain: Arc<ProtectionDomain>,
}

impl PeerReceives {
    /// For so many ranks, with so many receives each, in an inbox that has as many buffers and no registration.
    pub fn new(
        domain: &Arc<ProtectionDomain>,
        ranks: usize,
        each: usize,
        inbox: &Arc<Pool>,
        sink: Access,
    ) -> TransportResult<Self> {
        Ok(Self {
            each,
            held: vec![false; ranks * each].into(),
            posted: vec![0; ranks].into(),
            closing: HashMap::new(),
            regions: (0..ranks).map(|_| None).collect(),
            inbox: inbox.clone(),
            counts: Pool::new(domain, ranks, COUNT, Access::LOCAL_WRITE | Access::REMOTE_READ)?,
            sinks: Pool::new(domain, ranks * READS, COUNT, sink)?,
            domain: domain.clone(),
        })
    }

    /// How many each peer has.
    pub fn each(&self) -> u32 {
        self.each as u32
    }

    /// Whether a peer may have a queue pair: the device has given back the receives of the one before.
    pub fn is_ready(&self, peer: usize) -> bool {
        self.posted.get(peer) == Some(&0)
    }

    /// Gives a new queue pair all receives of its peer, but for those that the caller still looks at.
    pub fn open(&mut self, peer: usize, queue_pair: &QueuePair) -> Result<Grant, VerbsError> {
        let first = peer * self.each;
        if self.regions[peer].is_none() {
            let bytes = self.each * self.inbox.size();
            // SAFETY: the inbox outlives the registration, which is declared before it, and is only used through pointers.
            let region = unsafe {
                MemoryRegion::register(&self.domain, self.inbox.at(first as u32), bytes, Access::LOCAL_WRITE)
            };
            self.regions[peer] = Some(region?);
        }
        for buffer in first..first + self.each {
            if !self.held[buffer] {
                self.post(peer, buffer as u32, queue_pair)?;
            }
        }
        let count = self.count(peer).load(Ordering::Relaxed);
        let counts = self.counts.local(peer as u32, COUNT);
        Ok(Grant::new(counts.address, self.counts.remote_key(), self.posted[peer], count))
    }

    /// The other side of that.
    pub fn confirm(&self, peer: usize, grant: &Grant) -> Box<Confirm> {
        Confirm::new(grant, &self.sinks, peer * READS)
    }

    /// A peer does not use its queue pair any more.
    pub fn close(&mut self, peer: usize, queue_pair: QueuePair) {
        if let Err(error) = queue_pair.fail() {
            tracing::debug!(peer, %error, "a queue pair does not end in order");
        }
        if self.posted[peer] > 0 {
            self.closing.insert(peer, Closing::Failed(queue_pair));
        }
    }

    /// The completion queue is empty. Queue pairs that have failed give back all receives, but soft-iWARP keeps those that were
    /// posted after the peer had ended the connection (`siw_post_recv` does not ask whether it has): these come back when
    /// the queue pair is gone.
    pub fn drained(&mut self) {
        let Self { closing, posted, .. } = self;
        closing.retain(|peer, state| match state {
            Closing::Failed(_) => {
                *state = Closing::Gone;
                true
            }
            Closing::Gone => {
                posted[*peer] = 0;
                false
            }
        });
    }

    /// The device has given a buffer back: with a message, which the caller looks at, or without.
    pub fn arrived(&mut self, buffer: u32, message: bool) {
        let peer = buffer as usize / self.each;
        let (Some(held), Some(posted)) = (self.held.get_mut(buffer as usize), self.posted.get_mut(peer))
        else {
            return;
        };
        *held = message;
        *posted = posted.saturating_sub(1);
        if *posted == 0 {
            self.closing.remove(&peer);
        }
    }

    /// The caller has looked at the message in a buffer. Whose it is.
    fn free(&mut self, buffer: u32) -> usize {
        if let Some(held) = self.held.get_mut(buffer as usize) {
            *held = false;
        }
        buffer as usize / self.each
    }

    fn post(&mut self, peer: usize, buffer: u32, queue_pair: &QueuePair) -> Result<(), VerbsError> {
        let key = self.regions[peer].as_ref().map_or(0, MemoryRegion::local_key);
        let local = Local { key, ..self.inbox.local(buffer, self.inbox.size()) };
        // SAFETY: registered, and not read before its completion.
        unsafe { queue_pair.post_receive(Identity::Message(buffer).number(), local)? };
        self.posted[peer] += 1;
        Ok(())
    }

    fn count(&self, peer: usize) -> &AtomicU32 {
        let at = self.counts.at(peer as u32).cast::<u32>();
        // SAFETY: inside a mapping that lives as long as this, aligned to 8; others only read it, peers' devices too.
        unsafe { AtomicU32::from_ptr(at) }
    }
}

impl Port {
    /// Gives a receive back to the peer that it belongs to, and tells that.
    pub fn receive_again(&mut self, buffer: u32) -> Result<(), VerbsError> {
        let Some(peer_receives) = &mut self.peer_receives else { return Ok(()) };
        let peer = peer_receives.free(buffer);
        let Some(inbound) = self.inbound.get(&peer) else { return Ok(()) };
        peer_receives.post(peer, buffer, &inbound.queue_pair)?;
        peer_receives.count(peer).fetch_add(1, Ordering::Release);
        Ok(())
    }
}
