//! All of a rank's connections and regions, to be used under one lock.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use slab::Slab;
use transom_transport::{Completion, TransportError, TransportResult};

use crate::NAME;
use crate::card::{Card, Machine, Secret};
use crate::handshake::Nonces;
use crate::input::Inbox;
use crate::interface::Interface;
use crate::link::{Broken, Link, State, Told};
use crate::listen::Stranger;
use crate::region::Regions;
use crate::wait::{For, Owner, Wait};

/// As many connections are read directly; of more, the epoll says which.
pub(crate) const DIRECT: usize = 4;
/// Receives of a connection that is read directly before it leaves the epoll.
const DETACHED_AFTER: u32 = 64;
/// Looks between two at the epoll, where connections are read directly, and where nobody is connected.
const LOOKS_AROUND: u64 = 32;
/// From the refusal of a peer until the end of the job has to have come, if that peer has left.
const LEFT_WITHIN: Duration = Duration::from_secs(5);
/// From the death of a process or of its host until who starts processes has to have told of it.
const KNOWN_WITHIN: Duration = Duration::from_secs(20);

/// All of a rank's connections and regions.
#[derive(Debug)]
pub(crate) struct Port {
    pub rank: usize,
    pub secret: Secret,
    pub machine: Machine,
    pub nonces: Nonces,
    pub interfaces: Vec<Interface>,
    pub connect_timeout: Duration,
    pub peer_timeout: Duration,
    /// What was sent to peers may be on its way for ever.
    pub is_distrusted: bool,
    /// Until abandoned.
    pub is_open: bool,
    pub links: Box<[Option<Box<Link>>]>,
    pub regions: Regions,
    pub listeners: Vec<(TcpListener, SocketAddr)>,
    /// When to accept connections again, if that has stopped.
    pub listens_again: Option<Instant>,
    /// Since when there was no room for connections again and again, and when last.
    pub full: Option<(Instant, Instant)>,
    pub strangers: Slab<Stranger>,
    /// Peers that are being connected to.
    pub dials: Vec<usize>,
    /// Peers with a connection.
    pub connected: Vec<usize>,
    /// The peer that something came from last, of many.
    pub recent: Option<usize>,
    /// Peers with something to send.
    pub listed: Vec<usize>,
    /// Ends of operations, to be handed out.
    pub ended: Vec<Completion>,
    /// Messages to itself.
    pub own: VecDeque<Vec<u8>>,
    pub wait: Wait,
    /// Not while a thread makes progress without the lock.
    pub inbox: Option<Box<Inbox>>,
    /// There is no way to a peer, and what was sent to it is lost: to be told once, since messages have no completion, and when.
    pub unreachable: Option<(Instant, TransportError)>,
    /// This rank waits for the end of the job.
    pub leaves: bool,
    /// Peers whose connections are not in the epoll.
    detached: Vec<usize>,
    events: Vec<Owner>,
    /// Counts looks for arrivals.
    pub looks: u64,
    /// A thread hands out messages, and flushes when it has.
    pub is_handing_out: bool,
    /// A thread sleeps, or is about to.
    pub is_armed: bool,
    /// The next look is at the epoll, too.
    pub looks_around: bool,
}

impl Port {
    pub fn new(
        options: &crate::Options,
        (card, nonces): (&Card, Nonces),
        interfaces: Vec<Interface>,
        listeners: Vec<(TcpListener, SocketAddr)>,
    ) -> TransportResult<Self> {
        let port = Self {
            rank: options.rank,
            secret: card.secret,
            machine: card.machine,
            nonces,
            interfaces,
            connect_timeout: options.connect_timeout,
            peer_timeout: options.peer_timeout,
            is_distrusted: false,
            is_open: true,
            links: (0..options.ranks).map(|_| None).collect(),
            regions: Regions::default(),
            listeners,
            listens_again: None,
            full: None,
            strangers: Slab::new(),
            dials: Vec::new(),
            connected: Vec::new(),
            recent: None,
            listed: Vec::new(),
            ended: Vec::new(),
            own: VecDeque::new(),
            wait: Wait::new()?,
            inbox: Some(Box::default()),
            unreachable: None,
            leaves: false,
            detached: Vec::new(),
            events: Vec::new(),
            looks: 0,
            is_handing_out: false,
            is_armed: false,
            looks_around: true,
        };
        for (index, (listener, _)) in port.listeners.iter().enumerate() {
            port.wait.add(listener.as_fd(), Owner::Listener(index), For::Reading)?;
        }
        Ok(port)
    }

    #[inline]
    pub fn check_open(&self) -> TransportResult<()> {
        if self.is_open {
            return Ok(());
        }
        let reason = "its operations were abandoned".into();
        Err(TransportError::Unavailable { transport: NAME, reason })
    }

