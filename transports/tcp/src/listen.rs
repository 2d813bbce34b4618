//! Connections that others make: sockets that listen, and strangers, who have not proved who they are.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{SockFlag, accept4};
use transom_transport::{TransportError, TransportResult};
use zerocopy::IntoBytes;

use crate::NAME;
use crate::handshake::{Answer, GO, Hello, Nonce, Nonces, Proof, Proofs, Step, equal};
use crate::interface::Interface;
use crate::socket::Socket;

/// Strangers at once; when one more comes, the oldest goes.
pub(crate) const STRANGERS: usize = 128;
/// How long a stranger may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A socket for each interface, with the address that it got.
pub(crate) fn listen(interfaces: &[Interface]) -> TransportResult<Vec<(TcpListener, SocketAddr)>> {
    let mut listeners = Vec::new();
    let mut failures = Vec::new();
    for interface in interfaces {
        let open = || -> io::Result<(TcpListener, SocketAddr)> {
            let listener = TcpListener::bind(SocketAddr::new(interface.address, 0))?;
            listener.set_nonblocking(true)?;
            // As many may wait as the system allows: all peers may come at once.
            // SAFETY: listen(2) on a socket that listens already sets the length of its queue.
            unsafe { libc::listen(listener.as_raw_fd(), libc::c_int::from(i16::MAX)) };
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        match open() {
            Ok(opened) => listeners.push(opened),
            Err(error) => failures.push(format!("{} ({}): {error}", interface.name, interface.address)),
        }
    }
    if listeners.is_empty() {
        let reason = format!("no address can be listened on: {}", failures.join("; "));
        return Err(TransportError::Unavailable { transport: NAME, reason });
    }
    Ok(listeners)
}

/// The next connection that waits.
pub(crate) fn accept(listener: &TcpListener, silence: Duration) -> Accepted {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    match accept4(listener.as_raw_fd(), flags) {
        Ok(fd) => {
            // SAFETY: accept4(2) returned a descriptor of our own.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            Socket::new(fd, silence).map_or(Accepted::Failed, Accepted::Stranger)
        }
        Err(Errno::EAGAIN) => Accepted::None,
        Err(error @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM)) => {
            Accepted::Full(error)
        }
        // accept(2): the connection is over already, or an error of the network that is to be taken as such.
        Err(_) => Accepted::Failed,
    }
}

/// What [`accept`] found.
pub(crate) enum Accepted {
    Stranger(Socket),
    /// One that is over already.
    Failed,
    /// No more.
    None,
    /// No descriptor or memory is left for it.
    Full(Errno),
}

/// Who has connected, and not proved who it is.
#[derive(Debug)]
pub(crate) struct Stranger {
    pub socket: Socket,
    pub since: Instant,
    phase: Phase,
    step: Step,
}

#[derive(Debug)]
enum Phase {
    Hello,
    Proof {
        peer: usize,
        expected: Proof,
    },
    /// It has proved to be this peer, which chooses the connection.
    Go {
        peer: usize,
    },
}

/// What has become of a stranger.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has not said enough.
    NotYet,
    /// It has proved to be this peer.
    Proved(usize),
    /// And has chosen this connection.
    Chosen(usize),
    /// It is none of the job, or gone.
    Refused,
}

impl Stranger {
    pub fn new(socket: Socket) -> Self {
        Self { socket, since: Instant::now(), phase: Phase::Hello, step: Step::new(Hello::BYTES) }
    }

    /// Something has come. `proofs` gives what both ends hash, if there is such a peer.
    pub fn advance(
        &mut self,
        rank: usize,
        nonces: &mut Nonces,
        proofs: impl Fn(&Hello, usize, &Nonce) -> Option<Proofs>,
    ) -> Known {
        let received = match self.socket.receive_into(self.step.rest()) {
            Ok(None) => return Known::NotYet,
            Ok(Some(0)) | Err(_) => return Known::Refused,
            Ok(Some(received)) => received,
        };
        let Some(step) = self.step.take(received) else { return Known::NotYet };
        match &self.phase {
            Phase::Hello => {
                let Some((peer, hello)) = Hello::read(step, rank) else { return Known::Refused };
                let nonce = nonces.fresh();
                let Some(proofs) = proofs(&hello, peer, &nonce).filter(|_| peer != rank) else {
                    return Known::Refused;
                };
                let answer = Answer { nonce, proof: proofs.called() };
                if !self.says(answer.as_bytes()) {
                    return Known::Refused;
                }
                self.phase = Phase::Proof { peer, expected: proofs.caller() };
                self.step = Step::new(size_of::<Proof>());
                Known::NotYet
            }
            Phase::Proof { peer, expected } => {
                let peer = *peer;
                let proof: Option<&Proof> = step.first_chunk();
                if !proof.is_some_and(|proof| equal(proof, expected)) {
                    return Known::Refused;
                }
                (self.phase, self.step) = (Phase::Go { peer }, Step::new(GO.len()));
                Known::Proved(peer)
            }
            Phase::Go { peer } if step == GO => Known::Chosen(*peer),
            Phase::Go { .. } => Known::Refused,
        }
    }

    /// Sends a step: a new connection has room for it.
    pub fn says(&self, step: &[u8]) -> bool {
        self.socket.send(step).is_ok_and(|sent| sent == Some(step.len()))
    }
}
