//! Ranks that cannot open each other's memory files pass the descriptors over Unix sockets ([unix(7)], SCM_RIGHTS): that asks for
//! neither /proc nor the same PID or user namespace, only for a name that both can see for a moment.
//!
//! Who is to get something listens ([`Meeting`]); who has something calls, before a barrier; behind it both know which
//! connections exist, and [`hand_over`] lets the descriptors pass.
//!
//! [unix(7)]: https://man7.org/linux/man-pages/man7/unix.7.html

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use transom_transport::{TransportError, TransportResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Where sockets with names are: whatever else is a container's own, one of these is often the host's.
const DIRECTORIES: [&str; 3] = ["/dev/shm", "/tmp", "."];
/// Most descriptors that a rank passes to a peer.
const MOST: usize = 8;
/// Between two looks at what makes no progress.
const PAUSE: Duration = Duration::from_micros(200);

/// What a rank tells its callers.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Card {
    /// Part of all names.
    number: u64,
    /// Callers know it, and no stranger.
    secret: [u8; 16],
}

impl Card {
    fn parse(peer: usize, card: &[u8]) -> TransportResult<Self> {
        Self::read_from_bytes(card)
            .map_err(|_| TransportError::Malformed { peer, what: "card of a meeting place" })
    }

    /// The name without a file, which ranks of one network namespace see, and those in directories.
    fn names(&self) -> Vec<(io::Result<SocketAddr>, Option<PathBuf>)> {
        let name = format!("transom-{:016x}", self.number);
        let paths = DIRECTORIES.iter().map(|directory| PathBuf::from(directory).join(&name));
        let of_paths = paths.map(|path| (SocketAddr::from_pathname(&path), Some(path)));
        std::iter::once((SocketAddr::from_abstract_name(&name), None)).chain(of_paths).collect()
    }
}

/// Where a rank listens. The names go with it.
#[derive(Debug)]
pub struct Meeting {
    card: Card,
    listeners: Vec<UnixListener>,
    paths: Vec<PathBuf>,
}

impl Meeting {
    /// Listens wherever that is possible.
    pub fn new() -> TransportResult<Self> {
        let mut card = Card { number: 0, secret: [0; 16] };
        getrandom::fill(card.as_mut_bytes()).map_err(|e| TransportError::System {
            operation: "getrandom",
            reason: format!("no random numbers for a secret: {e}"),
        })?;
        let mut meeting = Self { card, listeners: Vec::new(), paths: Vec::new() };
        for (name, path) in card.names() {
            let Ok(listener) = name.and_then(|name| UnixListener::bind_addr(&name)) else { continue };
            meeting.paths.extend(path);
            listener.set_nonblocking(true).map_err(|e| TransportError::io("fcntl", &e))?;
            meeting.listeners.push(listener);
        }
        Ok(meeting)
    }

    /// What callers need.
    pub fn card(&self) -> Vec<u8> {
        self.card.as_bytes().to_vec()
    }