    /// Notes who has something, as far as it is not read directly; or reads nothing but `recent` this time.
    #[inline]
    pub fn readable(&mut self, readable: &mut Vec<usize>) {
        readable.clear();
        let direct = self.connected.len() <= DIRECT;
        let idle = self.connected.is_empty() || !(self.dials.is_empty() && self.strangers.is_empty());
        let turn = match direct {
            true => self.looks.is_multiple_of(LOOKS_AROUND),
            false => self.looks.is_multiple_of(2) || self.recent.is_none(),
        };
        if turn || idle || self.looks_around {
            self.look_around(readable);
            if !direct {
                return;
            }
            readable.clear();
        }
        match direct {
            true => readable.extend(&self.connected),
            false => readable.extend(self.recent),
        }
    }

    /// Looks at the epoll: takes new connections, goes on with those under way, and notes peers that have sent something.
    #[cold]
    fn look_around(&mut self, readable: &mut Vec<usize>) {
        self.looks_around = false;
        let mut events = std::mem::take(&mut self.events);
        self.wait.look(&mut events);
        for event in &events {
            match *event {
                Owner::Peer(peer) => readable.push(peer),
                Owner::Dial(peer) => self.advance_dial(peer),
                Owner::Listener(index) => self.accept_all(index),
                Owner::Stranger(index) => self.advance_stranger(index),
                Owner::Timer => self.wait.stop_timer(),
            }
        }
        self.events = events;
        self.expire();
    }

