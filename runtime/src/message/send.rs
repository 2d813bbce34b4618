//! Sends: what all have in common, and blocking ones (MPI-4.1 §3.2, §3.4).

use std::sync::Arc;

use transom_transport::{Region, Span};
use zerocopy::IntoBytes;

use super::check_tag;
use super::isend::isend;
use crate::comm::Channel;
use crate::engine::two_sided::{Answer, Body, Bytes, Incoming, MOST_IN_PARTS, register, send_segments};
use crate::engine::{Engine, Promise, Route};
use crate::memory;
use crate::protocol::messages::Envelope;
use crate::protocol::wire::{HEADER_BYTES, Header, Kind};
use crate::waits::{Awaits, Subject};
use crate::{Class, Communicator, Element, Error, NULL_RANK, Request, Result};

/// Whether a send is complete when its buffer can be reused, or when it is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Standard,
    Synchronous,
}

/// A part of a collective is sent at once, but a message in segments waits until a receive asks for it, and then until its sender makes
/// progress, which may compute: the length up to which that is the shorter way is so many times less.
const SEGMENTS: usize = 16;

/// One send: the call, to whom (rank in the communicator and in the job), the tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending<'a> {
    channel: &'a Channel,
    pub operation: &'static str,
    pub dest: usize,
    pub to: usize,
    pub tag: i32,
}

impl<'a> Sending<'a> {
    /// Checks the arguments; nothing is to be sent to the null rank.
    pub fn new(channel: &'a Channel, operation: &'static str, dest: usize, tag: i32) -> Result<Option<Self>> {
        check_tag(channel, operation, tag)?;
        if dest == NULL_RANK {
            return Ok(None);
        }
        channel.check_rank(operation, dest)?;
        let to = channel.job_rank(dest);
        channel.engine.check_use(operation, channel.context, Some(to))?;
        Ok(Some(Self { channel, operation, dest, to, tag }))
    }

    pub fn engine(&self) -> &'a Arc<Engine> {
        &self.channel.engine
    }

    pub fn is_own(&self) -> bool {
        self.to == self.engine().rank
    }

    /// Whether so many bytes travel with their header.
    #[inline]
    pub fn is_short(&self, bytes: usize) -> bool {
        bytes <= self.engine().routes.route(self.to).capabilities.max_message - HEADER_BYTES
    }

    /// The header of an eager message; `number` if the receiver is to acknowledge it.
    pub fn eager(&self, number: Option<u64>) -> Header {
        let mut header = self.engine().header(Kind::Eager).in_context(self.channel.context);
        header.offset = i64::from(self.tag).cast_unsigned();
        header.op = u8::from(number.is_some());
        header.value = number.unwrap_or_default();
        header
    }

    /// Sends an eager message; waits while the queue is full.
    fn send_eager(&self, number: Option<u64>, bytes: &[u8]) -> Result<()> {
        let (header, bytes) = self.eager(number).carrying(bytes);
        self.engine().send(self.operation, self.to, &header, bytes)
    }

    /// The same, now or by a later poll.
    pub fn send_in_order(&self, number: Option<u64>, bytes: &[u8]) -> Result<()> {
        let (header, bytes) = self.eager(number).carrying(bytes);
        self.engine().send_in_order(self.operation, self.to, &header, bytes)
    }

    /// Whether a longer message travels in parts, for which the receiver does not ask.
    pub fn is_in_parts(&self, bytes: usize) -> bool {
        let Route { transport, capabilities } = self.engine().routes.route(self.to);
        capabilities.registration_is_free && bytes <= MOST_IN_PARTS && bytes < transport.shown_from(1, false)
    }

    /// The parts with their headers.
    pub fn parts<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = (Header, &'b [u8])> {
        let engine = self.engine();
        let room = engine.routes.route(self.to).capabilities.max_message - HEADER_BYTES;
        let first = Header { value: engine.two_sided.number(), ..self.eager(None) };
        bytes.chunks(room).enumerate().map(move |(i, part)| {
            let header = match i {
                0 => Header { kind: Kind::Parts as u8, count: bytes.len() as u64, ..first },
                _ => Header { kind: Kind::Part as u8, offset: (i * room) as u64, ..first },
            };
            (header, part)
        })
    }

    pub fn request_to_send(&self, number: u64, bytes: usize) -> Header {
        let mut header = self.eager(Some(number));
        header.kind = Kind::RequestToSend as u8;
        header.op = 0;
        header.count = bytes as u64;
        header
    }

    /// The region of a message to be fetched; none where the transport has no get, or registers no more, or where segments, which need
    /// none, take less time: who `waits` until the message is received sends them at once.
    pub fn register(&self, memory: &Span, waits: bool) -> Option<Box<dyn Region>> {
        let Route { transport, capabilities } = self.engine().routes.route(self.to);
        let most = transport.shown_from(1, false) / SEGMENTS;
        let most = if waits { most.max(transport.shown_waiting_from()) } else { most };
        let in_segments = capabilities.registration_is_free && memory.len() < most;
        if in_segments { None } else { register(self.engine(), self.to, memory) }
    }

    /// A copy of a message, if there is memory for it.
    pub fn copied(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        data.try_reserve_exact(bytes.len()).map_err(|_| {
            let message = format!("no memory for a copy of {} bytes", bytes.len());
            self.channel.error(Class::NoMemory, self.operation, message).with_target(self.dest)
        })?;
        data.extend_from_slice(bytes);
        Ok(data)
    }

    /// A message to this rank itself.
    pub fn deliver(&self, data: Vec<u8>, number: Option<u64>) {
        let envelope = Envelope { context: self.channel.context, source: self.engine().rank, tag: self.tag };
        let body = Body::Eager(Bytes::Kept(data.into()));
        self.engine().send_to_self(Incoming { envelope, body, number });
    }

    /// What a synchronous or long send awaits.
    fn what(&self) -> Awaits {
        awaited(self.channel, self.dest, self.tag)
    }
}

