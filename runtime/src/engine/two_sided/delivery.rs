//! Delivery of a matched message to a buffer, without blocking: an eager message is copied, an announced one is fetched by
//! a get (rendezvous), or requested in segments.

use std::sync::Arc;

use transom_transport::{Posted, RegionKey, Remote, TransportError, TransportResult};

use super::joint::{Copied, Joint};
use super::segments;
use super::{Advance, Body, Buffer, Incoming, Transfer};
use crate::engine::{Countdown, Engine, Pending};
use crate::memory::LocalBuffer;
use crate::{Class, Element, Error, RawBuffer, Result};

/// What is done with a received message.
pub(crate) type OnDelivered<B> = Box<dyn FnOnce(&Engine, Result<B>) + Send>;

/// Most bytes of one get: a transport may copy them in the call, and the agent has other work, too.
pub(super) const MAX_GET: usize = 1 << 20;

/// How many elements a message of `bytes` bytes has, if that is no more than `most`.
pub(crate) fn check_capacity<T>(
    engine: &Engine,
    operation: &'static str,
    bytes: usize,
    most: usize,
) -> Result<usize> {
    let size = size_of::<T>().max(1);
    let error = |class, message: String| Err(Error::new(class, operation, message).at_rank(engine.rank));
    if !bytes.is_multiple_of(size) {
        let message =
            format!("{bytes} bytes came, not whole elements of {size}: is it another type? They are lost");
        return error(Class::Type, message);
    }
    let count = bytes / size;
    if count > most {
        let message = format!(
            "the message has {count} elements, here is room for {most}: it is lost; give more room, or probe first"
        );
        return error(Class::Truncate, message);
    }
    Ok(count)
}

/// A vector of zeros, or the error that there is no memory for it.
pub(super) fn zeroed<T: Element>(engine: &Engine, operation: &'static str, count: usize) -> Result<Vec<T>> {
    T::new_vec_zeroed(count).map_err(|_| {
        let message = format!("no memory for a message of {count} elements: it is lost");
        Error::new(Class::NoMemory, operation, message).at_rank(engine.rank)
    })
}

/// The region that an announced message lies in.
pub(super) fn source(engine: &Engine, peer: usize, key: Vec<u8>, bytes: usize) -> TransportResult<Remote> {
    let remote = engine.routes.to(peer).attach(peer, &RegionKey(key))?;
    if remote.len < bytes {
        return Err(TransportError::Malformed { peer, what: "region of a message" });
    }
    Ok(remote)
}

/// The error of a transfer that failed.
pub(super) fn failed(engine: &Engine, operation: &'static str, error: &TransportError) -> Error {
    Error::transport(operation, error).at_rank(engine.rank)
}

/// Delivers a message, for which there is so much room.
pub(crate) fn deliver<B: Buffer>(
    engine: &Engine,
    operation: &'static str,
    arrived: Incoming<'_>,
    room: B::Room,
    then: impl FnOnce(&Engine, Result<B>) + Send + 'static,
) {
    let (from, number) = (arrived.envelope.source, arrived.number);
    match (B::place(engine, operation, arrived.bytes(), room), arrived.body) {
        (Ok(mut buffer), Body::Eager(data)) => {
            data.payload().copy_to(buffer.bytes_mut());
            engine.acknowledge(from, number, true);
            then(engine, Ok(buffer));
        }
        (Ok(buffer), Body::Parts(parts)) => parts.deliver(engine, buffer, Box::new(then)),
        (Ok(buffer), Body::Rendezvous { key, bytes }) if has_region(engine, from, &key) => {
            match source(engine, from, key, bytes) {
                Ok(remote) => {
                    engine.start_transfer(fetch(engine, operation, remote, buffer, number, Box::new(then)));
                }
                Err(error) => {
                    engine.acknowledge(from, number, false);
                    then(engine, Err(failed(engine, operation, &error)));
                }
            }
        }
        (Ok(buffer), Body::Rendezvous { .. }) => {
            segments::request_segments(engine, from, number, buffer, Box::new(then));
        }
        (Err(error), _) => {
            engine.acknowledge(from, number, true);
            then(engine, Err(error));
        }
    }
}

/// Fetches the first bytes of a region that a rank shows, without blocking.
pub(crate) fn fetch_all(
    engine: &Engine,
    operation: &'static str,
    (from, key): (usize, Vec<u8>),
    bytes: usize,
    then: OnDelivered<Vec<u8>>,
) {
    let place = |engine: &Engine| zeroed(engine, operation, bytes);
    fetch_range(engine, operation, (from, key), (0, bytes), place, then);
}

/// Fetches bytes of a region that a rank shows, as many from `start` on as `buffer` has, without blocking.
pub(crate) fn fetch_to(
    engine: &Engine,
    operation: &'static str,
    (from, key): (usize, Vec<u8>),
    start: usize,
    buffer: RawBuffer,
    then: OnDelivered<RawBuffer>,
) {
    fetch_range(engine, operation, (from, key), (start, buffer.len()), |_| Ok(buffer), then);
}

