//! Matched messages: taken from the queue, but not received yet (MPI-4.1 §3.8.2, §3.8.3).

use std::sync::Arc;
use std::task::Waker;

use zerocopy::IntoBytes;

use super::{Matched, Status};
use crate::comm::{Awaited, Channel};
use crate::engine::two_sided::{
    Body, Buffer, Unexpected, ask, awaits_bytes, awaits_coming, check_capacity, deliver, fetch_blocking,
};
use crate::engine::{Coming, Engine, Promise};
use crate::job::Member;
use crate::waits::Awaits;
use crate::{Communicator, Element, Request, Result};

/// A matched message, which no other call can receive (`MPI_Message`, MPI-4.1 §3.8.2): of [`Communicator::mprobe`].
///
/// If it is dropped, the message is lost, and its sender goes on as if it were received.
#[derive(Debug)]
#[must_use = "a message that is dropped is lost"]
pub struct Message {
    member: Arc<Member>,
    channel: Arc<Channel>,
    arrived: Option<Unexpected>,
    status: Status,
}

/// The receive of a matched message under way.
struct Matching<B> {
    promise: Arc<Promise<Matched<B>>>,
    coming: (Arc<Channel>, Coming),
}

impl<B: Buffer> Awaited<Matched<B>> for Matching<B> {
    fn is_done(&self) -> bool {
        self.promise.is_complete()
    }

    fn take(&self) -> Option<Result<Matched<B>>> {
        self.promise.take()
    }

    fn register(&self, waker: &Waker) -> bool {
        self.promise.register(waker)
    }

    fn what(&self) -> Awaits {
        awaits_coming(&self.coming.0, self.coming.1)
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(arrived) = self.arrived.take() {
            self.channel.engine.acknowledge(arrived.envelope.source, arrived.number, true);
        }
    }
}

impl Message {
    pub(super) fn new(comm: &Communicator, arrived: Unexpected) -> Self {
        let (member, channel) = (comm.member().clone(), comm.channel().clone());
        let status = Status::of(&channel, arrived.envelope, arrived.bytes());
        Self { member, channel, arrived: Some(arrived), status }
    }

    /// From the null rank.
    pub(super) fn null(comm: &Communicator) -> Self {
        let (member, channel) = (comm.member().clone(), comm.channel().clone());
        Self { member, channel, arrived: None, status: Status::NULL }
    }

    /// Sender, tag and length.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Receives it (`MPI_Mrecv`, §3.8.3).
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub fn recv<T: Element>(self) -> Result<(Vec<T>, Status)> {
        self.recv_as("mrecv")
    }

    /// Receives it to a buffer.
    ///
    /// # Errors
    /// As [`Communicator::recv_into`].
    pub fn recv_into<T: Element>(self, buffer: &mut [T]) -> Result<Status> {
        self.recv_into_as("mrecv_into", buffer)
    }

    /// Starts to receive it, if it has at most `max` elements (`MPI_Imrecv`, §3.8.3).
    pub fn irecv<T: Element>(self, max: usize) -> Request<(Vec<T>, Status)> {
        self.start_receive(max).map(|(data, status): Matched<Vec<T>>| Ok((data?, status)))
    }

    /// The same, whose result says which message it was if that is lost.
    pub(super) fn start_receive<B: Buffer>(mut self, room: B::Room) -> Request<Matched<B>> {
        const NAME: &str = "imrecv";
        let status = self.status;
        let Some(arrived) = self.arrived.take() else {
            return Request::done(&self.member, NAME, Ok((Ok(B::empty()), status)));
        };
        let promise = Promise::new();
        let completed = promise.clone();
        let coming = (self.channel.clone(), arrived.coming(&self.channel.engine));
        let then = move |engine: &Engine, result| completed.complete(engine, Ok((result, status)));
        deliver(&self.channel.engine, NAME, arrived, room, then);
        Request::new(&self.member, NAME, Matching { promise, coming })
    }

    pub(super) fn recv_as<T: Element>(mut self, operation: &'static str) -> Result<(Vec<T>, Status)> {
        let status = self.status;
        let Some(arrived) = self.arrived.take() else { return Ok((Vec::new(), status)) };
        Ok((deliver_blocking(&self.channel.engine, operation, arrived, usize::MAX)?, status))
    }

    pub(super) fn recv_into_as<T: Element>(
        mut self,
        operation: &'static str,
        buffer: &mut [T],
    ) -> Result<Status> {
        let status = self.status;
        if let Some(arrived) = self.arrived.take() {
            store(&self.channel.engine, operation, arrived, buffer)?;
        }
        Ok(status)
    }
}

/// Delivers a message to a buffer, and waits for that.
pub(super) fn store<T: Element>(
    engine: &Engine,
    operation: &'static str,
    arrived: Unexpected,
    buffer: &mut [T],
) -> Result<()> {
    let (source, number) = (arrived.envelope.source, arrived.number);
    let room = check_capacity::<T>(engine, operation, arrived.bytes(), buffer.len());
    // A message that has no room is lost, and its sender goes on.
    let count = room.inspect_err(|_| engine.acknowledge(source, number, true))?;
    let bytes = buffer[..count].as_mut_bytes();
    if let Body::Eager(data) = &arrived.body {
        data.payload().copy_to(bytes);
        engine.acknowledge(source, number, true);
    } else if let Body::Parts(parts) = &arrived.body {
        parts.receive(engine, operation, bytes)?;
    } else if arrived.can_be_fetched(engine) {
        fetch_blocking(engine, operation, arrived, bytes)?;
    } else {
        ask(engine, operation, &arrived, bytes)?;
    }
    Ok(())
}

/// Delivers a message to a vector, and waits for that.
fn deliver_blocking<T: Element>(
    engine: &Engine,
    operation: &'static str,
    arrived: Unexpected,
    most: usize,
) -> Result<Vec<T>> {
    let from = arrived.envelope.source;
    let promise = Promise::new();
    let completed = promise.clone();
    let then = move |engine: &Engine, result| completed.complete(engine, result);
    deliver(engine, operation, arrived, most, then);
    engine.wait_until(operation, &|| awaits_bytes(from), None, || promise.take())
}
