//! Connected sockets: nonblocking sends and receives of memory given by address, and how sockets are set up.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use arrayvec::ArrayVec;
use nix::sys::socket::{SockaddrStorage, getpeername, getsockname, setsockopt, sockopt};

use crate::link::{Broken, Told};

/// Pieces of memory that one call takes.
pub(crate) const PARTS: usize = 64;

/// Up to so many bytes are sent whatever the network takes.
const ALWAYS: usize = 8 << 10;

/// Pieces of memory for one call.
pub(crate) type Parts = ArrayVec<libc::iovec, PARTS>;

/// A piece of memory.
#[inline]
pub(crate) fn part(address: usize, len: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: len }
}

/// A connected socket, which never blocks, and its ends.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    ends: Box<str>,
    /// Bytes that may be sent, where no more should be sent than the network takes at once ([`Socket::established`]).
    window: Option<Cell<usize>>,
}

/// How many bytes were moved; nothing if the call would block.
type Moved = io::Result<Option<usize>>;

impl Socket {
    /// One that is nonblocking already. `silence`: how long the peer's host may be silent.
    pub fn new(fd: OwnedFd, silence: Duration) -> io::Result<Self> {
        setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
        setsockopt(&fd, sockopt::KeepAlive, &true)?;
        // Probes after a third of the time, and then five: the connection ends at about that time.
        let third = (silence.as_secs() / 3).clamp(1, 32_000) as u32;
        setsockopt(&fd, sockopt::TcpKeepIdle, &third)?;
        setsockopt(&fd, sockopt::TcpKeepInterval, &(third * 2 / 5).max(1))?;
        setsockopt(&fd, sockopt::TcpKeepCount, &5)?;
        setsockopt(&fd, sockopt::TcpUserTimeout, &u32::try_from(silence.as_millis()).unwrap_or(u32::MAX))?;
        set_longest_retry(&fd, silence);
        Ok(Self { fd, ends: Box::default(), window: None })
    }

    /// It is connected, and has been shown to be a peer's; of this machine, perhaps in a container or network namespace of its own.
    pub fn established(mut self, within_machine: bool) -> Self {
        let own = getsockname::<SockaddrStorage>(self.fd.as_raw_fd());
        let peer = getpeername::<SockaddrStorage>(self.fd.as_raw_fd());
        // It may be over already: then the system does not know.
        let (Ok(own), Ok(peer)) = (own, peer) else { return self };
        self.ends = format!("from {own} to {peer}").into();
        if within_machine || has_one_address(&own, &peer) {
            // There is nothing to be fair to. BBR's pacing would wait for timers, and slows large transfers between
            // containers to a fifth. A system that refuses keeps its own.
            let _ = setsockopt(&self.fd, sockopt::TcpCongestion, &OsString::from("reno"));
        }
        // What the network does not take at once the kernel sends when acknowledgements come. On the way to another container its
        // packets overtake others (most probably since each processor has a queue of its own), which the kernel takes for losses, and
        // sends less at once, so that more is left for acknowledgements. The bandwidth is a third from then on.
        self.window = (within_machine && !has_one_address(&own, &peer)).then(Cell::default);
        self
    }

    /// Receives to one piece of memory. 0 bytes: the peer has ended the stream.
    ///
    /// # Safety
    /// `at..at+len` is valid for writes, and nobody relies on what is there.
    #[inline]
    pub unsafe fn receive(&self, at: *mut u8, len: usize) -> Moved {
        let (fd, flags, none) = (self.fd.as_raw_fd(), libc::MSG_DONTWAIT, ptr::null_mut::<libc::c_void>());
        // The C library's own function is where threads may be cancelled, for which it takes atomic instructions.
        // SAFETY: recvfrom(2) writes at most `len` bytes at `at` (the caller's promise), and without an address nowhere else.
        moved(|| unsafe { libc::syscall(libc::SYS_recvfrom, fd, at, len, flags, none, none) as isize })
    }

    /// As [`Socket::receive`], to several pieces, one after the other.
    ///
    /// # Safety
    /// As [`Socket::receive`], for all pieces.
    #[inline]
    pub unsafe fn receive_parts(&self, parts: &mut [libc::iovec]) -> Moved {
        let mut message = header(parts);
        // SAFETY: recvmsg(2) writes to the pieces only (the caller's promise) and to the header, which is ours.
        moved(|| unsafe { libc::recvmsg(self.fd.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) })
    }