/// What a send to a member awaits.
pub(super) fn awaited(channel: &Channel, dest: usize, tag: i32) -> Awaits {
    let text = format!("rank {dest} to receive a message with tag {tag}");
    Awaits::new(text, Subject::Send, [channel.job_rank(dest)]).on_channel(channel)
}

/// The send was taken back.
pub(super) fn recalled(engine: &Engine, operation: &'static str, dest: usize) -> Error {
    Error::new(Class::Cancelled, operation, "the send was taken back").at_rank(engine.rank).with_target(dest)
}

/// The receiver could not have the message.
pub(super) fn refused(engine: &Engine, operation: &'static str, dest: usize) -> Error {
    let message = "the receiver could not get the bytes of the message";
    Error::new(Class::Peer, operation, message).at_rank(engine.rank).with_target(dest)
}

/// Hands a short message over, if there is room for it; false, and nothing is done, if there is not, or anything is wrong.
#[inline]
pub(super) fn send_now(comm: &Communicator, (dest, tag): (usize, i32), bytes: &[u8]) -> bool {
    const NAME: &str = "send";
    let channel = comm.channel();
    if tag < 0 || dest >= channel.size {
        return false;
    }
    let sending = Sending { channel, operation: NAME, dest, to: channel.job_rank(dest), tag };
    if sending.is_own() || !sending.is_short(bytes.len()) {
        return false;
    }
    let (header, bytes) = sending.eager(None).carrying(bytes);
    let engine = sending.engine();
    if engine.dead.any() {
        return false;
    }
    engine.count_send();
    matches!(engine.try_send(NAME, sending.to, &header, bytes), Some(Ok(())))
}

