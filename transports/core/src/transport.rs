//! The trait that every transport implements.
//!
//! A transport moves bytes between a local buffer and (peer, region, offset), carries messages, and reports
//! completions. It never blocks: a call returns at once, or says *try again* without having lost anything.

use std::fmt;
use std::os::fd::RawFd;

use crate::{Rest, Span, TransportError, TransportResult};

/// What a put or get has come to when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// Done: the bytes are where they belong, at origin and target. No completion follows.
    Complete,
    /// Under way: a completion with the call's context follows.
    Pending,
    /// Not taken: a queue is full. Make progress and call again.
    Again,
}

/// The end of an operation that was [`Posted::Pending`]: done at origin and target, or failed.
#[derive(Debug)]
pub struct Completion {
    /// The context that the operation was posted with.
    pub context: u64,
    /// What an atomic found: the 8 bytes, as the machine has numbers. Else 0.
    pub value: u64,
    /// Whether it succeeded.
    pub result: TransportResult<()>,
}

/// What progress finds.
#[derive(Debug)]
pub enum Event<'a> {
    /// An operation ended.
    Complete(Completion),
    /// A message arrived. The bytes are a stranger's until their token is checked.
    Message(&'a [u8]),
    /// The same of a long message: its beginning, a header and maybe more, and its end.
    Long(&'a [u8], Rest<'a>),
}

/// What a peer needs to access a region: opaque bytes, exchanged by the runtime, that no stranger can guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionKey(pub Vec<u8>);

/// A registration: lives as long as the memory may be accessed by peers.
pub trait Region: Send + Sync + fmt::Debug {
    /// The key to give to peers.
    fn key(&self) -> RegionKey;
}

/// A peer's region, as the origin sees it.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The peer's rank.
    pub peer: usize,
    /// The region's length in bytes.
    pub len: usize,
    /// The region mapped into this process, where the transport can: then loads, stores and CPU atomics on it are the
    /// put, get and atomic of this transport.
    pub direct: Option<Span>,
    /// The transport's own address of the region's first byte.
    pub base: u64,
    /// The transport's own key.
    pub key: u64,
}

impl Remote {
    /// A part of the region.
    pub fn part(&self, start: usize, len: usize) -> TransportResult<Self> {
        if start > self.len || len > self.len - start {
            return Err(TransportError::Range { offset: start, bytes: len, len: self.len });
        }
        let direct = self.direct.as_ref().map(|memory| memory.part(start, len)).transpose()?;
        Ok(Self { len, direct, base: self.base.wrapping_add(start as u64), ..*self })
    }
}

/// A put or a get between memory here and a peer's region.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// The region.
    pub remote: &'a Remote,
    /// Where in the region it begins.
    pub offset: usize,
    /// The memory here, which a put only reads.
    pub local: *mut u8,
    /// Bytes.
    pub len: usize,
    /// What its completion has.
    pub context: u64,
}

/// As [`Transfer`], with parts of a buffer here, one after the other in the region.
#[derive(Debug, Clone, Copy)]
pub struct ListTransfer<'a> {
    /// The region.
    pub remote: &'a Remote,
    /// Where in the region it begins.
    pub offset: usize,
    /// The buffer here, which a put only reads.
    pub local: *mut u8,
    /// Its parts.
    pub parts: &'a [Part],
    /// What its completion has.
    pub context: u64,
}

/// What the device's own atomics exclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtomicScope {
    /// There are none.
    None,
    /// Each other, at the same device; not those of the CPU.
    Device,
    /// Those of the CPU, too.
    System,
}

/// An atomic of the device, on 8 bytes aligned to 8; fetches what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeAtomic {
    /// Adds, modulo 2^64.
    FetchAdd(u64),
    /// Stores `swap` if `compare` is there.
    CompareSwap {
        /// What must be there.
        compare: u64,
        /// What is stored.
        swap: u64,
    },
}

/// How a transport moves the bytes of puts and gets, by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    /// Puts of up to so many bytes travel in the work request.
    pub inline: usize,
    /// Other transfers of up to so many bytes are copied through registered buffers; the device reads and writes the
    /// caller's memory for longer ones.
    pub copied: usize,
    /// Lists of parts of the caller's memory, if one transfer takes them.
    pub lists: Option<Lists>,
}

/// What one transfer takes of parts of the caller's memory: any number of them if they have at most [`Moves::copied`] bytes
/// together, else this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// Parts of a put.
    pub put: usize,
    /// Parts of a get.
    pub get: usize,
    /// Bytes of all parts.
    pub bytes: usize,
}

/// A part of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bytes from the buffer's first byte.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Part {
    /// Bytes of all parts, and the end of the last one in the buffer.
    pub fn measure(parts: &[Self]) -> (usize, usize) {
        parts.iter().fold((0, 0), |(bytes, end), part| (bytes + part.len, end.max(part.offset + part.len)))
    }
}

