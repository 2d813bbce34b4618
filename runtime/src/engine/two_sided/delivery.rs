//! Delivery of a matched message to a vector, without blocking: an eager message is copied, an announced one is fetched by
//! a get (rendezvous), or requested in segments.

use std::sync::Arc;

use transom_transport::{Posted, RegionKey, Remote, TransportError, TransportResult};
use zerocopy::IntoBytes;

use super::segments;
use super::{Advance, Body, Incoming, Transfer};
use crate::engine::{Countdown, Engine, Pending};
use crate::memory::{ExposedVec, LocalBuffer};
use crate::{Class, Element, Error, Result};

/// What is done with a received message.
pub(crate) type OnDelivered<T> = Box<dyn FnOnce(&Engine, Result<Vec<T>>) + Send>;

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

/// Delivers a message of at most `most` elements to a vector.
pub(crate) fn deliver<T: Element>(
    engine: &Engine,
    operation: &'static str,
    arrived: Incoming,
    most: usize,
    then: OnDelivered<T>,
) {
    let (from, number) = (arrived.envelope.source, arrived.number);
    let room = check_capacity::<T>(engine, operation, arrived.bytes(), most)
        .and_then(|count| zeroed::<T>(engine, operation, count));
    match (room, arrived.body) {
        (Ok(mut vec), Body::Eager(data)) => {
            vec.as_mut_bytes().copy_from_slice(&data);
            engine.acknowledge(from, number, true);
            then(engine, Ok(vec));
        }
        (Ok(vec), Body::Rendezvous { key, bytes }) if has_region(engine, from, &key) => {
            match source(engine, from, key, bytes) {
                Ok(remote) => engine.start_transfer(fetch(operation, remote, vec, number, then)),
                Err(error) => {
                    engine.acknowledge(from, number, false);
                    then(engine, Err(failed(engine, operation, &error)));
                }
            }
        }
        (Ok(vec), Body::Rendezvous { .. }) => segments::request_segments(engine, from, number, vec, then),
        (Err(error), _) => {
            engine.acknowledge(from, number, true);
            then(engine, Err(error));
        }
    }
}

/// Whether an announced message can be fetched by the transport's get.
pub(super) fn has_region(engine: &Engine, from: usize, key: &[u8]) -> bool {
    !key.is_empty() && engine.routes.route(from).capabilities.rma
}

/// A get of a whole message under way.
struct Fetch<T> {
    remote: Remote,
    vec: Arc<ExposedVec<T>>,
    bytes: usize,
    at: usize,
    count: Arc<Countdown>,
}

fn fetch<T: Element>(
    operation: &'static str,
    remote: Remote,
    vec: Vec<T>,
    number: Option<u64>,
    then: OnDelivered<T>,
) -> Box<Fetch<T>> {
    let (peer, bytes) = (remote.peer, size_of_val(&vec[..]));
    let vec = Arc::new(ExposedVec::new(vec).0);
    let filled = vec.clone();
    let delivered = move |engine: &Engine, error: Option<TransportError>| {
        engine.acknowledge(peer, number, error.is_none());
        let result = match (error, Arc::try_unwrap(filled)) {
            (None, Ok(vec)) => Ok(vec.take()),
            (Some(error), _) => Err(failed(engine, operation, &error)),
            (None, Err(_)) => Err(Error::new(Class::Other, operation, "the buffer is still in use")),
        };
        then(engine, result);
    };
    Box::new(Fetch { remote, vec, bytes, at: 0, count: Countdown::new(1, Some(Box::new(delivered))) })
}

impl<T: Element> Transfer for Fetch<T> {
    fn advance(mut self: Box<Self>, engine: &Engine) -> Advance {
        let mut error = None;
        while self.at < self.bytes && error.is_none() {
            match self.post_get(engine) {
                Ok(Posted::Pending) => {}
                Ok(Posted::Complete) if self.at < self.bytes => return Advance::Progressed(self),
                Ok(Posted::Complete) => {}
                Ok(Posted::Again) => return Advance::Blocked(self),
                Err(refused) => error = Some(refused),
            }
        }
        // From here on the pending operations and the callback own the vector.
        let Self { count, vec, .. } = *self;
        drop(vec);
        if let Some(delivered) = count.count_down(error) {
            delivered.run(engine);
        }
        Advance::Done
    }
}

impl<T: Element> Fetch<T> {
    /// Posts one get.
    fn post_get(&mut self, engine: &Engine) -> TransportResult<Posted> {
        let transport = engine.routes.to(self.remote.peer);
        let len = MAX_GET.min(transport.capabilities().max_transfer).min(self.bytes - self.at);
        let result = self.vec.result();
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
