//! A peer that is being connected to: its addresses are tried one after the other, until one leads to it or the time is over.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, connect, getsockopt, socket,
    sockopt,
};
use transom_transport::limits;
use zerocopy::{FromBytes, IntoBytes};

use crate::card::Card;
use crate::handshake::{Answer, GO, HERE, Hello, Nonce, Nonces, Proofs, Step, equal};
use crate::interface::Interface;
use crate::socket::Socket;

/// Between two rounds of attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Who is to be connected, and how long to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub rank: usize,
    pub peer: usize,
    pub silence: Duration,
}

/// A peer that is being connected to.
#[derive(Debug)]
pub(crate) struct Dial {
    pair: Pair,
    /// In the order in which they are tried.
    addresses: Vec<SocketAddr>,
    /// How many were tried in this round, and why these failed.
    failures: Vec<String>,
    /// Whether any of them failed otherwise than by a refusal.
    uncertain: bool,
    attempt: Option<Attempt>,
    /// Of the next round.
    begins: Instant,
    slice: Duration,
    until: Instant,
}

/// One connection.
#[derive(Debug)]
struct Attempt {
    socket: Socket,
    address: SocketAddr,
    hello: Hello,
    phase: Phase,
    step: Step,
    ends: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Answer,
    /// The peer is to choose this connection.
    Go,
    /// This rank has chosen it, and the peer is to confirm that.
    Here,
}

/// What has become of a dial.
#[derive(Debug)]
pub(crate) enum Dialed {
    /// It goes on.
    Under,
    /// It goes on, with a socket that is to be watched for writing.
    Begun,
    /// The socket is connected, and is to be watched for reading.
    Connected,
    /// This is the connection.
    Ready,
    /// There is no way; whether all addresses refuse.
    Failed { reason: String, refused: bool },
}

/// Why an attempt failed, and whether another one may do better.
type Failure = (String, bool);

impl Dial {
    /// `own`: this rank's interfaces. Addresses in their networks are tried first.
    pub fn new(pair: Pair, card: &Card, own: &[Interface], timeout: Duration) -> Self {
        let mut addresses = card.addresses.clone();
        addresses.sort_by_key(|address| !own.iter().any(|interface| interface.covers(address.ip())));
        let now = Instant::now();
        let slice = timeout / addresses.len().max(1) as u32;
        let (until, failures) = (now + timeout, Vec::new());
        Self { pair, addresses, failures, uncertain: false, attempt: None, begins: now, slice, until }
    }

    /// The socket under way.
    pub fn socket(&self) -> Option<&Socket> {
        self.attempt.as_ref().map(|attempt| &attempt.socket)
    }

    /// Whether this rank has chosen the connection that is being made.
    pub fn has_chosen(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.phase == Phase::Here)
    }

    /// The connection, once it is ready.
    pub fn into_socket(self) -> Option<Socket> {
        self.attempt.map(|attempt| attempt.socket)
    }

    /// When something is to be done if nothing happens before.
    pub fn due(&self) -> Instant {
        self.attempt.as_ref().map_or(self.begins, |attempt| attempt.ends).min(self.until)
    }

    /// The time has come.
    pub fn expire(&mut self, now: Instant, nonces: &mut Nonces) -> Dialed {
        match &self.attempt {
            Some(attempt) if attempt.ends <= now || self.until <= now => {
                let what = if attempt.phase == Phase::Connecting {
                    "did not answer"
                } else {
                    "did not prove who it is"
                };
                self.failed((what.into(), true), now, nonces)
            }
            Some(_) => Dialed::Under,
            None if self.begins <= now => self.begin(now, nonces),
            None => Dialed::Under,
        }
    }

    /// The socket is ready for what it was watched for. `proofs` gives what both ends hash.
    pub fn advance(&mut self, proofs: impl Fn(&Hello, &Nonce) -> Proofs, nonces: &mut Nonces) -> Dialed {
        let lower = self.pair.rank < self.pair.peer;
        let Some(attempt) = &mut self.attempt else { return Dialed::Under };
        match attempt.advance(proofs, lower) {
            Ok(dialed) => dialed,
            Err(failure) => self.failed(failure, Instant::now(), nonces),
        }
    }

    /// An attempt has failed: tries the next.
    fn failed(&mut self, (why, uncertain): Failure, now: Instant, nonces: &mut Nonces) -> Dialed {
        if let Some(attempt) = self.attempt.take() {
            self.failures.push(format!("{} {why}", attempt.address));
        }
        self.uncertain |= uncertain;
        self.begin(now, nonces)
    }

    fn begin(&mut self, now: Instant, nonces: &mut Nonces) -> Dialed {
        if now >= self.until {
            return self.give_up(false);
        }
        while let Some(address) = self.addresses.get(self.failures.len()) {
            match Attempt::begin(&self.pair, *address, nonces.fresh(), (now + self.slice).min(self.until)) {
                Ok(attempt) => {
                    self.attempt = Some(attempt);
                    return Dialed::Begun;
                }
                Err(error) => self.failures.push(format!("{address} {}", limits::named(&error))),
            }
        }
        if !self.uncertain {
            return self.give_up(true);
        }
        self.begins = now + PAUSE;
        self.uncertain = false;
        if self.begins < self.until {
            self.failures.clear();
        }
        Dialed::Under
    }

    fn give_up(&self, refused: bool) -> Dialed {
        let Pair { rank, peer, .. } = self.pair;
        let (how, failures) = (if refused { "at all" } else { "in time" }, self.failures.join("; "));
        let reason = format!("rank {rank} could not connect to rank {peer} {how}: {failures}");
        Dialed::Failed { reason, refused }
    }
}

