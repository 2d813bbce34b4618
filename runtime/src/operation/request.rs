//! Operations with a request of their own (MPI-4.1 §12.3.5): their parts are counted, and the last to end makes the result.

use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::TransportError;

use super::place::Place;
use super::transfer::finish_part;
use crate::engine::{Countdown, Engine, OnReply, Promise};
use crate::memory::RawBuffer;
use crate::protocol::wire::Header;
use crate::window::Core;
use crate::{Error, Result};

/// Where the bytes of replies go.
#[derive(Debug, Clone)]
pub(crate) enum ReplyBuffer {
    /// Nowhere: transfers bring all there is.
    Nowhere,
    /// To the program's memory.
    Memory(RawBuffer),
    /// To a stream, of which more is made when it is whole.
    Stream(Arc<Mutex<Vec<u8>>>),
}

impl ReplyBuffer {
    fn write(&self, start: usize, data: &[u8]) {
        match self {
            Self::Nowhere => {}
            Self::Memory(memory) => {
                if let Some(part) = memory.part(start, data.len()) {
                    part.bytes_mut().copy_from_slice(data);
                }
            }
            Self::Stream(stream) => {
                if let Some(to) = stream.lock().get_mut(start..start + data.len()) {
                    to.copy_from_slice(data);
                }
            }
        }
    }
}

/// An operation whose parts end after the call.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub count: Arc<Countdown>,
    reply_buffer: ReplyBuffer,
}

impl Deferred {
    /// Of one part so far, for a caller that waits at once.
    pub(super) fn reusable() -> Self {
        Self { count: Countdown::reusable(), reply_buffer: ReplyBuffer::Nowhere }
    }

    /// The caller has seen the completion.
    pub(super) fn give_back(self) {
        Countdown::give_back(self.count);
    }

    /// Whether there is a buffer for replies.
    pub(super) fn has_reply_buffer(&self) -> bool {
        !matches!(self.reply_buffer, ReplyBuffer::Nowhere)
    }

    /// Some bytes that were fetched.
    pub(super) fn write(&self, start: usize, data: &[u8]) {
        self.reply_buffer.write(start, data);
    }

    /// Asks for some bytes; the parts of the reply are stored at these offsets (start, length), in this order.
    pub(super) fn request(
        &self,
        core: &Core,
        place: &Place<'_>,
        header: Header,
        payload: &[u8],
        (wanted, bytes): (Vec<(usize, usize)>, usize),
    ) -> Result<()> {
        let engine = &core.member.engine;
        let (count, reply_buffer) = (self.count.clone(), self.reply_buffer.clone());
        let (state, target) = (place.peer.state.share(), place.target);
        let counting = state.clone();
        count.add(1);
        state.begin();
        let then: OnReply = Box::new(move |engine, request| {
            let data = request.take_data();
            let there = request.outcome() == Some(true) && data.len() == bytes;
            let mut at = 0;
            for (start, len) in wanted.into_iter().filter(|_| there) {
                reply_buffer.write(start, &data[at..at + len]);
                at += len;
            }
            let refused =
                TransportError::Peer { peer: target, reason: "the target refused the request".into() };
            if let Some(over) = count.count_down((!there).then_some(refused)) {
                over.run(engine);
            }
            // Last: a flush that finds nothing under way has completed the requests, too.
            state.end();
        });
        let sent = engine.request_then(place.operation, place.peer.world, header, payload, Some(then));
        sent.map(drop).inspect_err(|_| {
            // The reply that would have counted will not come.
            counting.end();
            finish_part(engine, &self.count);
        })
    }
}

/// Names an error of an operation after the call that started it has returned.
fn namer(
    core: &Core,
    operation: &'static str,
    target: usize,
) -> impl Fn(&TransportError) -> Error + Send + use<> {
    let (rank, window) = (core.member.engine.rank, core.number);
    move |error| Error::transport(operation, error).at_rank(rank).in_window(window).with_target(target)
}

/// Starts an operation, whose parts are counted; after the last comes `finish`, and the promise is kept with what it gives.
pub(crate) fn request<R: Send + 'static>(
    core: &Core,
    (operation, target): (&'static str, usize),
    reply_buffer: ReplyBuffer,
    start: impl FnOnce(&Deferred) -> Result<()>,
    finish: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<Arc<Promise<R>>> {
    let promise = Promise::new();
    let (kept, named) = (promise.clone(), namer(core, operation, target));
    let then = move |engine: &Engine, error: Option<TransportError>| {
        kept.complete(engine, error.map_or_else(finish, |error| Err(named(&error))));
    };
    let deferred = Deferred { count: Countdown::new(1, Some(Box::new(then))), reply_buffer };
    let started = start(&deferred);
    finish_part(&core.member.engine, &deferred.count);
    started.map(|()| promise)
}