/// The place is made when the region is known to have so many bytes.
fn fetch_range<B: Buffer>(
    engine: &Engine,
    operation: &'static str,
    (from, key): (usize, Vec<u8>),
    (start, bytes): (usize, usize),
    place: impl FnOnce(&Engine) -> Result<B>,
    then: OnDelivered<B>,
) {
    let remote = source(engine, from, key, start.saturating_add(bytes))
        .and_then(|remote| remote.part(start, bytes))
        .map_err(|error| failed(engine, operation, &error));
    match remote.and_then(|remote| Ok((remote, place(engine)?))) {
        Ok((remote, buffer)) => engine.start_transfer(fetch(engine, operation, remote, buffer, None, then)),
        Err(error) => then(engine, Err(error)),
    }
}

/// Whether an announced message can be fetched by the transport's get.
pub(super) fn has_region(engine: &Engine, from: usize, key: &[u8]) -> bool {
    !key.is_empty() && engine.routes.route(from).capabilities.rma
}

fn gone(peer: usize) -> TransportError {
    TransportError::Peer { peer, reason: "it has ended while it sent a message".into() }
}

/// A get of a whole message under way.
struct Fetch<B: Buffer> {
    /// With the sender's help, if it may give some. Dropped before the buffer.
    joint: Option<Joint>,
    remote: Remote,
    buffer: Arc<B::Exposed>,
    bytes: usize,
    at: usize,
    count: Arc<Countdown>,
}

fn fetch<B: Buffer>(
    engine: &Engine,
    operation: &'static str,
    remote: Remote,
    buffer: B,
    number: Option<u64>,
    then: OnDelivered<B>,
) -> Box<Fetch<B>> {
    let (peer, bytes) = (remote.peer, buffer.bytes().len());
    let (buffer, shown) = buffer.expose();
    let joint = Joint::offer(engine, peer, number, &shown);
    let buffer = Arc::new(buffer);
    let filled = buffer.clone();
    let delivered = move |engine: &Engine, error: Option<TransportError>| {
        engine.acknowledge(peer, number, error.is_none());
        let result = match (error, Arc::try_unwrap(filled)) {
            (None, Ok(buffer)) => Ok(B::take(buffer)),
            (Some(error), _) => Err(failed(engine, operation, &error)),
            (None, Err(_)) => Err(Error::new(Class::Other, operation, "the buffer is still in use")),
        };
        then(engine, result);
    };
    Box::new(Fetch {
        joint,
        remote,
        buffer,
        bytes,
        at: 0,
        count: Countdown::new(1, Some(Box::new(delivered))),
    })
}

impl<B: Buffer> Transfer for Fetch<B> {
    fn advance(mut self: Box<Self>, engine: &Engine) -> Advance {
        let mut error = None;
        if let Some(joint) = &self.joint {
            match joint.get(engine.routes.to(self.remote.peer), &self.remote, &B::result(&self.buffer)) {
                Ok(Copied::Some) => return Advance::Progressed(self),
                Ok(Copied::Own) if engine.dead.has(self.remote.peer) => error = Some(gone(self.remote.peer)),
                Ok(Copied::Own) => return Advance::Blocked(self),
                Ok(Copied::All) => self.at = self.bytes,
                Ok(Copied::UpTo(end)) => self.at = end,
                Err(refused) => error = Some(refused),
            }
            self.joint = None;
        }
        while self.at < self.bytes && error.is_none() {
            match self.post_get(engine) {
                Ok(Posted::Pending) => {}
                Ok(Posted::Complete) if self.at < self.bytes => return Advance::Progressed(self),
                Ok(Posted::Complete) => {}
                Ok(Posted::Again) => return Advance::Blocked(self),
                Err(refused) => error = Some(refused),
            }
        }
        // From here on the pending operations and the callback own the buffer.
        let Self { count, buffer, .. } = *self;
        drop(buffer);
        if let Some(delivered) = count.count_down(error) {
            delivered.run(engine);
        }
        Advance::Done
    }
}

impl<B: Buffer> Fetch<B> {
    /// Posts one get.
    fn post_get(&mut self, engine: &Engine) -> TransportResult<Posted> {
        let transport = engine.routes.to(self.remote.peer);
        let len = MAX_GET.min(transport.capabilities().max_transfer).min(self.bytes - self.at);
        let result = B::result(&self.buffer);
        self.count.add(1);
        let (buffer, done) = (result.owner(), Some(self.count.clone()));
        let context =
            engine.pendings.begin(Pending { target: Arc::default(), buffer, done, pull: None, value: None });
        let posted = LocalBuffer::Result(&result).transfer(
            transport,
            (&self.remote, self.at),
            (self.at, len),
            context,
        );
        if !matches!(posted, Ok(Posted::Pending)) {
            engine.pendings.cancel(context);
            // Not the last: the fetch itself counts.
            let _ = self.count.count_down(None);
        }
        if matches!(posted, Ok(Posted::Pending | Posted::Complete)) {
            self.at += len;
        }
        posted
    }
}
