//! Connections, by datagrams: a rank that needs a peer makes a queue pair and asks for a partner until there is an answer.
//! Requests and answers may be lost or arrive twice.
//!
//! Only the asking side posts work requests, so the partner is ready when it can receive, and the answer makes the asking
//! side ready to send: two datagrams. Both carry secrets of both ranks, which no stranger has.

use std::time::{Duration, Instant};

use ibverbs::{
    Access, AddressHandle, Mtu, Operation, Path, QueuePair, QueuePairOptions, Request, Route, Sending,
    VerbsError,
};
use zerocopy::IntoBytes;

use crate::device::PORT;
use crate::link::{Attempt, State};
use crate::port::Port;
use crate::wire::{Address, Hello, Kind};
use crate::work::Identity;

/// A datagram that arrives has a global routing header before it (ibv_post_recv(3)).
pub(crate) const ROUTING_HEADER: usize = 40;
/// How long to wait for an answer before asking again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long to ask.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections in a row that break at once before a peer is given up.
const FAILURES: u32 = 1000;
/// 4.096 µs · 2^15: 134 ms, 7 times: about a second until a peer that does not answer is lost, by the device's own timers.
/// (Not 7 retries: soft-RoCE takes that for *for ever*.)
pub(crate) const TIMEOUT: u8 = 15;
pub(crate) const RETRIES: u8 = 6;
/// 0.64 ms until a message is sent again that found no receive; for ever (7), since receives come back.
pub(crate) const MIN_NOT_READY: u8 = 12;
pub(crate) const FOR_EVER: u8 = 7;

/// A new queue pair of this rank.
pub(crate) fn queue_pair(port: &Port) -> Result<QueuePair, VerbsError> {
    QueuePair::reliable(
        &port.domain,
        &QueuePairOptions {
            send: &port.queue,
            receive: &port.queue,
            shared: port.receives.as_ref(),
            sends: port.bounds.depth as u32,
            receives: 0,
            parts: 1,
            inline: port.bounds.inline,
            signal_all: false,
        },
    )
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
        global: device.ethernet || address.gid[..8] != device.gid.bytes[..8],
        port: PORT,
    }
}

impl Port {
    /// A peer is needed: makes a queue pair for it now, or when there is room for one.
    pub fn want(&mut self, peer: usize) {
        if !self.waiting.contains(&peer) {
            self.waiting.push_back(peer);
        }
        self.admit();
    }

    /// Makes queue pairs for peers that wait, while there is room.
    pub fn admit(&mut self) {
        while !self.waiting.is_empty() {
            if self.open >= self.bounds.queue_pairs && !self.evict() {
                return;
            }
            let Some(peer) = self.waiting.pop_front() else { return };
            match self.begin(peer) {
                Ok(()) => {}
                // The device has no room: another may make some.
                Err(error) if error.is_exhausted() && self.evict() => self.waiting.push_front(peer),
                Err(error) => self.lose(peer, &format!("no queue pair can be made for it: {error}")),
            }
        }
    }

    /// Closes the link that has been idle the longest; tells whether there was one.
    fn evict(&mut self) -> bool {
        let idle = self.links.iter().enumerate().filter_map(|(peer, link)| Some((peer, link.as_deref()?)));
        let oldest = idle.filter(|(_, link)| link.is_idle()).min_by_key(|(_, link)| link.used);
        let Some((peer, address)) = oldest.map(|(peer, link)| (peer, link.address)) else { return false };
        tracing::debug!(peer, "its queue pair goes to another");
        let attempt = self.links[peer].as_ref().map_or(0, |link| link.attempts);
        if let Some(link) = &mut self.links[peer] {
            link.state = State::Unconnected;
        }
        self.open -= 1;
        // All that was posted has been answered. If this is lost, the peer keeps a queue pair that nobody uses.
        let hello = self.hello(Kind::Leave, peer, &address, attempt);
        if let Ok(handle) = AddressHandle::new(&self.domain, &route_to(self, &address)) {
            self.tell(&hello, &address, handle);
        }
        true
    }

    /// Makes a queue pair and asks the peer for a partner.
    fn begin(&mut self, peer: usize) -> Result<(), VerbsError> {
        let Some(Some(link)) = self.links.get_mut(peer) else { return Ok(()) };
        if !matches!(link.state, State::Unconnected) {
            return Ok(());
        }
        link.attempts = link.attempts.wrapping_add(1);
        let queue_pair = queue_pair(self)?;
        queue_pair.initialise(PORT, Access::NONE)?;
        let sequence = getrandom::u32().unwrap_or_default() & 0xff_ffff;
        let now = Instant::now();
        let attempt = Attempt { queue_pair, sequence, began: now, again: now, pause: FIRST_PAUSE };
        if let Some(Some(link)) = self.links.get_mut(peer) {
            link.state = State::Connecting(Box::new(attempt));
        }
        self.open += 1;
        self.connecting.insert(peer);
        self.ask(peer, now);
        Ok(())
    }

    /// Asks those again that have not answered in time. When to do so next.
    pub fn ask_again(&mut self) -> Option<Instant> {
        if self.connecting.is_empty() {
            return None;
        }
        let now = Instant::now();
        for peer in self.connecting.clone() {
            self.ask(peer, now);
        }
        let next = |peer: &usize| match &self.links[*peer].as_ref()?.state {
            State::Connecting(attempt) => Some(attempt.again),
            _ => None,
        };
        self.connecting.iter().filter_map(next).min()
    }