    /// Receives from a peer, and carries out what has come.
    #[inline]
    pub fn read(&mut self, peer: usize, inbox: &mut Inbox) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let result = link.receive(peer, &self.regions, inbox);
        if result == Ok(true) {
            link.finds += 1;
            if link.finds == DETACHED_AFTER {
                self.detach(peer);
            }
        }
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if let Err(broken) = result {
            let broken = link.broken.take().unwrap_or(broken);
            self.break_off(peer, broken);
        } else if link.has_output() && !link.is_listed {
            self.list(peer);
        }
    }

    /// Takes a connection that is read directly, and often, out of the epoll: each arrival costs less then. It comes back when
    /// somebody sleeps.
    #[cold]
    fn detach(&mut self, peer: usize) {
        let Some(link) = self.links[peer].as_deref_mut() else { return };
        link.finds = 0;
        let State::Ready(socket) = &link.state else { return };
        if self.is_armed || self.connected.len() > DIRECT || link.is_watched || self.detached.contains(&peer)
        {
            return;
        }
        if self.wait.remove(socket.as_fd()).is_ok() {
            self.detached.push(peer);
        }
    }

    /// Puts all connections into the epoll.
    pub fn attach_all(&mut self) {
        while let Some(peer) = self.detached.pop() {
            let Some(link) = self.links[peer].as_deref_mut() else { continue };
            link.finds = 0;
            let State::Ready(socket) = &link.state else { continue };
            if let Err(error) = self.wait.add(socket.as_fd(), Owner::Peer(peer), For::Reading) {
                self.break_off(peer, error.to_string().into());
            }
        }
    }

    /// Notes that there is something to send to a peer.
    #[inline]
    pub fn list(&mut self, peer: usize) {
        if let Some(link) = self.links[peer].as_deref_mut()
            && !link.is_listed
        {
            link.is_listed = true;
            self.listed.push(peer);
        }
    }

    /// Sends to a peer what there is. Whether that was all.
    pub fn flush(&mut self, peer: usize) -> bool {
        let Some(link) = self.links[peer].as_deref_mut() else { return true };
        link.sent_at = self.looks;
        if let State::Ready(socket) = &link.state {
            socket.keep_to_window(!self.is_armed);
        }
        match link.flush() {
            Ok(all) => {
                if link.is_watched == all && (all || self.is_armed) {
                    self.watch(peer, !all);
                }
                all
            }
            Err(broken) => {
                link.stop_sending(broken);
                true
            }
        }
    }

    /// Sends what there is to all peers, as far as they take it.
    #[inline]
    pub fn flush_listed(&mut self) {
        let mut i = 0;
        while let Some(peer) = self.listed.get(i).copied() {
            if self.flush(peer) {
                if let Some(link) = self.links[peer].as_deref_mut() {
                    link.is_listed = false;
                }
                self.listed.swap_remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Watches for room in a peer's socket, or does so no longer.
    fn watch(&mut self, peer: usize, watched: bool) {
        let Some(link) = self.links[peer].as_deref_mut() else { return };
        let State::Ready(socket) = &link.state else { return };
        let what = if watched { For::Both } else { For::Reading };
        // Of a descriptor that is in it, it refuses nothing (epoll_ctl(2)).
        let _ = self.wait.change(socket.as_fd(), Owner::Peer(peer), what);
        link.is_watched = watched;
    }

    /// A connection breaks. Completions tell of it; where nothing is under way, the next look.
    #[cold]
    pub fn break_off(&mut self, peer: usize, broken: Broken) {
        let Broken { reason, told } = broken;
        let is_idle = |link: &Link| link.puts.len() == 0 && link.gets.is_empty();
        let after = match told {
            Told::Here => Some(Duration::ZERO),
            // What others have sent may take as long as they may be silent.
            Told::Late if self.leaves => Some(self.peer_timeout + LEFT_WITHIN),
            Told::Late => Some(KNOWN_WITHIN),
            Told::Elsewhere => None,
        };
        if let Some(after) = after
            && self.links.get(peer).and_then(Option::as_deref).is_some_and(is_idle)
        {
            self.tell_unreachable(TransportError::Peer { peer, reason: reason.clone() }, after);
        }
        self.lose(peer, &reason);
    }

    /// A peer refuses to be connected to. If this rank waits for the end of the job it may have left, or else be unreachable: what
    /// this rank waits for will come soon, or not at all.
    #[cold]
    pub fn refused(&mut self, peer: usize, reason: String) {
        if !self.leaves {
            return self.break_off(peer, reason.into());
        }
        self.tell_unreachable(TransportError::Peer { peer, reason: reason.clone() }, LEFT_WITHIN);
        self.lose(peer, &reason);
    }

    /// Has the next look after that time tell of an error, if none is to be told sooner.
    pub fn tell_unreachable(&mut self, error: TransportError, after: Duration) {
        let at = Instant::now() + after;
        if self.unreachable.as_ref().is_none_or(|(before, _)| at < *before) {
            self.unreachable = Some((at, error));
            if self.is_armed {
                self.wait.wake_in(after);
            }
        }
    }

    /// Whether it is time to tell that a peer cannot be reached.
    #[inline]
    pub fn tells_unreachable(&self) -> bool {
        self.unreachable.as_ref().is_some_and(|(at, _)| Instant::now() >= *at)
    }

    /// Whether all that was taken has been sent, but to peers that are lost.
    pub fn is_sent(&self) -> bool {
        self.links.iter().flatten().all(|link| link.is_done())
    }

    /// The connection to a peer is over, or there is none: all that was under way there fails.
    #[cold]
    pub fn lose(&mut self, peer: usize, reason: &str) {
        let Some(link) = self.links.get_mut(peer).and_then(Option::as_deref_mut) else { return };
        tracing::debug!(rank = self.rank, peer, reason, "lost");
        let mut lost = Link::new(link.card.clone());
        lost.state = State::Lost(reason.to_owned());
        // It stays in the list of those with something to send until that is looked at.
        lost.is_listed = link.is_listed;
        let mut link = std::mem::replace(link, lost);
        let contexts =
            std::iter::from_fn(|| link.puts.pop()).chain(link.gets.drain(..).map(|get| get.context));
        let failed = |context| {
            let error = TransportError::Peer { peer, reason: reason.to_owned() };
            Completion { context, value: 0, result: Err(error) }
        };
        self.ended.extend(contexts.map(failed));
        self.connected.retain(|connected| *connected != peer);
        self.dials.retain(|dialed| *dialed != peer);
        self.recent = self.recent.filter(|recent| *recent != peer);
        if self.is_armed {
            self.wait.wake_in(Duration::ZERO);
        }
    }

    /// A region ends: peers access it no more.
    pub fn end_region(&mut self, key: u64) {
        let Some(region) = self.regions.remove(key) else { return };
        // Else nobody is at it.
        if std::sync::Arc::strong_count(&region) > 1 {
            self.links.iter_mut().flatten().for_each(|link| link.release(&region));
        }
    }

    /// Nobody sleeps any more.
    pub fn disarm(&mut self, readable: bool) {
        self.is_armed = false;
        self.looks_around |= readable;
        self.wait.stop_timer();
    }

    /// Makes sure that who sleeps wakes in time for dials and strangers.
    pub fn watch_time(&mut self) {
        if self.is_armed
            && let Some(time) = self.expire()
        {
            self.wait.wake_in(time.saturating_duration_since(Instant::now()));
        }
    }

    /// Tells all peers that no more comes.
    pub fn end_connections(&self) {
        for link in self.links.iter().flatten() {
            if let State::Ready(socket) = &link.state {
                socket.end();
            }
        }
    }

    /// Drops what has come: data that nobody has read makes the system end a connection by a reset, which overtakes what was
    /// sent. Whether hosts of peers have yet to acknowledge something.
    pub fn discard_input(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let mut is_under_way = false;
        for link in self.links.iter().flatten() {
            let State::Ready(socket) = &link.state else { continue };
            while matches!(socket.receive_into(&mut buffer), Ok(Some(1..))) {}
            is_under_way |= socket.unacknowledged() > 0;
        }
        is_under_way
    }

    /// Ends everything.
    pub fn close(&mut self) {
        self.is_open = false;
        for peer in 0..self.links.len() {
            self.lose(peer, "the transport was abandoned");
        }
        self.ended.clear();
        self.own.clear();
        self.strangers.clear();
        self.listeners.clear();
        self.listed.clear();
        self.regions.clear();
    }
}
