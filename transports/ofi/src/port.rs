//! All of libfabric's objects of one rank, to be used under one lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libfabric::{
    Address, AddressVector, Completion, CompletionQueue, Descriptor, Domain, Endpoint, Fabric, FabricError,
    MemoryRegion,
};
use nix::errno::Errno;
use slab::Slab;
use transom_transport::{TransportError, TransportResult, limits};

use crate::NAME;
use crate::buffers::Buffers;
use crate::operations::Operations;
use crate::progress::Found;
use crate::wait::Wait;

/// Completions read at once.
pub(crate) const BATCH: usize = 16;
/// What registration says of a key that is in use (fi_mr(3)), and how often to try another.
const KEY_IN_USE: i32 = nix::errno::Errno::ENOKEY as i32;
const ATTEMPTS: u32 = 100;

/// A peer that was connected.
#[derive(Debug)]
pub(crate) struct Peer {
    pub address: Address,
    /// A message to it was lost: no later one may arrive, since order is promised.
    pub broken: Option<String>,
    pub reached: Reached,
    /// Puts, gets and messages that have ended.
    pub ended: u64,
}

/// Whether a peer has ever taken anything. (Providers that make connections take nothing before, and say nothing if that fails.)
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reached {
    NotTried,
    /// Tried since then.
    Trying(Instant),
    Yes,
}

impl Reached {
    /// A message was taken, or not. False: it is in vain.
    pub fn note(&mut self, taken: bool, patience: Option<Duration>) -> bool {
        match self {
            Self::Yes => true,
            _ if taken => {
                *self = Self::Yes;
                true
            }
            Self::NotTried => {
                *self = Self::Trying(Instant::now());
                true
            }
            Self::Trying(since) => patience.is_none_or(|patience| since.elapsed() < patience),
        }
    }
}

/// What the provider asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    /// Longest message to inject.
    pub inject: usize,
    /// Local buffers must be registered.
    pub local: bool,
    /// Peers name memory by virtual address.
    pub virtual_addresses: bool,
    /// We choose keys, of these bits; else the provider does.
    pub key_mask: Option<u64>,
    /// All addresses are of one length.
    pub fixed_addresses: bool,
    /// Regions must be bound to the endpoint.
    pub bound: bool,
    /// No device and no thread of the provider's touches memory of ours: calls do.
    pub polled: bool,
}

/// Buffers that messages are sent from.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub buffers: Buffers,
    pub free: Vec<usize>,
    /// Where the message in each buffer goes, while it is on its way.
    pub peers: Box<[Option<usize>]>,
    pub descriptor: Descriptor,
}

/// Buffers that messages arrive in.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub buffers: Arc<Buffers>,
    /// Which the provider has.
    pub posted: Box<[bool]>,
    /// Which it would not take yet.
    pub waiting: Vec<usize>,
    pub descriptor: Descriptor,
}

#[derive(Debug)]
pub(crate) struct Port {
    /// What peers may access.
    pub regions: Slab<MemoryRegion>,
    /// Until abandoned.
    pub endpoint: Option<Endpoint>,
    pub operations: Operations,
    /// How long a peer may take nothing at first.
    pub patience: Option<Duration>,
    pub registrations: Vec<MemoryRegion>,
    pub outbox: Outbox,
    pub inbox: Inbox,
    pub peers: Box<[Option<Peer>]>,
    pub addresses: Arc<AddressVector>,
    pub queue: Arc<CompletionQueue>,
    pub fabric: Arc<Fabric>,
    pub domain: Arc<Domain>,
    pub traits: Traits,
    pub wait: Wait,
    pub entries: [Completion; BATCH],
    pub found: Vec<Found>,
    /// A peer could not be reached, to be told once: who waits for its answer learns it so.
    pub unreachable: Option<TransportError>,
    /// Messages to peers may be on their way for ever.
    pub distrusted: bool,
}

