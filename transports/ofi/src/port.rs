//! All of libfabric's objects of one rank, to be used under one lock.

use std::sync::Arc;

use libfabric::{
    Address, AddressVector, Completion, CompletionQueue, Descriptor, Domain, Endpoint, Fabric, FabricError,
    Local, MemoryRegion, Posted, Remote, flags,
};
use slab::Slab;
use transom_transport::{TransportError, TransportResult};

use crate::NAME;
use crate::buffers::Buffers;
use crate::operations::{Context, Operation, Operations};
use crate::progress::Found;

/// Completions read at once.
pub(crate) const BATCH: usize = 16;
/// Longest message that is copied to the stack to be injected.
const MAX_INJECT: usize = 512;

/// A peer that was connected.
#[derive(Debug)]
pub(crate) struct Peer {
    pub address: Address,
    /// A message to it was lost: no later one may arrive, since order is promised.
    pub broken: Option<String>,
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
    /// Regions must be bound to the endpoint.
    pub bound: bool,
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
    // Dropped in this order: regions before the endpoint that they may be bound to, that before the memory it uses.
    pub regions: Slab<MemoryRegion>,
    /// Until abandoned.
    pub endpoint: Option<Endpoint>,
    pub operations: Operations,
    pub registrations: Vec<MemoryRegion>,
    pub outbox: Outbox,
    pub inbox: Inbox,
    pub peers: Box<[Option<Peer>]>,
    pub addresses: Arc<AddressVector>,
    pub queue: Arc<CompletionQueue>,
    pub fabric: Arc<Fabric>,
    pub domain: Arc<Domain>,
    pub traits: Traits,
    pub entries: [Completion; BATCH],
    pub found: Vec<Found>,
}

/// A put or a get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub write: bool,
    pub peer: usize,
    pub remote: Remote,
    pub local: *mut u8,
    pub len: usize,
    pub context: u64,
}

impl Port {
    pub fn endpoint(&self) -> TransportResult<&Endpoint> {
        self.endpoint.as_ref().ok_or_else(|| TransportError::Unavailable {
            transport: NAME,
            reason: "its operations were abandoned".into(),
        })
    }

    fn peer(&self, peer: usize) -> TransportResult<&Peer> {
        let found = self.peers.get(peer).and_then(Option::as_ref);
        found.ok_or_else(|| TransportError::Peer { peer, reason: "not connected".into() })
    }

