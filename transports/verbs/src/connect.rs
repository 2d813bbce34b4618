//! Connections: a rank that needs a peer makes a queue pair and asks for a partner until there is an answer. Only the asking
//! side posts work requests. Request and answer carry secrets of both ranks, which no stranger has.
//!
//! Who needs a queue pair, who gives one up, and how long to ask, is the same for all networks and is here. How a request
//! gets to the peer is a [`Connector`]'s: datagrams (`datagrams`), or rdma_cm (`manager`).

use std::str::FromStr;
use std::time::{Duration, Instant};

use ibverbs::{QueuePair, QueuePairOptions, VerbsError};

use crate::datagrams::Datagrams;
use crate::link::{Attempt, State};
use crate::manager::Manager;
use crate::port::Port;
use crate::wire::{Address, Hello, Kind};

/// How long to wait for an answer before asking again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long to ask.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Connections in a row that break at once before a peer is given up.
const FAILURES: u32 = 1000;
/// How often a request is sent again that has no answer. (Not 7 times: soft-RoCE takes that for *for ever*.)
pub(crate) const RETRIES: u8 = 6;
/// 0.64 ms until a message is sent again that found no receive; for ever (7), since receives come back.
pub(crate) const MIN_NOT_READY: u8 = 12;
pub(crate) const FOR_EVER: u8 = 7;

/// The device's timer with which a request and its repetitions, [`RETRIES`], take no longer than this, as verbs write it:
/// 4.096 µs · 2^timer (ibv_modify_qp(3)). A millisecond at least, for networks that are busy, and 2.4 hours at most.
pub(crate) fn timer(silence: Duration) -> u8 {
    let units = silence.as_nanos() / 4096 / (u128::from(RETRIES) + 1);
    units.checked_ilog2().unwrap_or(0).clamp(8, 31) as u8
}

/// How queue pairs are connected. All ranks of a job must agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connect {
    /// By datagrams where the device has them, else by rdma_cm.
    #[default]
    Auto,
    /// By datagrams of the device's own (UD), which need nothing else. iWARP has none.
    Datagram,
    /// By rdma_cm: needs librdmacm, and an IP address of the device.
    Manager,
}

impl FromStr for Connect {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "auto" => Ok(Self::Auto),
            "datagram" => Ok(Self::Datagram),
            "cm" => Ok(Self::Manager),
            _ => Err(()),
        }
    }
}

/// What requests for connections go by.
#[derive(Debug)]
pub(crate) enum Connector {
    Datagrams(Datagrams),
    Manager(Manager),
}

