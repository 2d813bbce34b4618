//! The transport itself.

use std::sync::OnceLock;

use parking_lot::Mutex;
use transom_transport::{
    Armed, AtomicScope, Capabilities, Event, Posted, Region, RegionKey, Remote, Span, Transfer, Transport,
    TransportError, TransportResult, WaitFd,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::address::{Address, Key, NO_FILE};
use crate::attach::{self, Direction};
use crate::doorbell::{Bell, Doorbell};
use crate::queue::{LAYOUT, MAX_MESSAGE, QUEUE_BYTES, Queue};
use crate::{file, host};

const NAME: &str = "shm";
/// Messages handed out by one call to progress, so that a flood does not keep the caller.
const BATCH: usize = 64;

/// Shared memory between ranks of one node.
#[derive(Debug)]
pub struct Shm {
    capabilities: Capabilities,
    address: Address,
    /// Keeps the queue's memory file open for peers.
    _memory: Span,
    queue: Queue,
    inbox: Mutex<Inbox>,
    doorbell: Doorbell,
    peers: Box<[OnceLock<Peer>]>,
}

#[derive(Debug)]
struct Inbox {
    head: u64,
    buffer: Box<[u8; MAX_MESSAGE]>,
}

#[derive(Debug)]
struct Peer {
    queue: Queue,
    bell: Bell,
}

impl Shm {
    /// The transport of one rank of `ranks`.
    pub fn new(ranks: usize) -> TransportResult<Self> {
        if std::fs::metadata("/proc/self/fd").is_err() {
            let reason = "/proc is not mounted: peers open each other's memory files there".into();
            return Err(TransportError::Unavailable { transport: NAME, reason });
        }
        attach::permit();
        let memory = file::create("transom-queue", QUEUE_BYTES)?;
        let doorbell = Doorbell::new()?;
        let Some((fd, _)) = memory.file() else {
            return Err(TransportError::Unavailable { transport: NAME, reason: "no memory file".into() });
        };
        let address = Address {
            host: host::host_identity(),
            pid: std::process::id(),
            queue: file::descriptor(&fd),
            inode: file::inode(fd)?,
            doorbell: doorbell.fd().cast_unsigned(),
            layout: LAYOUT,
        };
        Ok(Self {
            capabilities: Capabilities {
                max_message: MAX_MESSAGE,
                max_transfer: usize::MAX,
                rma: attach::available(),
                immediate: true,
                registration_is_free: true,
                moves: None,
                copied_put: 0,
                atomics: AtomicScope::None,
                provider: "memory files, cross-memory attach".into(),
            },
            address,
            queue: Queue::new(memory.clone()),
            _memory: memory,
            inbox: Mutex::new(Inbox { head: 0, buffer: Box::new([0; MAX_MESSAGE]) }),
            doorbell,
            peers: (0..ranks).map(|_| OnceLock::new()).collect(),
        })
    }

    fn peer(&self, peer: usize) -> TransportResult<&Peer> {
        self.peers
            .get(peer)
            .and_then(OnceLock::get)
            .ok_or_else(|| TransportError::Peer { peer, reason: "not connected".into() })
    }
}

/// A registration needs no action here: the kernel checks who may open or attach.
#[derive(Debug)]
struct ShmRegion {
    key: Key,
    /// Keeps a memory file open until the region is dropped.
    _memory: Span,
}

impl Region for ShmRegion {
    fn key(&self) -> RegionKey {
        RegionKey(self.key.as_bytes().to_vec())
    }
}

impl Transport for Shm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        self.address.as_bytes().to_vec()
    }

    fn reaches(&self, address: &[u8]) -> bool {
        Address::read_from_bytes(address).is_ok_and(|a| a.host == self.address.host && a.layout == LAYOUT)
    }

    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()> {
        let address = Address::read_from_bytes(address)
            .map_err(|_| TransportError::Malformed { peer, what: "shared-memory address" })?;
        let refused = |e: std::io::Error| TransportError::Peer {
            peer,
            reason: format!(
                "opening its memory in /proc/{}: {e} (both processes must be of one user and one PID namespace)",
                address.pid
            ),
        };
        let queue = file::find(address.pid, address.queue, address.inode, QUEUE_BYTES).map_err(refused)?;
        let memory = file::map_part(&queue, 0, QUEUE_BYTES)?;
        let bell = Bell::open(address.pid, address.doorbell).map_err(refused)?;
        let slot = self.peers.get(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        let _ = slot.set(Peer { queue: Queue::new(memory), bell });
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> TransportResult<Option<Span>> {
        if bytes == 0 { Ok(Some(Span::empty())) } else { file::create("transom-window", bytes).map(Some) }
    }

    fn reserve(&self, bytes: usize, address: usize) -> TransportResult<Option<Span>> {
        file::reserve("transom-heap", bytes, address).map(Some)
    }

    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>> {
        let mut key = Key {
            pid: self.address.pid,
            file: NO_FILE,
            inode: 0,
            start: memory.address() as u64,
            len: memory.len() as u64,
        };
        if let Some((fd, start)) = memory.file() {
            key = Key { file: file::descriptor(&fd), inode: file::inode(fd)?, start: start as u64, ..key };
        }
        Ok(Box::new(ShmRegion { key, _memory: memory.clone() }))
    }

    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote> {
        attach(peer, Key::parse(peer, &key.0)?)
    }

    fn attach_part(&self, peer: usize, key: &RegionKey, start: usize, len: usize) -> TransportResult<Remote> {
        attach(peer, Key::parse(peer, &key.0)?.part(start, len)?)
    }

    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: the memory is valid for reads by this method's contract; Write does not write to it.
        unsafe { copy(Direction::Write, transfer) }
    }

    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: the memory is valid for writes by this method's contract.
        unsafe { copy(Direction::Read, transfer) }
    }

    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        let len = header.len() + payload.len();
        if len > MAX_MESSAGE {
            return Err(TransportError::Range { offset: 0, bytes: len, len: MAX_MESSAGE });
        }
        let peer = self.peer(peer)?;
        let pushed = peer.queue.push(header, payload)?;
        if peer.queue.must_ring()? {
            peer.bell.ring();
        }
        Ok(if pushed { Posted::Complete } else { Posted::Again })
    }

    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        let Some(mut inbox) = self.inbox.try_lock() else { return Ok(0) };
        let Inbox { head, buffer } = &mut *inbox;
        for taken in 0..BATCH {
            let Some(len) = self.queue.pop(*head, buffer)? else { return Ok(taken) };
            *head += 1;
            sink(Event::Message(&buffer[..len]));
        }
        Ok(BATCH)
    }

    fn abandon(&self) {
        // Every copy is over when its call returns.
    }

    fn wait_fd(&self) -> WaitFd {
        self.doorbell.fd()
    }

    fn arm(&self) -> TransportResult<Armed> {
        let Some(inbox) = self.inbox.try_lock() else { return Ok(Armed::Ready) };
        Ok(if self.queue.arm(inbox.head)? { Armed::Sleep } else { Armed::Ready })
    }

    fn arm_for_messages(&self) -> TransportResult<Option<Armed>> {
        // Its operations end when they are called.
        self.arm().map(Some)
    }

    fn disarm(&self, readable: bool) {
        self.queue.disarm();
        if readable {
            self.doorbell.drain();
        }
    }
}

