//! Makes connections: begins them when a peer is first needed, takes those that others make, and chooses one for each peer.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use transom_transport::TransportError;

use crate::dial::{Dial, Dialed, Pair};
use crate::handshake::{GO, HERE};
use crate::link::{Link, State};
use crate::listen::{Accepted, Known, PATIENCE, STRANGERS, Stranger, accept};
use crate::port::{DIRECT, Port};
use crate::socket::Socket;
use crate::wait::{For, Owner};

/// How long nobody is accepted when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

impl Port {
    /// Begins to connect to a peer.
    pub fn dial(&mut self, peer: usize) {
        let pair = Pair { rank: self.rank, peer, silence: self.peer_timeout };
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let dial = Dial::new(pair, &link.card, &self.interfaces, self.connect_timeout);
        link.state = State::Dialing(Box::new(dial));
        self.dials.push(peer);
        self.expire_dial(peer, Instant::now());
        self.watch_time();
    }

    fn expire_dial(&mut self, peer: usize, now: Instant) {
        let Some(Link { state: State::Dialing(dial), .. }) = self.links[peer].as_deref_mut() else { return };
        let dialed = dial.expire(now, &mut self.nonces);
        self.dialed(peer, dialed);
    }

    /// The socket of a dial is ready.
    pub fn advance_dial(&mut self, peer: usize) {
        let Self { links, nonces, secret, .. } = self;
        let Some(Link { state: State::Dialing(dial), card, .. }) = links[peer].as_deref_mut() else { return };
        let dialed = dial.advance(|hello, answer| hello.proofs(answer, secret, &card.secret), nonces);
        self.dialed(peer, dialed);
    }

    fn dialed(&mut self, peer: usize, dialed: Dialed) {
        let Some(link) = self.links[peer].as_deref_mut() else { return };
        let State::Dialing(dial) = &mut link.state else { return };
        let watched = match (&dialed, dial.socket()) {
            (Dialed::Begun, Some(socket)) => self.wait.add(socket.as_fd(), Owner::Dial(peer), For::Writing),
            (Dialed::Connected, Some(socket)) => {
                self.wait.change(socket.as_fd(), Owner::Dial(peer), For::Reading)
            }
            _ => Ok(()),
        };
        match dialed {
            Dialed::Ready => {
                if let State::Dialing(dial) = std::mem::replace(&mut link.state, State::Unconnected)
                    && let Some(socket) = dial.into_socket()
                {
                    self.connected(peer, socket);
                }
            }
            Dialed::Failed { reason, refused: true } => self.refused(peer, reason),
            Dialed::Failed { reason, refused: false } => self.break_off(peer, reason.into()),
            _ => {}
        }
        if let Err(error) = watched {
            self.break_off(peer, error.to_string().into());
        }
    }

    /// A connection that both sides have agreed on.
    fn connected(&mut self, peer: usize, socket: Socket) {
        self.dials.retain(|dialed| *dialed != peer);
        if let Err(error) = self.wait.change(socket.as_fd(), Owner::Peer(peer), For::Reading) {
            self.break_off(peer, error.to_string().into());
            return;
        }
        tracing::debug!(rank = self.rank, peer, "connected");
        if let Some(link) = self.links[peer].as_deref_mut() {
            let within_machine = self.machine.is(link.card.machine);
            link.state = State::Ready(socket.established(within_machine));
            self.connected.push(peer);
            if self.connected.len() > DIRECT {
                self.attach_all();
            }
            self.list(peer);
        }
    }

    /// Takes the connections that wait at a listener.
    pub fn accept_all(&mut self, listener: usize) {
        for _ in 0..STRANGERS {
            let Some((listener, _)) = self.listeners.get(listener) else { return };
            match accept(listener, self.peer_timeout) {
                Accepted::Stranger(socket) => self.admit(socket),
                Accepted::Failed => {}
                Accepted::None => return,
                Accepted::Full(error) => return self.refuse_all(error),
            }
        }
    }

