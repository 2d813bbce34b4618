//! The methods of the trait `Transport`.

use std::sync::{Arc, Weak};

use libfabric::flags;
use transom_transport::{
    Armed, Capabilities, Event, Posted, Region, RegionKey, Remote, Span, Transfer, Transport, TransportError,
    TransportResult, Unwatched, WaitFd,
};
use zerocopy::FromBytes;

use crate::port::{Peer, Port, Reached};
use crate::progress::Found;
use crate::region::OfiRegion;
use crate::wire::{self, Key};
use crate::{NAME, Ofi};

impl Transport for Ofi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn reaches(&self, address: &[u8]) -> bool {
        wire::decode_address(address).is_some_and(|(provider, _)| provider == self.provider)
    }

    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()> {
        let Some((provider, name)) = wire::decode_address(address) else {
            return Err(TransportError::Malformed { peer, what: "libfabric address" });
        };
        if provider != self.provider {
            let reason = format!(
                "it uses provider {provider}, this rank {} (TRANSOM_OFI_PROVIDER sets one for all)",
                self.provider
            );
            return Err(TransportError::Peer { peer, reason });
        }
        self.shared.port.lock().connect(peer, name)
    }

    fn allocate(&self, _bytes: usize) -> TransportResult<Option<Span>> {
        Ok(None)
    }

    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>> {
        let mut region = OfiRegion {
            key: Key { base: 0, len: memory.len() as u64, key: 0 },
            registration: None,
            shared: Weak::new(),
            _memory: memory.clone(),
        };
        if !memory.is_empty() {
            let mut port = self.shared.port.lock();
            let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
            // SAFETY: the span stays valid while the region holds it, and the region ends the registration before it
            // lets go of the span; spans give out no references to their bytes.
            let registration = unsafe { port.register(memory.address() as *mut u8, memory.len(), access)? };
            if port.traits.virtual_addresses {
                region.key.base = memory.address() as u64;
            }
            region.key.key = registration.key();
            region.registration = Some(port.regions.insert(registration));
            region.shared = Arc::downgrade(&self.shared);
        }
        Ok(Box::new(region))
    }

    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote> {
        let malformed = TransportError::Malformed { peer, what: "libfabric region key" };
        let Ok(key) = Key::read_from_bytes(&key.0) else { return Err(malformed) };
        let Ok(len) = usize::try_from(key.len) else { return Err(malformed) };
        if key.base.checked_add(key.len).is_none() {
            return Err(malformed);
        }
        Ok(Remote { peer, len, direct: None, base: key.base, key: key.key })
    }

    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: the promise of this method's caller is that of `access`.
        unsafe { self.access(true, transfer) }
    }

    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: as in `put`.
        unsafe { self.access(false, transfer) }
    }

    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        let len = header.len() + payload.len();
        if len > self.capabilities.max_message {
            return Err(TransportError::Range { offset: 0, bytes: len, len: self.capabilities.max_message });
        }
        let taken = self.shared.port.lock().send(peer, header, payload)?;
        Ok(if taken { Posted::Complete } else { Posted::Again })
    }

    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        let Some(mut found) = self.poll()? else { return Ok(0) };
        let count = found.len();
        for event in &mut found {
            match event {
                Found::Message { buffer, len } => {
                    // SAFETY: the provider gave the buffer back, and gets it again in `give_back` only.
                    sink(Event::Message(unsafe { self.shared.inbox.bytes(*buffer, *len) }));
                }
                Found::Complete(completion) => {
                    let result = std::mem::replace(&mut completion.result, Ok(()));
                    let context = completion.context;
                    sink(Event::Complete(transom_transport::Completion { context, value: 0, result }));
                }
            }
        }
        self.give_back(found)?;
        Ok(count)
    }

    fn unwatched(&self, peers: &mut Vec<Unwatched>) {
        let port = self.shared.port.lock();
        let busy = port.operations.peers();
        let reached = |peer: &Peer| matches!(peer.reached, Reached::Yes) && peer.broken.is_none();
        peers.extend(port.peers.iter().enumerate().filter_map(|(rank, peer)| {
            let ended = peer.as_ref().filter(|peer| reached(peer))?.ended;
            Some(Unwatched { peer: rank, ended, busy: busy.contains(&rank) })
        }));
    }

    /// What was injected may still be the provider's, and what its sockets have is lost with them where a peer's question comes to a
    /// closed one first.
    fn delivers_after_the_end(&self) -> bool {
        false
    }

    fn distrust(&self) {
        self.shared.port.lock().distrusted = true;
    }

    fn abandon(&self) {
        self.shared.port.lock().close();
    }

    fn wait_fd(&self) -> WaitFd {
        self.wait_fd
    }

    fn arm(&self) -> TransportResult<Armed> {
        let mut port = self.shared.port.lock();
        port.endpoint()?;
        if !port.inbox.waiting.is_empty() {
            return Ok(Armed::Ready);
        }
        let Port { wait, fabric, queue, .. } = &mut *port;
        Ok(if wait.arm(fabric, queue)? { Armed::Sleep } else { Armed::Ready })
    }

    fn disarm(&self, _readable: bool) {
        self.shared.port.lock().wait.disarm();
    }
}