impl Attempt {
    fn begin(pair: &Pair, address: SocketAddr, nonce: Nonce, ends: Instant) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
        let connected = match address {
            SocketAddr::V4(address) => connect(fd.as_raw_fd(), &SockaddrIn::from(address)),
            SocketAddr::V6(address) => connect(fd.as_raw_fd(), &SockaddrIn6::from(address)),
        };
        match connected {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let hello = Hello::new(pair.rank, pair.peer, nonce);
        let socket = Socket::new(fd, pair.silence)?;
        Ok(Self {
            socket,
            address,
            hello,
            phase: Phase::Connecting,
            step: Step::new(size_of::<Answer>()),
            ends,
        })
    }

    fn advance(&mut self, proofs: impl Fn(&Hello, &Nonce) -> Proofs, lower: bool) -> Result<Dialed, Failure> {
        if self.phase == Phase::Connecting {
            let error = getsockopt(&self.socket.as_fd(), sockopt::SocketError).unwrap_or(0);
            if error != 0 {
                let certain = [Errno::ECONNREFUSED, Errno::ENETUNREACH].contains(&Errno::from_raw(error));
                return Err((Errno::from_raw(error).desc().to_lowercase(), !certain));
            }
            send(&self.socket, self.hello.as_bytes())?;
            self.phase = Phase::Answer;
            return Ok(Dialed::Connected);
        }
        let received = match self.socket.receive_into(self.step.rest()) {
            Ok(None) => return Ok(Dialed::Under),
            Ok(Some(0)) => return Err(("is somebody else, or busy".into(), true)),
            Ok(Some(received)) => received,
            Err(error) => return Err((error.to_string(), true)),
        };
        let Some(step) = self.step.take(received) else { return Ok(Dialed::Under) };
        let last = match self.phase {
            Phase::Go => Some(GO),
            Phase::Here => Some(HERE),
            _ => None,
        };
        if let Some(last) = last {
            return if step == last { Ok(Dialed::Ready) } else { Err(("makes no sense".into(), true)) };
        }
        let Ok(answer) = Answer::read_from_bytes(step) else { return Err(("makes no sense".into(), true)) };
        let proofs = proofs(&self.hello, &answer.nonce);
        if !equal(&answer.proof, &proofs.called()) {
            return Err(("is not of this job".into(), true));
        }
        let mut last = proofs.caller().to_vec();
        if lower {
            last.extend(GO);
        }
        send(&self.socket, &last)?;
        let phase = if lower { Phase::Here } else { Phase::Go };
        (self.phase, self.step) = (phase, Step::new(GO.len()));
        Ok(Dialed::Under)
    }
}

/// Sends a step: a new connection has room for it.
fn send(socket: &Socket, step: &[u8]) -> Result<(), Failure> {
    match socket.send(step) {
        Ok(Some(sent)) if sent == step.len() => Ok(()),
        Ok(_) => Err(("takes nothing".into(), true)),
        Err(error) => Err((error.to_string(), true)),
    }
}
