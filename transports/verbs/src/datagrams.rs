//! Connections by datagrams of the device's own (UD): nothing is needed but the addresses from the bootstrap. Requests and
//! answers may be lost or arrive twice.
//!
//! Only the asking side posts work requests, so the partner is ready when it can receive, and the answer makes the asking
//! side ready to send: two datagrams.

use ibverbs::{Access, AddressHandle, Mtu, Operation, Path, QueuePair, Request, Route, Sending, VerbsError};
use zerocopy::IntoBytes;

use crate::connect::{Connector, FOR_EVER, MIN_NOT_READY, RETRIES};
use crate::device::{Network, PORT};
use crate::link::{Attempt, State};
use crate::pool::Pool;
use crate::port::Port;
use crate::wire::{Address, Hello, Kind};
use crate::work::Identity;

/// A datagram that arrives has a global routing header before it (ibv_post_recv(3)).
pub(crate) const ROUTING_HEADER: usize = 40;

/// What datagrams go through.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub queue_pair: QueuePair,
    pub queue_key: u32,
    pub incoming: Pool,
    pub outgoing: Pool,
    /// Where the datagram in each outgoing buffer goes, while it is on its way.
    pub handles: Box<[Option<AddressHandle>]>,
}

impl Datagrams {
    /// Makes a queue pair ready to be connected.
    pub fn prepare(queue_pair: &QueuePair) -> Result<(), VerbsError> {
        queue_pair.initialise(PORT, Access::NONE)
    }
}

/// The way to a queue pair of a peer.
pub(crate) fn path_to(
    port: &Port,
    address: &Address,
    (number, sequence): (u32, u32),
    receiver_not_ready: u8,
) -> Path {
    let Route { lid, gid, gid_index, global, port: of } = route_to(port, address);
    let sizes = [Mtu::Bytes256, Mtu::Bytes512, Mtu::Bytes1024, Mtu::Bytes2048, Mtu::Bytes4096];
    let theirs = sizes.into_iter().find(|mtu| *mtu as u8 == address.mtu).unwrap_or(Mtu::Bytes256);
    Path {
        number,
        sequence,
        lid,
        gid,
        gid_index,
        global,
        mtu: port.device.mtu.min(theirs),
        port: of,
        responder_depth: port.bounds.answers,
        receiver_not_ready,
    }
}

fn route_to(port: &Port, address: &Address) -> Route {
    let device = &port.device;
    Route {
        lid: address.lid,
        gid: address.gid,
        gid_index: device.gid.index,
        // Ethernet has nothing else; on InfiniBand only what is behind a router needs it.
        global: device.network == Network::Ethernet || address.gid[..8] != device.gid.bytes[..8],
        port: PORT,
    }
}

impl Port {
    /// Asks a peer for a partner.
    pub fn request_by_datagram(&mut self, peer: usize) -> Result<(), VerbsError> {
        let Some(Some(link)) = self.links.get(peer) else { return Ok(()) };
        let State::Connecting(attempt) = &link.state else { return Ok(()) };
        let address = link.address;
        let (number, sequence) = (attempt.queue_pair.number(), attempt.sequence);
        let hello = self.hello(Kind::Request, peer, &address, link.attempts);
        let hello = hello.of(number, sequence, self.bounds.answers);
        let handle = AddressHandle::new(&self.domain, &route_to(self, &address))?;
        self.tell(&hello, &address, handle);
        Ok(())
    }

    /// Sends a datagram that need not arrive.
    pub fn send_datagram(&mut self, hello: &Hello, address: &Address) {
        if let Ok(handle) = AddressHandle::new(&self.domain, &route_to(self, address)) {
            self.tell(hello, address, handle);
        }
    }

