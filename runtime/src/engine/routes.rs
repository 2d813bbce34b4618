//! Which transport leads to which peer: decided once.

use std::sync::Arc;

use transom_transport::{AtomicScope, Capabilities, Region, Span, Transport, TransportResult};

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
        Self { transports, ways, of_peer, device }
    }

    /// Number of ranks.
    pub fn len(&self) -> usize {
        self.of_peer.len()
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

    /// The transport to a peer of the job.
    pub fn to(&self, peer: usize) -> &dyn Transport {
        &*self.transports[self.index(peer)]
    }

    /// The way to a peer of the job.
    #[inline(always)]
    pub fn route(&self, peer: usize) -> Route<'_> {
        let (transport, capabilities) = &self.ways[self.index(peer)];
        Route { transport: &**transport, capabilities }
    }

    /// Ranks that share this rank's cores, as far as is known: those that shared memory reaches.
    pub fn local_ranks(&self) -> usize {
        let shm = self.transports.iter().position(|t| t.name() == "shm");
        match shm {
            Some(shm) => self.of_peer.iter().filter(|i| usize::from(**i) == shm).count(),
            None => self.of_peer.len(),
        }
    }
}