    /// Asks a peer for a partner, if it is time to.
    fn ask(&mut self, peer: usize, now: Instant) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let (address, attempts) = (link.address, link.attempts);
        let State::Connecting(attempt) = &mut link.state else { return };
        if now < attempt.again {
            return;
        }
        if now - attempt.began > PATIENCE {
            let reason = format!("no answer to requests for a connection for {} s", PATIENCE.as_secs());
            return self.lose(peer, &reason);
        }
        attempt.again = now + attempt.pause;
        attempt.pause = (attempt.pause * 2).min(LONGEST_PAUSE);
        let (number, sequence) = (attempt.queue_pair.number(), attempt.sequence);
        let hello =
            self.hello(Kind::Request, peer, &address, attempts).of(number, sequence, self.bounds.answers);
        match AddressHandle::new(&self.domain, &route_to(self, &address)) {
            Ok(handle) => self.tell(&hello, &address, handle),
            Err(error) => self.lose(peer, &error.to_string()),
        }
    }

    fn hello(&self, kind: Kind, peer: usize, address: &Address, attempt: u32) -> Hello {
        Hello::new(kind, (address.secret, self.secret), (self.rank as u32, peer as u32), attempt)
    }

    /// Sends a datagram, if there is a buffer for it: who waits for it asks again.
    fn tell(&mut self, hello: &Hello, address: &Address, handle: AddressHandle) {
        let Some(datagrams) = &mut self.datagrams else { return };
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
            solicited: false,
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
        if let Some(datagrams) = &mut self.datagrams
            && datagrams.handles.get_mut(buffer as usize).and_then(Option::take).is_some()
        {
            datagrams.outgoing.give(buffer);
        }
    }

    /// A datagram has arrived in a buffer.
    pub fn heard(&mut self, buffer: u32, len: usize) {
        let Some(datagrams) = &self.datagrams else { return };
        // SAFETY: the device has given the buffer back, and gets it again below only.
        let bytes = unsafe { datagrams.incoming.bytes(buffer, len) };
        let hello = bytes.get(ROUTING_HEADER..).and_then(Hello::parse);
        self.listen(buffer);
        let Some((hello, kind)) = hello.and_then(|hello| Some((hello, hello.kind()?))) else { return };
        let peer = hello.from as usize;
        let Some(Some(link)) = self.links.get(peer) else { return };
        let address = link.address;
        let known = hello.to as usize == self.rank
            && hello.secret == self.secret
            && hello.own_secret == address.secret;
        match kind {
            _ if !known => tracing::debug!(peer, "a datagram of a stranger"),
            Kind::Request => self.asked(peer, &address, &hello),
            Kind::Accept => self.accepted(peer, &hello),
            Kind::Refuse => tracing::debug!(peer, "it has no queue pair for us now"),
            Kind::Leave => self.left(peer, &hello),
        }
    }

    /// Gives a buffer for datagrams to the device.
    pub fn listen(&mut self, buffer: u32) {
        let Some(datagrams) = &self.datagrams else { return };
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
        if let Ok(handle) = AddressHandle::new(&self.domain, &route_to(self, address)) {
            self.tell(&answer, address, handle);
        }
    }

    fn left(&mut self, peer: usize, hello: &Hello) {
        if self.inbound.get(&peer).is_some_and(|inbound| inbound.attempt == hello.attempt)
            && let Some(inbound) = self.inbound.remove(&peer)
        {
            self.retired.push(inbound.queue_pair);
        }
    }

    fn accepted(&mut self, peer: usize, hello: &Hello) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if hello.attempt != link.attempts || !matches!(link.state, State::Connecting(_)) {
            return;
        }
        let address = link.address;
        let State::Connecting(attempt) = std::mem::replace(&mut link.state, State::Unconnected) else {
            return;
        };
        self.connecting.remove(&peer);
        match self.finish(&attempt, &address, hello) {
            Ok(()) => {
                if let Some(Some(link)) = self.links.get_mut(peer) {
                    link.state = State::Ready(attempt.queue_pair);
                }
                self.ring(peer);
            }
            Err(error) => {
                self.open -= 1;
                self.lose(peer, &format!("its connection cannot be used: {error}"));
            }
        }
    }

    fn finish(&self, attempt: &Attempt, address: &Address, hello: &Hello) -> Result<(), VerbsError> {
        let path = path_to(self, address, (hello.number, hello.sequence), MIN_NOT_READY);
        attempt.queue_pair.ready_to_receive(&path)?;
        attempt.queue_pair.ready_to_send(&Sending {
            sequence: attempt.sequence,
            timeout: TIMEOUT,
            retries: RETRIES,
            receiver_not_ready_retries: FOR_EVER,
            initiator_depth: self.bounds.questions.min(hello.depth),
        })
    }

    /// The queue pair to a peer broke, and all that was posted has come back: asks for another one, if that may help.
    pub fn reconnect(&mut self, peer: usize) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        link.state = State::Unconnected;
        self.open -= 1;
        link.failures += 1;
        if link.failures > FAILURES {
            return self.lose(peer, "its connections break at once");
        }
        if link.works.is_empty() {
            self.admit();
        } else {
            self.want(peer);
        }
    }
}