    /// Sends a datagram, if there is a buffer for it: who waits for it asks again.
    fn tell(&mut self, hello: &Hello, address: &Address, handle: AddressHandle) {
        let Some(Connector::Datagrams(datagrams)) = &mut self.connector else { return };
        let Some(buffer) = datagrams.outgoing.take() else { return };
        // SAFETY: the buffer was free: the device does not have it, and we are under the port's lock.
        unsafe { datagrams.outgoing.fill(buffer, hello.as_bytes(), &[]) };
        let local = datagrams.outgoing.local(buffer, Hello::BYTES);
        let operation =
            Operation::SendTo { handle: &handle, number: address.number, qkey: address.queue_key };
        self.batch.clear();
        let pushed = self.batch.push(&Request {
            id: Identity::DatagramOut(buffer).number(),
            operation,
            parts: &[local],
            signalled: true,
            inline: false,
            fence: false,
            solicited: true,
        });
        debug_assert!(pushed.is_ok(), "an empty batch has room");
        // SAFETY: the buffer is registered, and neither it nor the handle goes before the completion.
        let posted = unsafe { datagrams.queue_pair.post(&mut self.batch) };
        match posted {
            Ok(()) => datagrams.handles[buffer as usize] = Some(handle),
            Err(_) => datagrams.outgoing.give(buffer),
        }
    }

    /// A datagram has left its buffer.
    pub fn told(&mut self, buffer: u32) {
        if let Some(Connector::Datagrams(datagrams)) = &mut self.connector
            && datagrams.handles.get_mut(buffer as usize).and_then(Option::take).is_some()
        {
            datagrams.outgoing.give(buffer);
        }
    }

    /// A datagram has arrived in a buffer.
    pub fn heard(&mut self, buffer: u32, len: usize) {
        let Some(Connector::Datagrams(datagrams)) = &self.connector else { return };
        // SAFETY: the device has given the buffer back, and gets it again below only.
        let bytes = unsafe { datagrams.incoming.bytes(buffer, len) };
        let hello = bytes.get(ROUTING_HEADER..).and_then(Hello::parse);
        self.listen(buffer);
        let Some((hello, kind)) = hello.and_then(|hello| Some((hello, hello.kind()?))) else { return };
        let Some((peer, address)) = self.recognise(&hello) else { return };
        match kind {
            Kind::Request => self.asked(peer, &address, &hello),
            Kind::Accept => {
                self.accepted(peer, &hello, |port, attempt, address| port.finish(attempt, address, &hello))
            }
            Kind::Refuse => tracing::debug!(peer, "it has no queue pair for us now"),
            Kind::Leave => self.left(peer, hello.attempt),
        }
    }

    /// Gives a buffer for datagrams to the device.
    pub fn listen(&mut self, buffer: u32) {
        let Some(Connector::Datagrams(datagrams)) = &self.connector else { return };
        let local = datagrams.incoming.local(buffer, datagrams.incoming.size());
        // SAFETY: registered, and not read before its completion.
        let posted =
            unsafe { datagrams.queue_pair.post_receive(Identity::DatagramIn(buffer).number(), local) };
        if let Err(error) = posted {
            tracing::warn!(%error, "a buffer for connection requests is lost");
        }
    }

    fn asked(&mut self, peer: usize, address: &Address, hello: &Hello) {
        let answer = self.hello(Kind::Accept, peer, address, hello.attempt);
        let answer = match self.partner(peer, address, hello) {
            Ok(None) => return,
            Ok(Some(inbound)) => {
                let (number, sequence) = (inbound.queue_pair.number(), inbound.sequence);
                answer.of(number, sequence, self.bounds.answers)
            }
            Err(error) => {
                tracing::warn!(peer, %error, "no queue pair for a peer that asks");
                self.evict();
                self.hello(Kind::Refuse, peer, address, hello.attempt)
            }
        };
        self.send_datagram(&answer, address);
    }

    fn finish(&self, attempt: &Attempt, address: &Address, hello: &Hello) -> Result<(), VerbsError> {
        let path = path_to(self, address, (hello.number, hello.sequence), MIN_NOT_READY);
        attempt.queue_pair.ready_to_receive(&path)?;
        attempt.queue_pair.ready_to_send(&Sending {
            sequence: attempt.sequence,
            timeout: self.bounds.timer,
            retries: RETRIES,
            receiver_not_ready_retries: FOR_EVER,
            initiator_depth: self.bounds.questions.min(hello.depth),
        })
    }
}