    fn admit(&mut self, socket: Socket) {
        if self.strangers.len() >= STRANGERS {
            let oldest =
                self.strangers.iter().min_by_key(|(_, stranger)| stranger.since).map(|(index, _)| index);
            oldest.map(|index| self.strangers.remove(index));
        }
        let entry = self.strangers.vacant_entry();
        if self.wait.add(socket.as_fd(), Owner::Stranger(entry.key()), For::Reading).is_ok() {
            entry.insert(Stranger::new(socket));
        }
    }

    /// A stranger has said something.
    pub fn advance_stranger(&mut self, index: usize) {
        loop {
            let Self { links, nonces, secret, strangers, .. } = self;
            let Some(stranger) = strangers.get_mut(index) else { return };
            let known = stranger.advance(self.rank, nonces, |hello, peer, answer| {
                let link = links.get(peer)?.as_deref()?;
                let free = matches!(link.state, State::Unconnected | State::Dialing(_));
                free.then(|| hello.proofs(answer, &link.card.secret, secret))
            });
            let (peer, chosen) = match known {
                Known::NotYet => return,
                Known::Refused => {
                    self.strangers.remove(index);
                    return;
                }
                // The higher rank leaves the choice to the lower.
                Known::Proved(peer) if peer < self.rank => continue,
                Known::Proved(peer) => (peer, false),
                Known::Chosen(peer) => (peer, true),
            };
            let stranger = self.strangers.remove(index);
            let free = self.links[peer].as_deref().is_some_and(|link| match &link.state {
                State::Unconnected => true,
                State::Dialing(dial) => !dial.has_chosen(),
                State::Ready(_) | State::Lost(_) => false,
            });
            // Else another connection was chosen meanwhile.
            if free && stranger.says(if chosen { &HERE } else { &GO }) {
                self.connected(peer, stranger.socket);
            }
            return;
        }
    }

    /// Lets go of strangers and attempts whose time is over; when to look again.
    pub fn expire(&mut self) -> Option<Instant> {
        let told = self.unreachable.as_ref().map(|(at, _)| *at);
        if self.strangers.is_empty() && self.dials.is_empty() && self.listens_again.is_none() {
            return told;
        }
        let now = Instant::now();
        self.strangers.retain(|_, stranger| now < stranger.since + PATIENCE);
        for i in (0..self.dials.len()).rev() {
            // Each may leave the list, the last one first.
            if let Some(peer) = self.dials.get(i).copied() {
                self.expire_dial(peer, now);
            }
        }
        if self.listens_again.is_some_and(|time| time <= now) {
            self.listen_again();
        }
        let dials = self.dials.iter().filter_map(|peer| match &self.links[*peer].as_deref()?.state {
            State::Dialing(dial) => Some(dial.due()),
            _ => None,
        });
        let strangers = self.strangers.iter().map(|(_, stranger)| stranger.since + PATIENCE);
        dials.chain(strangers).chain(self.listens_again).chain(told).min()
    }

    /// No descriptor or memory is left for a connection. If that stays so it is an error of this rank's, which its peers could not
    /// tell from a lost link.
    #[cold]
    fn refuse_all(&mut self, error: Errno) {
        let error = TransportError::errno("accepting a connection", error);
        tracing::warn!(rank = self.rank, %error, "nobody is accepted for a while");
        let now = Instant::now();
        let first = match self.full {
            // One or another may find room in between.
            Some((first, last)) if now - last < 10 * PAUSE => first,
            _ => now,
        };
        self.full = Some((first, now));
        if now - first > self.connect_timeout / 4 {
            self.tell_unreachable(error, Duration::ZERO);
        }
        self.stop_listening();
    }

    /// Nobody is accepted for a while: no descriptors are left.
    fn stop_listening(&mut self) {
        self.strangers.clear();
        for (listener, _) in &self.listeners {
            // They are closed when the transport is.
            let _ = self.wait.remove(listener.as_fd());
        }
        self.listens_again = Some(Instant::now() + PAUSE);
    }

    fn listen_again(&mut self) {
        self.listens_again = None;
        for (index, (listener, _)) in self.listeners.iter().enumerate() {
            if self.wait.add(listener.as_fd(), Owner::Listener(index), For::Reading).is_err() {
                self.listens_again = Some(Instant::now() + PAUSE);
            }
        }
    }
}