    /// Receives into bytes of ours.
    pub fn receive_into(&self, bytes: &mut [u8]) -> Moved {
        // SAFETY: a slice that is exclusively ours.
        unsafe { self.receive(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Sends bytes.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> Moved {
        const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let Some(bytes) = self.room(bytes.len()).and_then(|room| bytes.get(..room)) else { return Ok(None) };
        let (fd, none) = (self.fd.as_raw_fd(), ptr::null::<libc::c_void>());
        // As in `receive`.
        // SAFETY: sendto(2) reads the slice, which is valid.
        let moved = moved(|| unsafe {
            libc::syscall(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), FLAGS, none, 0_usize) as isize
        });
        self.sent(moved)
    }

    /// Sends several pieces of memory, one after the other.
    ///
    /// # Safety
    /// All pieces are valid for reads. (Other threads and processes may write there: the kernel copies bytes.)
    #[inline]
    pub unsafe fn send_parts(&self, parts: &mut [libc::iovec]) -> Moved {
        const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let wanted = parts.iter().map(|part| part.iov_len).sum();
        let Some(room) = self.room(wanted) else { return Ok(None) };
        let message = header(if room < wanted { shortened(parts, room) } else { parts });
        // SAFETY: sendmsg(2) reads the header and the pieces: the caller's promise.
        self.sent(moved(|| unsafe { libc::sendmsg(self.fd.as_raw_fd(), &message, FLAGS) }))
    }

    /// From now on no more is sent than the network takes at once, or as much as the kernel takes: who sleeps until there is room
    /// learns of the kernel's only.
    #[inline]
    pub fn keep_to_window(&self, keeps: bool) {
        if let Some(window) = &self.window
            && keeps == (window.get() == usize::MAX)
        {
            window.set(if keeps { 0 } else { usize::MAX });
        }
    }

    /// How many of so many bytes may be sent; nothing if none may.
    #[inline]
    fn room(&self, wanted: usize) -> Option<usize> {
        match &self.window {
            Some(window) if wanted > ALWAYS => self.room_of(window, wanted),
            _ => Some(wanted),
        }
    }

    fn room_of(&self, window: &Cell<usize>, wanted: usize) -> Option<usize> {
        if window.get() < wanted {
            window.set(self.measured_window());
        }
        Some(wanted.min(window.get())).filter(|room| *room > 0)
    }

    /// Bytes that the network and the peer's host take now.
    fn measured_window(&self) -> usize {
        let mut info = Info::default();
        let mut len = size_of::<Info>() as libc::socklen_t;
        // SAFETY: getsockopt(2) writes at most `len` bytes, any of which are an `Info`.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                ptr::from_mut(&mut info).cast(),
                &mut len,
            )
        };
        // Kernels before Linux 5.4 do not know the peer's.
        if result != 0 || (len as usize) < size_of::<Info>() {
            return usize::MAX;
        }
        let Info { segment, unacked, congestion, unsent, peer, .. } = info;
        if unsent > 0 {
            return 0;
        }
        let segment = segment as usize;
        let room = congestion.saturating_sub(unacked) as usize * segment;
        let room = room.min((peer as usize).saturating_sub(unacked as usize * segment));
        // Where nothing is under way only something to send has the kernel ask whether a closed window is open again.
        if unacked == 0 { room.max(ALWAYS) } else { room }
    }

    /// Notes what was sent.
    #[inline]
    fn sent(&self, moved: Moved) -> Moved {
        if let (Some(window), Ok(Some(bytes))) = (&self.window, &moved)
            && window.get() != usize::MAX
        {
            window.set(window.get().saturating_sub(*bytes));
        }
        moved
    }

    /// Why a call failed, for people.
    #[cold]
    pub fn failed(&self, error: &io::Error) -> Broken {
        let is_unmapped = error.raw_os_error() == Some(libc::EFAULT);
        let reason = match error.kind() {
            io::ErrorKind::TimedOut => {
                "its host does not answer, or the network between has failed (TRANSOM_TCP_SILENCE)".to_owned()
            }
            _ if is_unmapped => {
                "memory of a window, a put or a get is no longer mapped in this process; it must stay so \
                                 until the window is freed, or the operation complete"
                    .to_owned()
            }
            _ => error.to_string(),
        };
        if is_unmapped {
            tracing::warn!(reason, "a connection ends");
        }
        let told = match error.kind() {
            _ if is_unmapped => Told::Elsewhere,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Told::Late,
            _ => Told::Here,
        };
        let reason = format!("{reason}; the connection was {}", self.ends);
        Broken { reason, told }
    }

    /// Tells the peer that no more comes.
    pub fn end(&self) {
        // A connection that is over already needs no end.
        let _ = nix::sys::socket::shutdown(self.fd.as_raw_fd(), nix::sys::socket::Shutdown::Write);
    }

    /// Bytes that were sent, and that the peer's host has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        let mut bytes: libc::c_int = 0;
        // SAFETY: SIOCOUTQ stores an int (tcp(7)).
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
        if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
    }
}

/// What of `struct tcp_info` is of interest (linux/tcp.h).
#[repr(C)]
#[derive(Default)]
struct Info {
    _states: [u8; 8],
    _times: [u32; 2],
    segment: u32,
    _received: u32,
    unacked: u32,
    _lost: [u32; 12],
    _threshold: u32,
    congestion: u32,
    _more: [u32; 15],
    unsent: u32,
    _rates: [u32; 20],
    peer: u32,
}

