//! Which transport leads to which peer: decided once.

use std::sync::Arc;

use transom_transport::{AtomicScope, Capabilities, Region, Span, Transport, TransportResult};

use crate::waits::Way;

/// Registrations with every transport, and the keys of each by its name.
pub(crate) type Registered = (Vec<Box<dyn Region>>, Vec<(String, Vec<u8>)>);

/// The transports in use, and the choice per peer.
#[derive(Debug)]
pub(crate) struct Routes {
    transports: Vec<Arc<dyn Transport>>,
    /// Each with what it can do.
    ways: Vec<(Arc<dyn Transport>, Capabilities)>,
    /// For each rank the index of its transport.
    of_peer: Vec<u8>,
    /// For each rank the index of its way: that of its transport, or one that can do less.
    way_of_peer: Vec<u8>,
    /// Index of the transport whose device has atomics.
    device: Option<usize>,
}

/// The way to a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route<'a> {
    pub transport: &'a dyn Transport,
    pub capabilities: &'a Capabilities,
}

impl Routes {
    /// `of_peer` holds an index into `transports` for each rank.
    pub fn new(transports: Vec<Arc<dyn Transport>>, of_peer: Vec<u8>) -> Self {
        let ways: Vec<_> = transports.iter().map(|t| (t.clone(), t.capabilities().clone())).collect();
        let device = ways.iter().position(|(_, c)| c.atomics != AtomicScope::None);
        Self { transports, ways, way_of_peer: of_peer.clone(), of_peer, device }
    }

    /// A peer's transport can do there what `change` leaves of what it can do elsewhere, the same for all such peers of it.
    pub fn limit(&mut self, peer: usize, change: impl FnOnce(&Capabilities) -> Capabilities) {
        let index = self.index(peer);
        let there = self.ways[self.transports.len()..]
            .iter()
            .position(|(transport, _)| Arc::ptr_eq(transport, &self.transports[index]));
        let way = there.map_or(self.ways.len(), |there| self.transports.len() + there);
        if way == self.ways.len() {
            let (transport, capabilities) = &self.ways[index];
            let limited = (transport.clone(), change(capabilities));
            self.ways.push(limited);
        }
        self.way_of_peer[peer] = way as u8;
    }

    /// Number of ranks.
    pub fn len(&self) -> usize {
        self.of_peer.len()
    }

    /// The transports to the other ranks than `own`, and how many ranks each leads to.
    pub fn summary(&self, own: usize) -> Vec<Way> {
        let mut counts = vec![0_u32; self.transports.len()];
        for index in self.of_peer.iter().enumerate().filter(|(rank, _)| *rank != own).map(|(_, index)| *index)
        {
            counts[usize::from(index)] += 1;
        }
        let ways = self.transports.iter().zip(counts).filter(|(_, ranks)| *ranks > 0);
        ways.map(|(transport, ranks)| Way { transport: transport.name().to_owned(), ranks }).collect()
    }

    /// Every transport in use.
    pub fn transports(&self) -> &[Arc<dyn Transport>] {
        &self.transports
    }

    /// Exposes memory to the peers of every transport.
    pub fn register(&self, memory: &Span) -> TransportResult<Registered> {
        let (mut regions, mut keys) = (Vec::new(), Vec::new());
        for transport in &self.transports {
            let region = transport.register(memory)?;
            keys.push((transport.name().to_owned(), region.key().0));
            regions.push(region);
        }
        Ok((regions, keys))
    }

    /// Index of the transport to a peer.
    pub fn index(&self, peer: usize) -> usize {
        usize::from(self.of_peer[peer])
    }

    /// The transport whose device has atomics, if one has: it leads to every rank, this one included.
    pub fn device(&self) -> Option<&dyn Transport> {
        self.device.map(|device| &*self.transports[device])
    }

    /// Whether memory is shared with a peer of the job.
    pub fn shares_memory(&self, peer: usize) -> bool {
        self.to(peer).name() == "shm"
    }

    /// Shared memory, if it is in use.
    pub fn shared_memory(&self) -> Option<&dyn Transport> {
        self.transports.iter().find(|transport| transport.name() == "shm").map(|transport| &**transport)
    }

    /// The transport to a peer of the job.
    pub fn to(&self, peer: usize) -> &dyn Transport {
        &*self.transports[self.index(peer)]
    }

    /// The way to a peer of the job.
    #[inline(always)]
    pub fn route(&self, peer: usize) -> Route<'_> {
        let (transport, capabilities) = &self.ways[usize::from(self.way_of_peer[peer])];
        Route { transport: &**transport, capabilities }
    }
}