    /// All who have come.
    fn accept(&self) -> impl Iterator<Item = UnixStream> {
        let all = self.listeners.iter().flat_map(|listener| listener.incoming().map_while(Result::ok));
        all.filter(|stream| stream.set_nonblocking(true).is_ok())
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection to a peer that listens.
#[derive(Debug)]
pub struct Call {
    stream: UnixStream,
    secret: [u8; 16],
}

impl Call {
    /// Calls the peer with this card.
    ///
    /// # Errors
    /// No name that it listens at can be seen from here.
    pub fn new(peer: usize, card: &[u8]) -> TransportResult<Self> {
        let card = Card::parse(peer, card)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for (name, _) in card.names() {
            match name.and_then(|name| UnixStream::connect_addr(&name)) {
                Ok(stream) => {
                    stream.set_nonblocking(true).map_err(|e| TransportError::io("fcntl", &e))?;
                    return Ok(Self { stream, secret: card.secret });
                }
                Err(error) => last = error,
            }
        }
        let reason = format!("no socket of its can be seen in {}: {last}", DIRECTORIES.join(", "));
        Err(TransportError::Peer { peer, reason })
    }

    /// Passes the files. False: not now, the system has too many under way.
    fn pass(&self, rank: usize, files: &[RawFd]) -> Result<bool, Errno> {
        let hello = Hello { secret: self.secret, rank: rank as u64 };
        let rights = [ControlMessage::ScmRights(files)];
        let bytes = [io::IoSlice::new(hello.as_bytes())];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        match sendmsg::<()>(self.stream.as_raw_fd(), &bytes, &rights, flags, None) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ETOOMANYREFS | Errno::ENOBUFS) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// What comes with the files.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Hello {
    secret: [u8; 16],
    rank: u64,
}

/// A rank and the files that it has passed.
pub type Passed = (usize, Vec<OwnedFd>);

/// Passes `files` on all calls, and returns what `expected` callers have passed; fewer, if `patience` is over before.
pub fn hand_over(
    rank: usize,
    files: &[RawFd],
    mut calls: Vec<Call>,
    meeting: Option<&Meeting>,
    expected: usize,
    patience: Duration,
) -> Vec<Passed> {
    let files = &files[..files.len().min(MOST)];
    let mut strangers = Vec::new();
    let mut passed: Vec<Passed> = Vec::new();
    let end = Instant::now() + patience;
    loop {
        let before = (calls.len(), passed.len());
        // What was sent stays with the connection until it is received, also when this end is closed.
        calls.retain(|call| call.pass(rank, files) == Ok(false));
        if let Some(meeting) = meeting {
            strangers.extend(meeting.accept());
            strangers.retain(|stream| match receive(stream, &meeting.card.secret) {
                Ok(found) => {
                    passed.push(found);
                    false
                }
                Err(errno) => errno == Errno::EAGAIN || errno == Errno::EINTR,
            });
        }
        if calls.is_empty() && passed.len() >= expected || Instant::now() >= end {
            return passed;
        }
        if before == (calls.len(), passed.len()) {
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a caller has passed.
fn receive(stream: &UnixStream, secret: &[u8; 16]) -> Result<Passed, Errno> {
    let mut bytes = [0; size_of::<Hello>()];
    let mut room = nix::cmsg_space!([RawFd; MOST]);
    let mut parts = [io::IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut room), flags)?;
    let len = message.bytes;
    let mut files = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just made these descriptors for this process (unix(7)), and nobody else has them.
            files.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    match Hello::read_from_bytes(&bytes[..len]) {
        Ok(hello) if hello.secret == *secret => Ok((hello.rank as usize, files)),
        _ => Err(Errno::EPROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_pass_to_who_is_called_and_to_nobody_else() {
        let (meeting, other) = (Meeting::new().unwrap(), Meeting::new().unwrap());
        assert!(meeting.paths.iter().all(|path| path.exists()) && !meeting.paths.is_empty());
        let call = Call::new(0, &meeting.card()).unwrap();
        let mut stranger = Call::new(0, &other.card()).unwrap();
        stranger.stream = Call::new(0, &meeting.card()).unwrap().stream;
        let file = std::fs::File::open("/dev/null").unwrap();
        let passed =
            hand_over(7, &[file.as_raw_fd(); 3], vec![call], Some(&meeting), 1, Duration::from_secs(9));
        assert_eq!(passed.iter().map(|(rank, files)| (*rank, files.len())).collect::<Vec<_>>(), [(7, 3)]);
        let none = hand_over(8, &[], vec![stranger], Some(&meeting), 1, Duration::from_millis(20));
        assert!(none.is_empty());
        let (card, paths) = (meeting.card(), meeting.paths.clone());
        drop(meeting);
        assert!(paths.iter().all(|path| !path.exists()));
        assert!(Call::new(3, &card).unwrap_err().to_string().contains("peer 3"));
    }
}