/// Sends, and waits until `bytes` may be reused, or until they are received.
pub(super) fn send(
    comm: &Communicator,
    operation: &'static str,
    (dest, tag): (usize, i32),
    bytes: &[u8],
    mode: Mode,
) -> Result<()> {
    let Some(sending) = Sending::new(comm.channel(), operation, dest, tag)? else { return Ok(()) };
    let engine = sending.engine();
    let short = sending.is_own() || sending.is_short(bytes.len());
    if short && mode == Mode::Standard {
        return if sending.is_own() {
            sending.copied(bytes).map(|data| sending.deliver(data, None))
        } else {
            sending.send_eager(None, bytes)
        };
    }
    if mode == Mode::Standard && sending.is_in_parts(bytes.len()) {
        let mut parts = sending.parts(bytes).peekable();
        while let Some((header, part)) = parts.next() {
            engine.send_before(operation, sending.to, &header, part, parts.peek().is_some())?;
        }
        return Ok(());
    }
    let shown = memory::expose_read_only(bytes);
    let region = if short { None } else { sending.register(&shown, true) };
    let promise = Promise::new();
    let completed = promise.clone();
    let then = Box::new(move |engine: &Engine, answer| completed.complete(engine, Ok(answer)));
    let number = engine.two_sided.await_answer(sending.to, region.as_ref().map(|_| shown), then);
    let sent = if sending.is_own() {
        sending.copied(bytes).map(|data| sending.deliver(data, Some(number)))
    } else if short {
        sending.send_eager(Some(number), bytes)
    } else {
        let key = region.as_ref().map(|region| region.key().0).unwrap_or_default();
        engine.send(operation, sending.to, &sending.request_to_send(number, bytes.len()), &key)
    };
    let answer =
        sent.and_then(|()| engine.wait_until(operation, &|| sending.what(), None, || promise.take()));
    // No rank gets the bytes any more.
    drop(region);
    if answer.is_err() {
        engine.two_sided.end_send(sending.to, number);
    }
    match answer? {
        Answer::Done(true) => Ok(()),
        Answer::Done(false) => Err(refused(engine, operation, dest)),
        Answer::Recalled => Err(recalled(engine, operation, dest)),
        Answer::ClearToSend(theirs) => send_segments(engine, operation, (sending.to, theirs), bytes),
    }
}

impl Communicator {
    /// Sends `data` to rank `dest`, with a tag from 0 on (`MPI_Send`, MPI-4.1 §3.2.1). Returns when `data`
    /// may be reused: short messages are on their way then, long ones are received. To the null rank:
    /// nothing.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let other = 1 - job.rank();
    ///     let sent = job.isend(other, 7, vec![job.rank() as u32; 3]);
    ///     let (data, status) = job.recv::<u32>(transom::ANY_SOURCE, 7)?;
    ///     assert_eq!((data, status.source, status.count::<u32>()), (vec![other as u32; 3], other, Some(3)));
    ///     sent.wait().map(drop)
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// `dest` or `tag` is wrong; the receiver cannot get the bytes; a peer is gone; the deadline passes.
    pub fn send<T: Element>(&self, dest: usize, tag: i32, data: &[T]) -> Result<()> {
        send(self, "send", (dest, tag), data.as_bytes(), Mode::Standard)
    }

    /// Sends, and returns when a receive has met the message (`MPI_Ssend`, §3.4).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn ssend<T: Element>(&self, dest: usize, tag: i32, data: &[T]) -> Result<()> {
        send(self, "ssend", (dest, tag), data.as_bytes(), Mode::Synchronous)
    }

    /// [`Communicator::send`], nonblocking (`MPI_Isend`, §3.7.2): owns the data, and gives it back when it
    /// may be reused.
    pub fn isend<T: Element>(&self, dest: usize, tag: i32, data: Vec<T>) -> Request<Vec<T>> {
        isend(self, "isend", (dest, tag), data, Mode::Standard)
    }

    /// [`Communicator::ssend`], nonblocking (`MPI_Issend`, §3.7.2).
    pub fn issend<T: Element>(&self, dest: usize, tag: i32, data: Vec<T>) -> Request<Vec<T>> {
        isend(self, "issend", (dest, tag), data, Mode::Synchronous)
    }
}
