//! Receives, blocking and not (MPI-4.1 §3.2.4, §3.7, §3.10).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use transom_transport::Payload;
use zerocopy::IntoBytes;

use super::matched::store;
use super::send::{Mode, send};
use super::{Matched, Message, Source, Status, Tag, awaited, pattern};
use crate::comm::{Awaited, Channel};
use crate::engine::two_sided::{
    Buffer, Direct, Incoming, Receiver, Unexpected, awaits_coming, check_capacity, deliver,
};
use crate::engine::{Coming, Engine, Promise};
use crate::protocol::messages::Pattern;
use crate::protocol::wire::{Header, Kind};
use crate::waits::Awaits;
use crate::{Class, Communicator, Element, Error, Request, Result};

type Received<T> = (Vec<T>, Status);

/// A receive under way: posted, and awaited by its request. If that is dropped before a message has come, it is cancelled.
struct Receiving<B: Buffer, F> {
    channel: Arc<Channel>,
    operation: &'static str,
    pattern: Pattern,
    /// As the call has it.
    from: (Source, Tag),
    room: B::Room,
    /// Its number if it is posted, or else 0.
    number: AtomicU64,
    promise: Promise<Matched<B>>,
    /// The message that has matched it, while its bytes come.
    coming: OnceLock<Coming>,
    /// What is made of it.
    finish: F,
}

impl<B: Buffer, F> Receiving<B, F> {
    fn cancel_posted(&self) -> bool {
        let number = self.number.load(Ordering::Acquire);
        number != 0 && self.channel.engine.two_sided.cancel(self.pattern, number)
    }
}

impl<B: Buffer, F: Send + Sync + 'static> Receiver for Receiving<B, F> {
    fn receive(self: Arc<Self>, engine: &Engine, arrived: Incoming<'_>) {
        let status = Status::of(&self.channel, arrived.envelope, arrived.bytes());
        let (operation, room) = (self.operation, self.room);
        let _ = self.coming.set(arrived.coming(engine));
        let then = move |engine: &Engine, result| self.promise.complete(engine, Ok((result, status)));
        deliver(engine, operation, arrived, room, then);
    }
}

impl<B: Buffer, R, F: Fn(Matched<B>) -> Result<R> + Send + Sync> Awaited<R> for Receiving<B, F> {
    fn is_done(&self) -> bool {
        self.promise.is_complete()
    }

    fn take(&self) -> Option<Result<R>> {
        Some(self.promise.take()?.and_then(&self.finish))
    }

    fn register(&self, waker: &Waker) -> bool {
        self.promise.register(waker)
    }

    fn cancel(&self) -> bool {
        let cancelled = self.cancel_posted();
        if cancelled {
            let engine = &self.channel.engine;
            let error = Error::new(Class::Cancelled, self.operation, "the receive was taken back");
            self.promise.complete(engine, Err(error.at_rank(engine.rank)));
            engine.wake();
        }
        cancelled
    }

    fn leave(&self) {
        if !self.is_done() {
            self.cancel_posted();
        }
    }

    fn what(&self) -> Awaits {
        if let Some(message) = self.coming.get() {
            return awaits_coming(&self.channel, *message);
        }
        let (world, (source, tag)) = (self.pattern.source, self.from);
        Awaits { goes_on: world.is_none(), ..awaited(world, &self.channel, source, tag) }
    }
}

/// Starts to receive a message of at most `max` elements.
fn irecv<T: Element>(
    comm: &Communicator,
    operation: &'static str,
    from: (Source, Tag),
    max: usize,
) -> Request<Received<T>> {
    start_receive(comm, operation, from, max, |(data, status): Matched<Vec<T>>| Ok((data?, status)))
}

/// The same to any buffer; `finish` makes the result of it, and of what the message says of itself.
pub(super) fn start_receive<B: Buffer, R: Send + 'static>(
    comm: &Communicator,
    operation: &'static str,
    from: (Source, Tag),
    room: B::Room,
    finish: impl Fn(Matched<B>) -> Result<R> + Send + Sync + 'static,
) -> Request<R> {
    let channel = comm.channel();
    let pattern = match pattern(channel, operation, from.0, from.1) {
        Ok(Some(pattern)) => pattern,
        Ok(None) => {
            let nothing = finish((Ok(B::empty()), Status::NULL));
            return Request::done(comm.member(), operation, nothing);
        }
        Err(error) => return Request::done(comm.member(), operation, Err(error)),
    };
    let receiving = Arc::new(Receiving {
        channel: channel.clone(),
        operation,
        pattern,
        from,
        room,
        number: AtomicU64::new(0),
        promise: Promise::default(),
        coming: OnceLock::new(),
        finish,
    });
    if let Some(number) = channel.engine.post_receive(pattern, receiving.clone()) {
        receiving.number.store(number, Ordering::Release);
    }
    Request::shared(comm.member(), operation, receiving)
}

impl Communicator {
    /// Receives a message of any length (`MPI_Recv`, MPI-4.1 §3.2.4) from a rank or [`crate::ANY_SOURCE`],
    /// with a tag or [`crate::ANY_TAG`]. From the null rank: no elements, at once.
    ///
    /// # Errors
    /// `source` or `tag` is wrong; the message is not of whole elements, or there is no memory for it: then
    /// it is lost; its bytes cannot be had; a peer is gone; the deadline passes.
    pub fn recv<T: Element>(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Received<T>> {
        self.matched("recv", source.into(), tag.into())?.recv_as("recv")
    }

    /// Receives to a buffer (`MPI_Recv`, §3.2.4). The message may be shorter; [`Status::count`] says how long
    /// it is.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; of class [`Class::Truncate`] if the message is longer than the buffer: then
    /// it is lost.
    pub fn recv_into<T: Element>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
        buffer: &mut [T],
    ) -> Result<Status> {
        let (stored, status) = self.receive_into("recv_into", (source.into(), tag.into()), buffer)?;
        stored.map(|()| status)
    }