/// What a transport can do, and what its completions mean.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// Most bytes of header and payload that one message takes.
    pub max_message: usize,
    /// Most bytes of one put or get.
    pub max_transfer: usize,
    /// Whether `put` and `get` exist for memory that is not mapped (else such accesses go by messages).
    pub rma: bool,
    /// Whether puts and gets are always done when the call returns: never [`Posted::Pending`].
    pub immediate: bool,
    /// Whether registered memory costs nothing until it is touched: it is not pinned, nor mapped by a device.
    pub registration_is_free: bool,
    /// How puts and gets move, if the transport decides that itself.
    pub moves: Option<Moves>,
    /// Most bytes of a [`Transport::put_copy`]; 0 if there is none.
    pub copied_put: usize,
    /// Whether a message is handed out at the peer after all puts to it that were posted before are in its memory.
    pub ordered: bool,
    /// What [`Transport::atomic`] excludes.
    pub atomics: AtomicScope,
    /// The provider and version below, for people.
    pub provider: String,
}

/// A peer whose silence the transport does not notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwatched {
    /// Its rank.
    pub peer: usize,
    /// Puts, gets and messages of this rank's that have ended there, modulo 2^64.
    pub ended: u64,
    /// Whether puts or gets are under way there.
    pub busy: bool,
}

/// Whether it is safe to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Nothing is there; an arrival will make the descriptor readable.
    Sleep,
    /// As [`Armed::Sleep`], but what has come may wait for something that makes nothing readable: poll again before long.
    Briefly,
    /// Something is there already: poll again.
    Ready,
}

/// A descriptor that becomes readable when there is something to do.
pub type WaitFd = RawFd;