/// A peer's region, mapped if it is in a file.
fn attach(peer: usize, key: Key) -> TransportResult<Remote> {
    let direct = if key.len == 0 || key.file != NO_FILE { Some(key.map(peer)?) } else { None };
    Ok(Remote { peer, len: key.bytes(peer)?, direct, base: key.start, key: u64::from(key.pid) })
}

/// Carries out a transfer by cross-memory attach.
///
/// # Safety
/// The memory here is valid, for reads if it is written from and for writes if it is read to.
unsafe fn copy(direction: Direction, transfer: &Transfer<'_>) -> TransportResult<Posted> {
    let Transfer { remote, offset, local, len, context: _ } = *transfer;
    let (pid, at) = target(remote, offset, len)?;
    // SAFETY: the caller's promise.
    unsafe { attach::copy(direction, remote.peer, pid, local, at, len)? };
    Ok(Posted::Complete)
}

/// Process and address of an access by cross-memory attach.
fn target(remote: &Remote, offset: usize, len: usize) -> TransportResult<(i32, u64)> {
    let outside = TransportError::Range { offset, bytes: len, len: remote.len };
    if offset > remote.len || len > remote.len - offset {
        return Err(outside);
    }
    let pid = i32::try_from(remote.key)
        .map_err(|_| TransportError::Malformed { peer: remote.peer, what: "process number" })?;
    Ok((pid, remote.base + offset as u64))
}