    /// Starts to receive a message of at most `max` elements (`MPI_Irecv`, §3.7.2). [`Request::cancel`], or dropping the
    /// request, cancels it if no message has matched it yet.
    ///
    /// ```
    /// transom::local(1, |job| {
    ///     let received = job.irecv::<u64>(0, transom::ANY_TAG, 10);
    ///     job.send(0, 3, &[1u64, 2])?;
    ///     let (data, status) = received.wait()?; // or: received.await
    ///     assert_eq!((data, status.tag), (vec![1, 2], 3));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn irecv<T: Element>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
        max: usize,
    ) -> Request<Received<T>> {
        irecv(self, "irecv", (source.into(), tag.into()), max)
    }

    /// Sends `data` and receives another message at the same time (`MPI_Sendrecv`, §3.10): no ring of ranks
    /// that do so waits for ever.
    ///
    /// # Errors
    /// As [`Communicator::send`] and [`Communicator::recv`].
    pub fn sendrecv<T: Element, U: Element>(
        &self,
        dest: usize,
        send_tag: i32,
        data: &[T],
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Received<U>> {
        const NAME: &str = "sendrecv";
        let from = (source.into(), tag.into());
        pattern(self.channel(), NAME, from.0, from.1)?;
        // The agent receives while this call sends.
        let received = irecv(self, NAME, from, usize::MAX);
        send(self, NAME, (dest, send_tag), data.as_bytes(), Mode::Standard)?;
        received.wait()
    }
}

impl Communicator {
    /// Waits for a message, and takes it from the queue (a matched probe).
    pub(super) fn matched(&self, operation: &'static str, source: Source, tag: Tag) -> Result<Message> {
        match pattern(self.channel(), operation, source, tag)? {
            Some(pattern) => Ok(Message::new(self, self.await_match(operation, pattern, (source, tag))?)),
            None => Ok(Message::null(self)),
        }
    }

    fn await_match(
        &self,
        operation: &'static str,
        pattern: Pattern,
        (source, tag): (Source, Tag),
    ) -> Result<Unexpected> {
        let channel = self.channel();
        let engine = &channel.engine;
        let what = || awaited(pattern.source, channel, source, tag);
        engine.wait_until(operation, &what, None, || engine.two_sided.take(pattern).map(Ok))
    }

    /// Receives a message that has come, or comes soon, whole and at once; none, and nothing is done, if it does not, or anything is wrong.
    #[inline]
    pub(super) fn receive_now(&self, source: Source, tag: Tag, buffer: &mut [u8]) -> Option<Status> {
        let channel = self.channel();
        let pattern = pattern(channel, "recv", source, tag).ok()??;
        let engine = &channel.engine;
        let (envelope, bytes) = if engine.two_sided.has_any() {
            engine.two_sided.take_to(pattern, buffer)?
        } else {
            let direct = Direct::new(pattern, buffer);
            let takes = |header: &Header, kind, payload: Payload<'_>| {
                kind == Kind::Eager && direct.takes(engine, header, kind, payload)
            };
            engine.wait_shortly(|| 1, takes, || engine.two_sided.has_any(), || direct.take())?
        };
        Some(match source {
            Source::Rank(source) => Status { source, tag: envelope.tag, bytes },
            Source::Any => Status::of(channel, envelope, bytes),
        })
    }

    /// Waits for a message, and receives it to a buffer. Errors of the message itself are in the result, beside what it says of
    /// itself.
    pub(super) fn receive_into<T: Element>(
        &self,
        operation: &'static str,
        (source, tag): (Source, Tag),
        buffer: &mut [T],
    ) -> Result<Matched<()>> {
        let channel = self.channel();
        let Some(pattern) = pattern(channel, operation, source, tag)? else {
            return Ok((Ok(()), Status::NULL));
        };
        let (engine, what) = (&channel.engine, || awaited(pattern.source, channel, source, tag));
        let direct = Direct::new(pattern, buffer.as_mut_bytes());
        let come = || match direct.take() {
            Some(taken) => Some(Ok(Err(taken))),
            None => engine.two_sided.take(pattern).map(|arrived| Ok(Ok(arrived))),
        };
        let takes = |header: &Header, kind, payload: Payload<'_>| direct.takes(engine, header, kind, payload);
        let waited = engine.wait_taking(operation, &what, takes, come);
        // Even if the time is over, or the job, what has been taken is not lost.
        let arrived = waited.or_else(|error| direct.take().map(Err).ok_or(error))?;
        Ok(match arrived {
            Ok(arrived) => {
                let status = Status::of(channel, arrived.envelope, arrived.bytes());
                (store(engine, operation, arrived, buffer), status)
            }
            Err((envelope, bytes)) => {
                if let Some(parts) = direct.parts() {
                    parts.receive(engine, operation, &mut buffer.as_mut_bytes()[..bytes])?;
                }
                let whole = check_capacity::<T>(engine, operation, bytes, buffer.len());
                (whole.map(drop), Status::of(channel, envelope, bytes))
            }
        })
    }
}