/// The first `room` bytes of some pieces.
fn shortened(parts: &mut [libc::iovec], room: usize) -> &mut [libc::iovec] {
    let mut left = room;
    let mut count = 0;
    for part in parts.iter_mut() {
        if left == 0 {
            break;
        }
        part.iov_len = part.iov_len.min(left);
        left -= part.iov_len;
        count += 1;
    }
    &mut parts[..count]
}

/// Where packets get lost, the kernel's pauses between retries grow to minutes: here, to a tenth of the time after which the peer
/// is lost, so that it takes ten losses in a row. Kernels before Linux 6.15 keep theirs.
fn set_longest_retry(fd: &OwnedFd, silence: Duration) {
    const TCP_RTO_MAX_MS: libc::c_int = 44;
    let time =
        libc::c_int::try_from(silence.as_millis() / 10).unwrap_or(libc::c_int::MAX).clamp(1000, 120_000);
    // SAFETY: setsockopt(2) reads an int.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            ptr::from_ref(&time).cast(),
            size_of_val(&time) as libc::socklen_t,
        );
    }
}

/// Whether both ends have the same address.
fn has_one_address(own: &SockaddrStorage, peer: &SockaddrStorage) -> bool {
    match (own.as_sockaddr_in(), peer.as_sockaddr_in(), own.as_sockaddr_in6(), peer.as_sockaddr_in6()) {
        (Some(own), Some(peer), ..) => own.ip() == peer.ip(),
        (_, _, Some(own), Some(peer)) => own.ip() == peer.ip(),
        _ => false,
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn header(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: all zeros is a msghdr without address and control data (recvmsg(2)).
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = parts.as_mut_ptr();
    header.msg_iovlen = parts.len() as _;
    header
}

#[inline]
fn moved(mut call: impl FnMut() -> isize) -> Moved {
    loop {
        if let Ok(bytes) = usize::try_from(call()) {
            return Ok(Some(bytes));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock => return Ok(None),
            io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, getsockopt, socket,
    };

    use super::*;

    /// A socket of 127.0.0.1, connected to 127.0.0.2, and the other end.
    fn connected(within_machine: bool) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let peer: SockaddrStorage = listener.local_addr().unwrap().into();
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(fd.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        connect(fd.as_raw_fd(), &peer).unwrap();
        let socket = Socket::new(fd, Duration::from_secs(10)).unwrap().established(within_machine);
        (socket, listener.accept().unwrap().0)
    }

    /// Containers of one machine have addresses of their own.
    #[test]
    fn reno_within_a_machine() {
        let congestion = |fd: &OwnedFd| getsockopt(fd, sockopt::TcpCongestion).unwrap();
        let (outside, _peer) = connected(false);
        let (inside, _peer) = connected(true);
        let system = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(congestion(&outside.fd), system.trim(), "{}", outside.ends);
        assert_eq!(congestion(&inside.fd), "reno", "{}", inside.ends);
    }

    /// Bytes that the kernel keeps to send them later.
    fn unsent(socket: &Socket) -> usize {
        const SIOCOUTQNSD: libc::Ioctl = 0x894b;
        let mut bytes: libc::c_int = 0;
        // SAFETY: it stores an int (tcp(7)).
        let result = unsafe { libc::ioctl(socket.fd.as_raw_fd(), SIOCOUTQNSD, &mut bytes) };
        assert_eq!(result, 0);
        bytes as usize
    }

    /// Between containers of a machine the kernel is never left to send something later, unless somebody sleeps until it has.
    #[test]
    fn no_more_than_the_network_takes_within_a_machine() {
        const TOTAL: usize = 64 << 20;
        let (socket, mut peer) = connected(true);
        let data = vec![7; 1 << 20];
        while socket.send(&data).unwrap().is_some() {
            assert_eq!(unsent(&socket), 0);
        }
        socket.keep_to_window(false);
        assert!(socket.send(&data).unwrap().is_some());
        assert!(unsent(&socket) > 0);
        socket.keep_to_window(true);
        assert!(socket.send(&data).unwrap().is_none());
        let reading = std::thread::spawn(move || {
            let mut found = vec![0; TOTAL];
            peer.read_exact(&mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 7));
            peer
        });
        let start = Instant::now();
        while !reading.is_finished() {
            let mut parts = [part(data.as_ptr() as usize, 9), part(data.as_ptr() as usize, data.len())];
            // SAFETY: both are of a vector that stays.
            let moved = unsafe { socket.send_parts(&mut parts) }.unwrap();
            assert!(moved.is_none_or(|moved| moved <= 9 + data.len()));
            assert!(start.elapsed() < Duration::from_secs(60));
        }
        reading.join().unwrap();
    }
}