    pub fn connect(&mut self, peer: usize, name: &[u8]) -> TransportResult<()> {
        let len = self.endpoint()?.name().map(|own| own.len()).map_err(|e| unreachable_peer(peer, &e))?;
        let slot = self.peers.get_mut(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        if name.len() != len {
            return Err(TransportError::Malformed {
                peer,
                what: "provider address (or one of another family)",
            });
        }
        let address = self.addresses.insert(name).map_err(|e| unreachable_peer(peer, &e))?;
        *slot = Some(Peer { address, broken: None });
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
        let key = match self.traits.key_mask {
            // All ones means: no key (fi_mr(3), FI_KEY_NOTAVAIL).
            Some(mask) => (random()? & mask).min(mask - 1),
            None => 0,
        };
        // SAFETY: the caller's promise.
        let region =
            unsafe { MemoryRegion::register(&self.domain, memory, len, access, key) }.map_err(refused)?;
        if self.traits.bound {
            region.enable_on(endpoint).map_err(refused)?;
        }
        Ok(region)
    }

    /// Posts a put or a get. `Ok(false)`: not taken.
    ///
    /// # Safety
    /// The local buffer is the provider's until the completion, or until the port is closed.
    pub unsafe fn access(&mut self, access: &Access) -> TransportResult<bool> {
        let address = self.peer(access.peer)?.address;
        if !self.operations.has_room() {
            return Ok(false);
        }
        let mut local = Local::new(access.local, access.len);
        let mut registration = None;
        if self.traits.local {
            let kind = if access.write { flags::WRITE } else { flags::READ };
            // SAFETY: the buffer stays until completion, when the registration is dropped first.
            let region = unsafe { self.register(access.local, access.len, kind)? };
            local.descriptor = region.descriptor();
            registration = Some(region);
        }
        let operation = Operation { peer: access.peer, context: access.context, _registration: registration };
        let key = self.operations.begin(operation);
        let context = self.operations.context(Context::Access(key));
        // SAFETY: the buffer by contract; it is registered where asked for; the address is of our vector and never
        // removed; the context is provider's memory until completion (fi_rma(3), fi_getinfo(3)).
        let posted = self.endpoint().and_then(|endpoint| unsafe {
            let posted = if access.write {
                let how = flags::DELIVERY_COMPLETE | flags::COMPLETION;
                endpoint.write_parts(&[local], address, access.remote, context, how)
            } else {
                endpoint.read(local, address, access.remote, context)
            };
            posted.map_err(|e| unreachable_peer(access.peer, &e))
        });
        if !matches!(posted, Ok(Posted::Done)) {
            self.operations.end(key);
        }
        Ok(posted? == Posted::Done)
    }

    /// Sends a message, which is copied. `Ok(false)`: not taken.
    pub fn send(&mut self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<bool> {
        let len = header.len() + payload.len();
        let Peer { address, broken } = self.peer(peer)?;
        if let Some(reason) = broken {
            return Err(TransportError::Peer { peer, reason: reason.clone() });
        }
        let address = *address;
        let posted = if len <= self.traits.inject.min(MAX_INJECT) {
            let mut bytes = [0; MAX_INJECT];
            bytes[..header.len()].copy_from_slice(header);
            bytes[header.len()..len].copy_from_slice(payload);
            // SAFETY: fi_msg(3): injected bytes are copied; the address is of our vector and never removed.
            unsafe { self.endpoint()?.inject(&bytes[..len], address) }
        } else {
            let Some(buffer) = self.outbox.free.pop() else { return Ok(false) };
            let posted = self.send_from(buffer, address, header, payload);
            match posted {
                Ok(Ok(Posted::Done)) => self.outbox.peers[buffer] = Some(peer),
                _ => self.outbox.free.push(buffer),
            }
            posted?
        };
        Ok(posted.map_err(|e| unreachable_peer(peer, &e))? == Posted::Done)
    }

    fn send_from(
        &self,
        buffer: usize,
        to: Address,
        header: &[u8],
        payload: &[u8],
    ) -> TransportResult<Result<Posted, FabricError>> {
        let endpoint = self.endpoint()?;
        // SAFETY: the buffer was free: the provider does not have it, and we are under the port's lock.
        unsafe { self.outbox.buffers.fill(buffer, header, payload) };
        let message = Local {
            address: self.outbox.buffers.at(buffer),
            len: header.len() + payload.len(),
            descriptor: self.outbox.descriptor,
        };
        let context = self.operations.context(Context::Send(buffer));
        // SAFETY: the buffer is not touched until its completion, lives longer than the endpoint, and is registered
        // where asked for; address and context as in `access`.
        Ok(unsafe { endpoint.send(message, to, context) })
    }

    /// Gives a buffer to the provider for a message to arrive in.
    pub fn receive_into(&mut self, buffer: usize) -> TransportResult<()> {
        let message = Local {
            address: self.inbox.buffers.at(buffer),
            len: self.inbox.buffers.size(),
            descriptor: self.inbox.descriptor,
        };
        let context = self.operations.context(Context::Receive(buffer));
        // SAFETY: the buffer is not read until its completion; the rest as in `send_from`.
        let posted = unsafe { self.endpoint()?.recv(message, context) };
        match posted {
            Ok(Posted::Done) => self.inbox.posted[buffer] = true,
            Ok(Posted::Again) => self.inbox.waiting.push(buffer),
            Err(e) => return Err(TransportError::System { operation: "fi_recv", reason: e.to_string() }),
        }
        Ok(())
    }

    /// Closes the endpoint and all registrations: no memory is touched by the provider any more.
    pub fn close(&mut self) {
        self.regions.clear();
        self.endpoint = None;
        self.operations.clear();
        self.registrations.clear();
    }
}

/// An error of an operation to a peer.
pub(crate) fn unreachable_peer(peer: usize, error: &FabricError) -> TransportError {
    TransportError::Peer { peer, reason: error.to_string() }
}

fn random() -> TransportResult<u64> {
    getrandom::u64().map_err(|e| TransportError::System { operation: "getrandom", reason: e.to_string() })
}