/// A way to reach peers. All methods may be called from any thread.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Short name: `shm`, `ofi`.
    fn name(&self) -> &'static str;

    /// What it can do here.
    fn capabilities(&self) -> &Capabilities;

    /// What peers need to reach this rank, at most 200 bytes. Exchanged by the job's bootstrap.
    fn address(&self) -> Vec<u8>;

    /// Whether a peer with this address can be reached by this transport, as far as the address tells.
    fn reaches(&self, address: &[u8]) -> bool;

    /// Learns a peer's address. Called once for each peer before anything is sent to it.
    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()>;

    /// Zeroed memory that peers of this transport can map, if it has such.
    fn allocate(&self, bytes: usize) -> TransportResult<Option<Span>>;

    /// As [`Transport::allocate`], but address space only, at `address` if that is free: memory comes when it is
    /// touched.
    fn reserve(&self, _bytes: usize, _address: usize) -> TransportResult<Option<Span>> {
        Ok(None)
    }

    /// So many bytes that a peer needs reach it sooner if they are shown to it, and it gets them, than as messages; where `givers` ranks at
    /// once have as many for it, and it has as many for them if it goes `both_ways`.
    fn shown_from(&self, _givers: usize, _both_ways: bool) -> usize {
        if self.capabilities().registration_is_free { 16 << 10 } else { 64 << 10 }
    }

    /// So many bytes of one message reach a peer sooner if they are shown, where the sender waits until it is received: it sends them
    /// if there are fewer, or helps with the copy.
    fn shown_waiting_from(&self) -> usize {
        0
    }

    /// Exposes memory to peers until the region is dropped.
    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>>;

    /// Makes a peer's region accessible here.
    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote>;

    /// As [`Transport::attach`], for a part of the region: nothing else of it is mapped.
    fn attach_part(&self, peer: usize, key: &RegionKey, start: usize, len: usize) -> TransportResult<Remote> {
        self.attach(peer, key)?.part(start, len)
    }

    /// Writes the bytes at [`Transfer::local`] to the peer's region.
    ///
    /// # Safety
    /// If the result is [`Posted::Pending`], these bytes must stay valid and unchanged until the completion with the
    /// transfer's context has been reported or the transport is dropped.
    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted>;

    /// As [`Transport::put`], of at most [`Capabilities::copied_put`] bytes, which have been copied when it returns: the caller
    /// may change them at once.
    fn put_copy(
        &self,
        _remote: &Remote,
        _offset: usize,
        _bytes: &[u8],
        _context: u64,
    ) -> TransportResult<Posted> {
        let reason = "it copies no puts".into();
        Err(TransportError::Unavailable { transport: self.name(), reason })
    }

    /// Reads bytes of the peer's region to [`Transfer::local`].
    ///
    /// # Safety
    /// If the result is [`Posted::Pending`], the memory there must stay valid for writes, and not be accessed, until the
    /// completion with the transfer's context has been reported or the transport is dropped.
    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted>;

    /// Writes parts of a buffer, one after the other, to the peer's region; within the bounds of [`Moves::lists`].
    ///
    /// # Safety
    /// As [`Transport::put`], for the parts.
    unsafe fn put_list(&self, _transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        Err(no_lists(self.name()))
    }

    /// Reads bytes of the peer's region to parts of a buffer, one after the other; within the bounds of [`Moves::lists`].
    ///
    /// # Safety
    /// As [`Transport::get`], for the parts.
    unsafe fn get_list(&self, _transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        Err(no_lists(self.name()))
    }

    /// Updates 8 bytes, aligned to 8, of the peer's region. [`Posted::Pending`] or [`Posted::Again`]; the completion has the
    /// value that was there.
    fn atomic(
        &self,
        _remote: &Remote,
        _offset: usize,
        _operation: NativeAtomic,
        _context: u64,
    ) -> TransportResult<Posted> {
        let reason = "it has no atomics of its own".into();
        Err(TransportError::Unavailable { transport: self.name(), reason })
    }

    /// Sends header and payload as one message. Both are captured before the call returns. Messages to one peer
    /// arrive in order. [`Posted::Complete`] or [`Posted::Again`]; no completion follows.
    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted>;

    /// As [`Transport::message`], for one that another one to the same peer follows at once, which wakes it if it sleeps.
    fn message_before(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.message(peer, header, payload)
    }

    /// As [`Transport::message`], for a message that no peer waits for yet: it may wait for those behind it, until somebody makes
    /// progress or sleeps.
    fn message_gathered(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.message(peer, header, payload)
    }

    /// As [`Transport::message`], for messages to one peer, each a header and a payload: how many it has taken, from the first one on. If
    /// not all, that for the next is [`Posted::Again`].
    fn messages(&self, peer: usize, messages: &[(&[u8], &[u8])]) -> TransportResult<usize> {
        for (taken, (header, payload)) in messages.iter().enumerate() {
            if self.message(peer, header, payload)? == Posted::Again {
                return Ok(taken);
            }
        }
        Ok(messages.len())
    }

    /// Polls for completions and messages, hands each to `sink`, and returns how many there were, with the puts and gets that it
    /// has served for peers: a caller that finds nothing may sleep. The sink may call every method but this one.
    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize>;

    /// [`Transport::progress`] for who waits for so many messages: of those that have come they may be all. `more`: others have
    /// probably come, and will be asked for next.
    fn progress_briefly(
        &self,
        _messages: usize,
        _more: bool,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> TransportResult<usize> {
        self.progress(sink)
    }

    /// Whether [`Transport::progress`] would find nothing now, as a look at memory says that takes no lock: for who polls all the
    /// time. False where nothing can be said.
    fn is_idle(&self) -> bool {
        false
    }

    /// Polls, and takes the end of one operation that has succeeded, if that is all that has come: its context, and what an
    /// atomic found. Else the rest is [`Transport::progress`]'s: a short way for who waits for one operation.
    fn progress_one(&self) -> TransportResult<Option<(u64, u64)>> {
        Ok(None)
    }

    /// Adds the peers whose silence this transport does not notice by itself, as far as anything was sent to them.
    fn unwatched(&self, _peers: &mut Vec<Unwatched>) {}

    /// Who waits for long calls this now and then. A transport that notices the loss of a peer only by what it sends there sends a
    /// little to those at which nothing is under way, as far as it is connected with them. Adds the peers that were lost, and why,
    /// where no operation may have told of it.
    fn try_idle(&self, _lost: &mut Vec<(usize, String)>) {}

    /// Whether messages that it has taken arrive even if this process ends next. Else whoever ends waits before, making progress, until
    /// all peers have what was sent last.
    fn delivers_after_the_end(&self) -> bool {
        true
    }

    /// This rank waits for the end of the job: a peer that refuses to be connected to may have left, and need nothing of it any more.
    fn begin_to_leave(&self) {}

    /// Whether all that it has taken has left this process.
    fn is_sent(&self) -> bool {
        true
    }

    /// Connections have failed, or may have: what was sent to peers may be on its way for ever.
    fn distrust(&self) {}

    /// Peers may die while this rank goes on. To be said before the first message.
    fn outlives_peers(&self) {}

    /// These peers have died: nothing that they hold is waited for.
    fn forget(&self, _peers: &[usize]) {}

    /// Ends every operation under way without its completion: after this no local buffer is touched any more, and
    /// later calls fail. For a caller that cannot keep its buffers any longer.
    fn abandon(&self);

    /// The descriptor to sleep on: the same, and open, as long as there is the transport.
    fn wait_fd(&self) -> WaitFd;

    /// Asks for a wake-up: after [`Armed::Sleep`] any arrival makes [`Transport::wait_fd`] readable.
    fn arm(&self) -> TransportResult<Armed>;

    /// As [`Transport::arm`], but for messages: completions of this rank's own operations wake no thread. `None` if the
    /// transport cannot tell them apart, or has work to do that no message announces: then there may be no wake-up.
    fn arm_for_messages(&self) -> TransportResult<Option<Armed>> {
        Ok(None)
    }

    /// Takes the wake-up request back, after a sleep or instead of one; `readable` tells whether the descriptor was.
    fn disarm(&self, readable: bool);

    /// Whether nothing makes the descriptor readable but what comes between [`Transport::arm`] and [`Transport::disarm`].
    fn wakes_if_armed(&self) -> bool {
        false
    }
}

fn no_lists(transport: &'static str) -> TransportError {
    TransportError::Unavailable { transport, reason: "it takes no lists of parts".into() }
}