impl Port {
    pub fn endpoint(&self) -> TransportResult<&Endpoint> {
        self.endpoint.as_ref().ok_or_else(|| TransportError::Unavailable {
            transport: NAME,
            reason: "its operations were abandoned".into(),
        })
    }

    pub fn peer(&self, peer: usize) -> TransportResult<&Peer> {
        let found = self.peers.get(peer).and_then(Option::as_ref);
        found.ok_or_else(|| TransportError::Peer { peer, reason: "not connected".into() })
    }

    pub fn connect(&mut self, peer: usize, name: &[u8]) -> TransportResult<()> {
        let len = self.endpoint()?.name().map(|own| own.len()).map_err(|e| unreachable_peer(peer, &e))?;
        let slot = self.peers.get_mut(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        if name.len() != len && self.traits.fixed_addresses {
            return Err(TransportError::Malformed {
                peer,
                what: "provider address (or one of another family)",
            });
        }
        let address = self.addresses.insert(name).map_err(|e| unreachable_peer(peer, &e))?;
        *slot = Some(Peer { address, broken: None, reached: Reached::NotTried, ended: 0 });
        Ok(())
    }

    /// Registers memory for accesses named in `access`.
    ///
    /// # Safety
    /// As for [`MemoryRegion::register`].
    pub unsafe fn register(&self, memory: *mut u8, len: usize, access: u64) -> TransportResult<MemoryRegion> {
        let endpoint = self.endpoint()?;
        let refused = |e: FabricError| {
            let reason = format!("registration: {e} (the limit on locked memory, ulimit -l, may be too low)");
            TransportError::NoMemory { bytes: len, reason }
        };
        let mut attempts = 0;
        let region = loop {
            let key = match self.traits.key_mask {
                // All ones means: no key (fi_mr(3), FI_KEY_NOTAVAIL).
                Some(mask) => (random()? & mask).min(mask - 1),
                None => 0,
            };
            attempts += 1;
            // SAFETY: the caller's promise.
            match unsafe { MemoryRegion::register(&self.domain, memory, len, access, key) } {
                Ok(region) => break region,
                // Short keys may be in use already.
                Err(e) if e.code == KEY_IN_USE && attempts < ATTEMPTS => {}
                Err(e) => return Err(refused(e)),
            }
        };
        if self.traits.bound {
            // SAFETY: new, so not enabled yet; `close` drops all regions before the endpoint.
            unsafe { region.enable_on(endpoint) }.map_err(refused)?;
        }
        Ok(region)
    }

    /// Closes the endpoint and all registrations: no memory is touched by the provider any more.
    pub fn close(&mut self) {
        let unfinished = self.distrusted || !self.operations.is_empty();
        self.regions.clear();
        if self.traits.bound {
            self.end_local_registrations();
        }
        match self.endpoint.take() {
            // Of a get whose answer has come in part libfabric before 1.18 tells twice when it closes the connection, the second time
            // with a null pointer that its layer of connections (ofi_rxm) follows. The endpoint is left to the end of the process: nobody
            // calls it any more, so it touches nothing.
            Some(endpoint) if self.traits.polled && unfinished => std::mem::forget(endpoint),
            endpoint => drop(endpoint),
        }
        self.end_local_registrations();
    }

    /// Of buffers that the endpoint may still use, if it is open.
    fn end_local_registrations(&mut self) {
        self.operations.clear();
        self.registrations.clear();
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}

/// An error of libfabric's, with the limit of the system that may be behind it.
pub(crate) fn named(error: &FabricError) -> String {
    match limits::behind(Errno::from_raw(error.code)) {
        Some(limit) => format!("{error}; {limit}"),
        None => error.to_string(),
    }
}

/// An error of an operation to a peer.
pub(crate) fn unreachable_peer(peer: usize, error: &FabricError) -> TransportError {
    TransportError::Peer { peer, reason: named(error) }
}

fn random() -> TransportResult<u64> {
    getrandom::u64().map_err(|e| TransportError::System { operation: "getrandom", reason: e.to_string() })
}
