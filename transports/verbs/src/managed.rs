//! Connections by rdma_cm, from event to event: an address is found, then a route, then the peer answers; or a peer asks.

use std::time::{Duration, Instant};

use ibverbs::{
    Access, ConnectionEvent, ConnectionEventKind, ConnectionId, Parameters, QueuePair, VerbsError,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::connect::{Connector, FOR_EVER, MIN_NOT_READY, RETRIES, queue_pair};
use crate::device::Network;
use crate::inbound::Inbound;
use crate::link::State;
use crate::manager::{BROKEN, Manager, RESOLVE};
use crate::peer_receives::PeerReceives;
use crate::port::Port;
use crate::wire::{Address, Grant, Hello, Kind};

/// How long to wait for an event of a request before it is made anew. Devices say themselves after 5 to 10 s that there is no
/// answer.
const SILENCE: Duration = Duration::from_secs(12);

impl Port {
    fn manager(&mut self) -> Option<&mut Manager> {
        match &mut self.connector {
            Some(Connector::Manager(manager)) => Some(manager),
            _ => None,
        }
    }

    /// Asks a peer for a partner.
    pub fn request_by_manager(&mut self, peer: usize) -> Result<(), VerbsError> {
        if self.manager().is_some_and(|manager| manager.outbound.contains_key(&peer)) {
            tracing::debug!(peer, "no event of a request for a connection");
            self.try_later(peer);
            return Ok(());
        }
        let Some(Some(link)) = self.links.get_mut(peer) else { return Ok(()) };
        let State::Connecting(attempt) = &mut link.state else { return Ok(()) };
        let Some(Connector::Manager(manager)) = &mut self.connector else { return Ok(()) };
        match manager.ask(peer, &link.address) {
            Ok(()) => attempt.again = Instant::now() + SILENCE,
            Err(error) => tracing::debug!(peer, %error, "asking for a connection failed at once"),
        }
        Ok(())
    }

    /// Takes what has happened to connections.
    pub fn take_events(&mut self) {
        loop {
            let Some(manager) = self.manager() else { return };
            match manager.event() {
                Ok(Some(event)) => self.happened(event),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "events of connections cannot be read");
                    return;
                }
            }
        }
    }

    fn happened(&mut self, event: ConnectionEvent) {
        if let Some(id) = event.asking {
            self.asked_for(id, &event.data, event.depths);
            return;
        }
        let Some((peer, outbound)) = self.manager().and_then(|manager| manager.whose(event.id)) else {
            return;
        };
        let done = match (event.kind, outbound) {
            (ConnectionEventKind::AddressResolved, true) => self.address_resolved(peer),
            (ConnectionEventKind::RouteResolved, true) => self.route_resolved(peer),
            (ConnectionEventKind::Response | ConnectionEventKind::Established, true) => {
                self.answered(peer, &event);
                Ok(())
            }
            (ConnectionEventKind::Failed, true) => {
                tracing::debug!(peer, status = event.status, "a request for a connection failed");
                self.try_later(peer);
                Ok(())
            }
            (ConnectionEventKind::Disconnected | ConnectionEventKind::DeviceRemoved, true) => {
                let reason = match self.peer_receives {
                    Some(_) => BROKEN,
                    None => "its connection has ended (so has the process, or the way to it is cut)",
                };
                self.lose(peer, reason);
                Ok(())
            }
            (
                ConnectionEventKind::Failed
                | ConnectionEventKind::Disconnected
                | ConnectionEventKind::DeviceRemoved,
                false,
            ) => {
                self.manager().and_then(|manager| manager.inbound.remove(&peer));
                if let Some(attempt) = self.inbound.get(&peer).map(|inbound| inbound.attempt) {
                    self.left(peer, attempt);
                }
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::debug!(peer, %error, "a request for a connection failed");
            self.try_later(peer);
        }
    }

    /// Asks again after a pause, with another queue pair: this one may have been used, and the peer may know of it.
    fn try_later(&mut self, peer: usize) {
        self.part(peer);
        let fresh = self.fresh_pair();
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let State::Connecting(attempt) = &mut link.state else { return };
        match fresh {
            Ok(queue_pair) => {
                link.attempts = link.attempts.wrapping_add(1);
                attempt.queue_pair = queue_pair;
                attempt.again = Instant::now() + attempt.pause;
            }
            Err(error) => self.lose(peer, &format!("no queue pair can be made for it: {error}")),
        }
    }

    fn address_resolved(&mut self, peer: usize) -> Result<(), VerbsError> {
        let Some(manager) = self.manager() else { return Ok(()) };
        let Some(id) = manager.outbound.get(&peer) else { return Ok(()) };
        let device = id.device();
        if device.as_ref() != Some(&manager.device) {
            let (own, other) = (&manager.device, device.unwrap_or_default());
            let reason = format!("the way to it goes by device {other:?}, not by {own}");
            self.lose(peer, &reason);
            return Ok(());
        }
        id.resolve_route(RESOLVE)
    }

    fn route_resolved(&mut self, peer: usize) -> Result<(), VerbsError> {
        let Some(Some(link)) = self.links.get(peer) else { return Ok(()) };
        let State::Connecting(attempt) = &link.state else { return Ok(()) };
        let hello = self.hello(Kind::Request, peer, &link.address, link.attempts);
        let hello = hello.of(attempt.queue_pair.number(), 0, self.bounds.answers);
        let Some(Connector::Manager(manager)) = &self.connector else { return Ok(()) };
        let Some(id) = manager.outbound.get(&peer) else { return Ok(()) };
        attempt.queue_pair.initialise_for(id, self.asking_access())?;
        let depths = (self.bounds.answers, self.bounds.questions);
        id.connect(&self.parameters(&attempt.queue_pair, hello.as_bytes(), depths))
    }

    fn parameters<'a>(
        &self,
        queue_pair: &QueuePair,
        data: &'a [u8],
        (answers, questions): (u8, u8),
    ) -> Parameters<'a> {
        Parameters {
            number: queue_pair.number(),
            shared: self.receives.is_some(),
            data,
            responder_depth: answers,
            initiator_depth: questions,
            retries: RETRIES,
            receiver_not_ready_retries: FOR_EVER,
        }
    }

    /// What the peer may do on a queue pair that this rank posts on: nothing. But iWARP brings results of reads as writes.
    fn asking_access(&self) -> Access {
        match self.device.network {
            Network::Iwarp => Access::REMOTE_READ | Access::REMOTE_WRITE,
            _ => Access::NONE,
        }
    }

    /// The peer has accepted.
    fn answered(&mut self, peer: usize, event: &ConnectionEvent) {
        let hello = event.data.get(..Hello::BYTES).and_then(Hello::parse);
        let known = hello.and_then(|hello| Some((self.recognise(&hello)?.0, hello)));
        let Some((from, hello)) = known else { return self.try_later(peer) };
        if from != peer || hello.kind() != Some(Kind::Accept) {
            return self.try_later(peer);
        }
        let grant = event.data.get(Hello::BYTES..Hello::BYTES + Grant::BYTES);
        let grant = grant.and_then(|bytes| Grant::read_from_bytes(bytes).ok());
        let confirm = event.kind == ConnectionEventKind::Response;
        if let Some(peer_receives) = &self.peer_receives
            && let Some(Some(link)) = self.links.get_mut(peer)
        {
            let Some(grant) = grant else { return self.try_later(peer) };
            link.confirm = Some(peer_receives.confirm(peer, &grant));
        }
        self.accepted(peer, &hello, |port, attempt, _| {
            let Some(Connector::Manager(manager)) = &port.connector else { return Ok(()) };
            match manager.outbound.get(&peer) {
                Some(id) if confirm => {
                    attempt.queue_pair.ready_to_receive_from(id, MIN_NOT_READY)?;
                    attempt.queue_pair.ready_to_send_to(id, port.bounds.timer, RETRIES)?;
                    id.establish()
                }
                _ => Ok(()),
            }
        });
    }

    /// A peer wants a partner for a queue pair of its. Who is refused asks again.
    fn asked_for(&mut self, id: ConnectionId, data: &[u8], depths: (u8, u8)) {
        let hello = data.get(..Hello::BYTES).and_then(Hello::parse);
        let hello = hello.filter(|hello| hello.kind() == Some(Kind::Request));
        let known = hello.and_then(|hello| Some((self.recognise(&hello)?, hello)));
        let Some(((peer, address), hello)) = known else { return refuse(&id) };
        if let Some(peer_receives) = &self.peer_receives {
            let ready = peer_receives.is_ready(peer);
            if let Some(inbound) = self.inbound.get(&peer) {
                self.left(peer, inbound.attempt);
            }
            if !ready {
                // Until the device has given the receives back.
                return refuse(&id);
            }
        }
        if let Err(error) = self.accept(peer, &address, &hello, &id, depths) {
            tracing::warn!(peer, %error, "no queue pair for a peer that asks");
            self.evict();
            return refuse(&id);
        }
        if let Some(manager) = self.manager() {
            manager.inbound.insert(peer, id);
        }
    }

    fn accept(
        &mut self,
        peer: usize,
        address: &Address,
        hello: &Hello,
        id: &ConnectionId,
        (answers, questions): (u8, u8),
    ) -> Result<(), VerbsError> {
        let receives = self.peer_receives.as_ref().map_or(0, PeerReceives::each);
        let queue_pair = queue_pair(self, receives)?;
        queue_pair.initialise_for(id, Access::REMOTE_READ | Access::REMOTE_WRITE | self.atomic_access)?;
        if self.device.network != Network::Iwarp {
            queue_pair.ready_to_receive_from(id, MIN_NOT_READY)?;
        }
        let answer = self.hello(Kind::Accept, peer, address, hello.attempt);
        let answer = answer.of(queue_pair.number(), 0, self.bounds.answers);
        let mut data = answer.as_bytes().to_vec();
        if let Some(peer_receives) = &mut self.peer_receives {
            match peer_receives.open(peer, &queue_pair) {
                Ok(grant) => data.extend_from_slice(grant.as_bytes()),
                Err(error) => {
                    peer_receives.close(peer, queue_pair);
                    return Err(error);
                }
            }
        }
        let depths = (answers.min(self.bounds.answers), questions.min(self.bounds.questions));
        if let Err(error) = id.accept(&self.parameters(&queue_pair, &data, depths)) {
            if let Some(peer_receives) = &mut self.peer_receives {
                peer_receives.close(peer, queue_pair);
            }
            return Err(error);
        }
        let inbound = Inbound { queue_pair, attempt: hello.attempt, sequence: 0 };
        if let Some(old) = self.inbound.insert(peer, inbound) {
            // Its last messages may be in the completion queue: they came before this request.
            self.retired.push(old.queue_pair);
        }
        Ok(())
    }
}

fn refuse(id: &ConnectionId) {
    if let Err(error) = id.reject() {
        tracing::debug!(%error, "a connection is not refused in order");
    }
}
