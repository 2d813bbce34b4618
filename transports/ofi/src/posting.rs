//! Posts operations.

use libfabric::{Address, FabricError, Local, Posted, Remote, flags};
use transom_transport::{TransportError, TransportResult};

use crate::operations::{Context, Operation};
use crate::port::{Peer, Port, unreachable_peer};

/// Longest message that is copied to the stack to be injected.
const MAX_INJECT: usize = 512;

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
        self.note(access.peer, posted? == Posted::Done)
    }

    /// Whether something for a peer was taken; an error where that is hopeless.
    fn note(&mut self, peer: usize, taken: bool) -> TransportResult<bool> {
        let found = self.peers.get_mut(peer).and_then(Option::as_mut);
        let hopeful = found.is_none_or(|found| found.reached.note(taken, self.patience));
        if hopeful { Ok(taken) } else { Err(self.give_up(peer)) }
    }

    /// Sends a message, which is copied. `Ok(false)`: not taken.
    pub fn send(&mut self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<bool> {
        let len = header.len() + payload.len();
        let Peer { address, broken, .. } = self.peer(peer)?;
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
        let taken = posted.map_err(|e| unreachable_peer(peer, &e))? == Posted::Done;
        self.note(peer, taken)
    }

    /// A peer takes nothing.
    #[cold]
    fn give_up(&mut self, peer: usize) -> TransportError {
        let reason = format!(
            "no connection in {:?} (TRANSOM_OFI_SILENCE): no way leads from this rank's network interface to that of the peer \
             (TRANSOM_OFI_INTERFACE chooses another)",
            self.patience.unwrap_or_default()
        );
        let error = TransportError::Peer { peer, reason: reason.clone() };
        if let Some(found) = self.peers.get_mut(peer).and_then(Option::as_mut) {
            found.broken = Some(reason);
        }
        self.unreachable = Some(error.clone());
        self.distrusted = true;
        error
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
}
