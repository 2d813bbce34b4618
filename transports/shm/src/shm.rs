//! The transport itself.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use transom_transport::{
    Armed, AtomicScope, Capabilities, Event, Posted, Region, RegionKey, Remote, Span, Transfer, Transport,
    TransportError, TransportResult, TryLock, WaitFd,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::address::{Address, Key, NO_FILE};
use crate::arena::Arena;
use crate::attach::{self, Direction};
use crate::deaths::Deaths;
use crate::doorbell::Doorbell;
use crate::file;
use crate::meeting::{Call, Meeting, Passed, hand_over};
use crate::peer::Peer;
use crate::queue::{Inbox, LAYOUT, MAX_MESSAGE, NONCE, Prefix, QUEUE_BYTES, Queue};

const NAME: &str = "shm";
/// Messages handed out by one call to progress, so that a flood does not keep the caller.
const BATCH: usize = 64;
/// Bytes of them after which the caller looks whether it has what it waits for. What it does not wait for yet takes as long to copy,
/// while its peer waits, and is copied twice.
const BATCH_BYTES: usize = 4096;

/// Shared memory between ranks of one node.
#[derive(Debug)]
pub struct Shm {
    capabilities: Capabilities,
    address: Address,
    /// Keeps the queue's memory file open for peers.
    memory: Span,
    queue: Queue,
    /// Room for a message, which who takes messages holds.
    inbox: TryLock<Box<Inbox>>,
    /// Where peers may die while others go on.
    deaths: OnceLock<Deaths>,
    /// Number of the next message: written by who holds the inbox.
    head: AtomicU64,
    /// With what the job's messages begin.
    prefix: OnceLock<Prefix>,
    doorbell: Doorbell,
    peers: Box<[OnceLock<Peer>]>,
    /// What memory is allocated from, where peers cannot open files of this rank's.
    arena: OnceLock<Arena>,
}

impl Shm {
    /// The transport of one rank of `ranks`.
    pub fn new(ranks: usize) -> TransportResult<Self> {
        attach::permit();
        let memory = file::create("transom-queue", QUEUE_BYTES)?;
        memory.dump(false);
        let doorbell = Doorbell::new()?;
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(|e| TransportError::System {
            operation: "getrandom",
            reason: format!("no random numbers for a queue: {e}"),
        })?;
        memory.copy_in(NONCE, &nonce)?;
        let Some((fd, _)) = memory.file() else {
            return Err(TransportError::Unavailable { transport: NAME, reason: "no memory file".into() });
        };
        let address = Address {
            pid: std::process::id(),
            layout: LAYOUT,
            queue: file::descriptor(&fd),
            doorbell: doorbell.fd().cast_unsigned(),
            queue_inode: file::inode(fd)?,
            doorbell_inode: doorbell.inode()?,
            nonce: u64::from_ne_bytes(nonce),
            nonce_at: (memory.address() + NONCE) as u64,
        };
        Ok(Self {
            capabilities: Capabilities {
                max_message: MAX_MESSAGE,
                max_transfer: usize::MAX,
                rma: true,
                immediate: true,
                registration_is_free: true,
                moves: None,
                copied_put: 0,
                ordered: false,
                atomics: AtomicScope::None,
                provider: "memory files, cross-memory attach".into(),
            },
            address,
            queue: Queue::new(memory.clone()),
            memory,
            inbox: TryLock::new(Box::default()),
            deaths: OnceLock::new(),
            head: AtomicU64::new(0),
            prefix: OnceLock::new(),
            doorbell,
            peers: (0..ranks).map(|_| OnceLock::new()).collect(),
            arena: OnceLock::new(),
        })
    }

    /// Messages of the job begin with these bytes, at all ranks: only its ranks have the queue's memory, so they travel without.
    /// To be said before the first message is sent or taken.
    pub fn leave_out(&self, prefix: Prefix) {
        let _ = self.prefix.set(prefix);
    }

    /// Whether this rank reaches the memory of a peer's program by cross-memory attach: tried, both ways.
    ///
    /// # Errors
    /// Why not.
    pub fn attaches(&self, peer: usize, address: &[u8]) -> Result<(), String> {
        let address = parse(peer, address).map_err(|e| e.to_string())?;
        attach::reaches(address.pid, address.nonce_at, address.nonce)
    }

    /// Appends a message to a peer's queue, if there is room.
    #[inline]
    fn append(&self, peer: &Peer, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        let waits = peer.full.load(Ordering::Relaxed) && !peer.queue.has_room()?;
        let appending = self.deaths.get().map(|_| self.queue.append()).transpose()?;
        let (stores, measured) = peer.stores.next(payload.len());
        let pushed = !waits && peer.queue.push_by(stores, self.prefix.get(), header, payload)?;
        if let Some(measured) = measured.filter(|_| pushed) {
            peer.stores.written(payload.len(), &measured);
        }
        drop(appending);
        if peer.full.load(Ordering::Relaxed) == pushed {
            peer.full.store(!pushed, Ordering::Relaxed);
        }
        Ok(if pushed { Posted::Complete } else { Posted::Again })
    }