/// A new queue pair of this rank; where there is no shared queue, with receives of its own.
pub(crate) fn queue_pair(port: &Port, receives: u32) -> Result<QueuePair, VerbsError> {
    QueuePair::reliable(
        &port.domain,
        &QueuePairOptions {
            send: &port.queue,
            receive: &port.queue,
            shared: port.receives.as_ref(),
            sends: port.bounds.depth as u32,
            // Some devices make no empty queue.
            receives: receives.max(1),
            parts: port.bounds.put_parts as u32,
            inline: port.bounds.inline,
            signal_all: false,
        },
    )
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
    pub fn evict(&mut self) -> bool {
        let idle = self.links.iter().enumerate().filter_map(|(peer, link)| Some((peer, link.as_deref()?)));
        let oldest = idle.filter(|(_, link)| link.is_idle()).min_by_key(|(_, link)| link.used);
        let Some((peer, address)) = oldest.map(|(peer, link)| (peer, link.address)) else { return false };
        tracing::debug!(peer, "its queue pair goes to another");
        let attempt = self.links[peer].as_ref().map_or(0, |link| link.attempts);
        // All that was posted has been answered.
        self.leave(peer, &address, attempt);
        if let Some(link) = &mut self.links[peer] {
            link.state = State::Unconnected;
        }
        self.open -= 1;
        true
    }

    /// Makes a queue pair and asks the peer for a partner.
    fn begin(&mut self, peer: usize) -> Result<(), VerbsError> {
        let Some(Some(link)) = self.links.get_mut(peer) else { return Ok(()) };
        if !matches!(link.state, State::Unconnected) {
            return Ok(());
        }
        link.attempts = link.attempts.wrapping_add(1);
        let queue_pair = self.fresh_pair()?;
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
        let State::Connecting(attempt) = &mut link.state else { return };
        if now < attempt.again {
            return;
        }
        if now - attempt.began > CONNECT_TIMEOUT {
            let reason =
                format!("no answer to requests for a connection for {} s", CONNECT_TIMEOUT.as_secs());
            return self.lose(peer, &reason);
        }
        attempt.again = now + attempt.pause;
        attempt.pause = (attempt.pause * 2).min(LONGEST_PAUSE);
        if let Err(error) = self.request(peer) {
            self.lose(peer, &error.to_string());
        }
    }

    /// A request, or an answer.
    pub fn hello(&self, kind: Kind, peer: usize, address: &Address, attempt: u32) -> Hello {
        Hello::new(kind, (address.secret, self.secret), (self.rank as u32, peer as u32), attempt)
    }

    /// The peer that a request or an answer is of, and its address; nothing if a stranger made it.
    pub fn recognise(&self, hello: &Hello) -> Option<(usize, Address)> {
        let peer = hello.from as usize;
        let address = self.links.get(peer)?.as_ref()?.address;
        let known = hello.to as usize == self.rank
            && hello.secret == self.secret
            && hello.own_secret == address.secret;
        if !known {
            tracing::debug!(peer, "a request of a stranger");
        }
        known.then_some((peer, address))
    }

    /// A peer does not use its queue pair any more.
    pub fn left(&mut self, peer: usize, attempt: u32) {
        if self.inbound.get(&peer).is_some_and(|inbound| inbound.attempt == attempt)
            && let Some(inbound) = self.inbound.remove(&peer)
        {
            match &mut self.peer_receives {
                Some(peer_receives) => peer_receives.close(peer, inbound.queue_pair),
                None => self.retired.push(inbound.queue_pair),
            }
        }
    }

    /// A peer has accepted a request: `finish` brings the queue pair into use.
    pub fn accepted(
        &mut self,
        peer: usize,
        hello: &Hello,
        finish: impl FnOnce(&Self, &Attempt, &Address) -> Result<(), VerbsError>,
    ) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if hello.attempt != link.attempts || !matches!(link.state, State::Connecting(_)) {
            return;
        }
        let address = link.address;
        let State::Connecting(attempt) = std::mem::replace(&mut link.state, State::Unconnected) else {
            return;
        };
        self.connecting.remove(&peer);
        match finish(self, &attempt, &address) {
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

    /// The queue pair to a peer broke, and all that was posted has come back: asks for another one, if that may help.
    pub fn reconnect(&mut self, peer: usize) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        link.state = State::Unconnected;
        link.failures += 1;
        let failures = link.failures;
        self.open -= 1;
        self.part(peer);
        if failures > FAILURES {
            return self.lose(peer, "its connections break at once");
        }
        match self.links[peer].as_ref().is_some_and(|link| !link.works.is_empty()) {
            true => self.want(peer),
            false => self.admit(),
        }
    }

    /// A queue pair that may be connected.
    pub fn fresh_pair(&self) -> Result<QueuePair, VerbsError> {
        let queue_pair = queue_pair(self, 0)?;
        if let Some(Connector::Datagrams(_)) = &self.connector {
            Datagrams::prepare(&queue_pair)?;
        }
        Ok(queue_pair)
    }

    /// Sends a request for a connection, or one more.
    fn request(&mut self, peer: usize) -> Result<(), VerbsError> {
        match &self.connector {
            Some(Connector::Datagrams(_)) => self.request_by_datagram(peer),
            Some(Connector::Manager(_)) => self.request_by_manager(peer),
            None => Ok(()),
        }
    }

    /// Tells a peer that its partner of this rank's queue pair is not needed any more. If that is lost, the peer keeps a
    /// queue pair that nobody uses.
    fn leave(&mut self, peer: usize, address: &Address, attempt: u32) {
        match &mut self.connector {
            Some(Connector::Datagrams(_)) => {
                let hello = self.hello(Kind::Leave, peer, address, attempt);
                self.send_datagram(&hello, address);
            }
            Some(Connector::Manager(manager)) => manager.leave(peer),
            None => {}
        }
    }

    /// Forgets the way to a peer, whose queue pair is broken.
    pub fn part(&mut self, peer: usize) {
        if let Some(Connector::Manager(manager)) = &mut self.connector {
            manager.part(peer);
        }
    }

    /// Looks whether somebody wants a connection or has answered, where that does not come through the completion queue:
    /// now, or now and then.
    pub fn watch(&mut self, now: bool) {
        if let Some(Connector::Manager(manager)) = &mut self.connector
            && manager.is_due(now || !self.connecting.is_empty())
        {
            self.take_events();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven timers are as long as can be, and no longer than what is asked for.
    #[test]
    fn timers() {
        let seven = |timer: u8| Duration::from_nanos((7 * 4096) << timer);
        for (seconds, timer_of_it) in [(1, 15), (4, 17), (10, 18), (60, 20)] {
            let silence = Duration::from_secs(seconds);
            assert_eq!(timer(silence), timer_of_it);
            assert!(seven(timer_of_it) <= silence && silence < seven(timer_of_it + 1));
        }
        assert_eq!((timer(Duration::ZERO), timer(Duration::MAX)), (8, 31));
    }
}