    /// Tells peers that are connected to this rank, by a flag, that it has something to tell.
    ///
    /// # Errors
    /// None, as long as the queue is what it should be.
    pub fn announce(&self) -> TransportResult<()> {
        self.queue.announce()
    }

    /// Whether any of the ranks that this one is connected to has done so.
    pub fn hears_an_announcement(&self) -> bool {
        let queues = self.peers.iter().filter_map(|peer| Some(&peer.get()?.queue));
        queues.into_iter().any(|queue| queue.is_announced().unwrap_or(true))
    }

    /// From now on this rank allocates memory in a file that it can pass to peers once and for all.
    ///
    /// # Errors
    /// A limit stands in the way.
    pub fn offer_files(&self) -> TransportResult<()> {
        if self.arena.get().is_none() {
            let _ = self.arena.set(Arena::new()?);
        }
        Ok(())
    }

    /// Passes the files that are offered on the calls, and returns what those have passed that have called at `meeting`: `expected`
    /// peers, or fewer when `patience` is over. `memory`: what this rank has allocated before, and peers are to map.
    pub fn exchange_files(
        &self,
        rank: usize,
        calls: Vec<Call>,
        memory: &Span,
        (meeting, expected): (Option<&Meeting>, usize),
        patience: Duration,
    ) -> Vec<Passed> {
        let file = |memory: &'_ Span| memory.file().map(|(file, _)| file.as_raw_fd());
        let ends = self.doorbell.ends().map(|end| Some(end.as_raw_fd()));
        let arena = self.arena.get().map(|arena| arena.fd().as_raw_fd());
        let files: Vec<RawFd> =
            std::iter::once(file(&self.memory)).chain(ends).chain([file(memory), arena]).flatten().collect();
        hand_over(rank, &files, calls, meeting, expected, patience)
    }

    /// Connects to a peer by the files that it has passed.
    ///
    /// # Errors
    /// They make no sense; there is no memory to map them.
    pub fn connect_passed(&self, peer: usize, address: &[u8], files: Vec<OwnedFd>) -> TransportResult<()> {
        let address = parse(peer, address)?;
        self.set(peer, Peer::passed(peer, &address, files)?)
    }

    fn set(&self, peer: usize, reached: Peer) -> TransportResult<()> {
        let slot = self.peers.get(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        let _ = slot.set(reached);
        Ok(())
    }

    /// Hands out so many messages at the most; returns how many.
    #[inline]
    fn take_messages(&self, most: usize, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        let Some(mut inbox) = self.inbox.try_lock() else { return Ok(0) };
        let mut bytes = 0;
        for taken in 0..most {
            if bytes >= BATCH_BYTES {
                return Ok(taken);
            }
            let head = self.head.load(Ordering::Relaxed);
            let Some(message) = self.queue.take(self.prefix.get(), head, &mut inbox)? else {
                if self.skip_what_the_dead_claimed(head)? {
                    continue;
                }
                return Ok(taken);
            };
            self.head.store(head + 1, Ordering::Relaxed);
            if taken + 1 < most {
                self.queue.prefetch(head + 1)?;
            }
            bytes += message.near + message.far;
            let near = &inbox.0[..message.near];
            if message.far == 0 {
                self.queue.release(head)?;
                sink(Event::Message(near));
            } else {
                sink(Event::Long(near, self.queue.rest(head, message)?));
                self.queue.release(head)?;
            }
        }
        Ok(most)
    }

    /// If the next cell was claimed by a rank that died before its message was there, the queue goes on behind it; whether it does.
    /// By who holds the inbox.
    #[inline]
    fn skip_what_the_dead_claimed(&self, head: u64) -> TransportResult<bool> {
        let Some(deaths) = self.some_died() else { return Ok(false) };
        let peers = self.peers.iter().filter_map(OnceLock::get);
        let is_stuck = deaths.is_stuck(&self.queue, head, peers)?;
        if is_stuck {
            tracing::debug!(head, "a message of a dead rank is left out");
            self.queue.release(head)?;
            self.head.store(head + 1, Ordering::Relaxed);
        }
        Ok(is_stuck)
    }

    /// What is known of ranks that are gone, if any is.
    #[inline]
    fn some_died(&self) -> Option<&Deaths> {
        self.deaths.get().filter(|deaths| deaths.any.load(Ordering::Acquire))
    }

    /// Whether the next cell is claimed, maybe by a rank that is gone: whether it was is found out by polls, and nobody rings then.
    #[inline]
    fn may_be_stuck(&self, head: u64) -> bool {
        self.some_died().is_some() && self.queue.is_claimed(head).unwrap_or(true)
    }

    /// A peer's region, mapped if it is in a file.
    fn attach_key(&self, peer: usize, key: Key) -> TransportResult<Remote> {
        let direct = match key.len != 0 && key.file == NO_FILE {
            true => None,
            false => Some(key.map(peer, &self.peer(peer)?.files)?),
        };
        Ok(Remote { peer, len: key.bytes(peer)?, direct, base: key.start, key: u64::from(key.pid) })
    }

    pub(crate) fn peer(&self, peer: usize) -> TransportResult<&Peer> {
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
        Address::read_from_bytes(address).is_ok_and(|a| a.layout == LAYOUT)
    }

    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()> {
        let address = parse(peer, address)?;
        let reached = match address.nonce == self.address.nonce {
            true => Peer::own(&self.memory, &self.doorbell).map_err(|e| TransportError::io("dup", &e))?,
            false => Peer::open(peer, &address)?,
        };
        self.set(peer, reached)
    }

    fn allocate(&self, bytes: usize) -> TransportResult<Option<Span>> {
        match self.arena.get() {
            _ if bytes == 0 => Ok(Some(Span::empty())),
            Some(arena) => arena.allocate(bytes).map(Some),
            None => file::create("transom-window", bytes).map(Some),
        }
    }

    fn reserve(&self, bytes: usize, address: usize) -> TransportResult<Option<Span>> {
        match self.arena.get() {
            Some(arena) => arena.reserve(bytes, address).map(Some),
            None => file::reserve("transom-heap", bytes, address).map(Some),
        }
    }

    /// The queue is the shorter way for what is a part of it; but where the kernel is quick, not for what goes both ways at once.
    fn shown_from(&self, givers: usize, both_ways: bool) -> usize {
        const LEAST: usize = 16 << 10;
        const BOTH_WAYS: usize = 64 << 10;
        let part = (QUEUE_BYTES / 2 / givers.max(1)).max(LEAST);
        if both_ways && !attach::is_slow() { part.min(BOTH_WAYS) } else { part }
    }

    fn shown_waiting_from(&self) -> usize {
        if attach::is_slow() { QUEUE_BYTES / 2 * 16 } else { 128 << 10 }
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
        self.attach_key(peer, Key::parse(peer, &key.0)?)
    }

    fn attach_part(&self, peer: usize, key: &RegionKey, start: usize, len: usize) -> TransportResult<Remote> {
        self.attach_key(peer, Key::parse(peer, &key.0)?.part(start, len)?)
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
        let peer = self.peer(peer)?;
        let posted = self.append(peer, header, payload)?;
        if peer.queue.must_ring()? {
            peer.bell.ring();
        }
        Ok(posted)
    }

    /// Without the fence that asks whether the peer sleeps.
    fn message_before(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.append(self.peer(peer)?, header, payload)
    }

    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        self.take_messages(BATCH, sink)
    }

    fn progress_briefly(
        &self,
        messages: usize,
        more: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> TransportResult<usize> {
        // A look at the next cell would wait for its line, which another core has.
        if more {
            self.queue.prefetch(self.head.load(Ordering::Relaxed) + 1)?;
        }
        self.take_messages(messages, sink)
    }

    #[inline]
    fn is_idle(&self) -> bool {
        // Who finds another thread's number finds a cell that is taken, or not there yet: that thread has the message.
        let head = self.head.load(Ordering::Relaxed);
        !self.queue.ready(head).unwrap_or(true) && !self.may_be_stuck(head)
    }

    fn outlives_peers(&self) {
        let _ = self.deaths.set(Deaths::default());
    }

    fn forget(&self, peers: &[usize]) {
        let Some(deaths) = self.deaths.get() else { return };
        for peer in peers.iter().filter_map(|peer| self.peers.get(*peer)?.get()) {
            peer.gone.store(true, Ordering::Release);
        }
        deaths.any.store(true, Ordering::Release);
    }

    fn abandon(&self) {
        // Every copy is over when its call returns.
    }

    fn wait_fd(&self) -> WaitFd {
        self.doorbell.fd()
    }

    fn arm(&self) -> TransportResult<Armed> {
        let Some(_inbox) = self.inbox.try_lock() else { return Ok(Armed::Ready) };
        let head = self.head.load(Ordering::Relaxed);
        Ok(match self.queue.arm(head)? {
            true if self.may_be_stuck(head) => Armed::Briefly,
            true => Armed::Sleep,
            false => Armed::Ready,
        })
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

    fn wakes_if_armed(&self) -> bool {
        true
    }
}

/// The address that a peer has sent.
fn parse(peer: usize, address: &[u8]) -> TransportResult<Address> {
    let malformed = TransportError::Malformed { peer, what: "shared-memory address" };
    Address::read_from_bytes(address).ok().filter(|a| a.layout == LAYOUT).ok_or(malformed)
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
