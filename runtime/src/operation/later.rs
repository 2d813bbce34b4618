//! Operations with a request on memory that a program in another language keeps (`Foreign`): whoever completes the last part
//! fills it, so that a flush finds it filled, whether the request was awaited or not.

use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::TransportError;

use super::requested::namer;
use super::transfer::{Place, over};
use crate::Result;
use crate::engine::{Countdown, Engine, OnReply, Promise};
use crate::memory::Foreign;
use crate::protocol::wire::Header;
use crate::window::Core;

/// Where the bytes of replies go.
#[derive(Debug, Clone)]
pub(crate) enum Sink {
    /// To the program's memory.
    Memory(Foreign),
    /// To a stream, of which more is made when it is whole.
    Stream(Arc<Mutex<Vec<u8>>>),
}

impl Sink {
    fn write(&self, start: usize, data: &[u8]) {
        match self {
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
pub(crate) struct Later {
    pub count: Arc<Countdown>,
    sink: Sink,
}

impl Later {
    /// Of parts that `count` counts.
    pub fn new(count: Arc<Countdown>, sink: Sink) -> Self {
        Self { count, sink }
    }

    /// Asks for some bytes; the pieces of the reply are wanted at these places (start, length), in this order.
    pub(super) fn request(
        &self,
        core: &Core,
        operation: &'static str,
        place: &Place<'_>,
        header: Header,
        payload: &[u8],
        (wanted, bytes): (Vec<(usize, usize)>, usize),
    ) -> Result<()> {
        let engine = &core.member.engine;
        let (count, sink) = (self.count.clone(), self.sink.clone());
        let (state, target) = (place.peer.state.share(), place.target);
        let counting = state.clone();
        count.add(1);
        state.begin();
        let then: OnReply = Box::new(move |engine, request| {
            let data = request.take_data();
            let there = request.outcome() == Some(true) && data.len() == bytes;
            let mut at = 0;
            for (start, len) in wanted.into_iter().filter(|_| there) {
                sink.write(start, &data[at..at + len]);
                at += len;
            }
            let refused =
                TransportError::Peer { peer: target, reason: "the target refused the request".into() };
            if let Some(over) = count.count_down((!there).then_some(refused)) {
                over.act(engine);
            }
            // Last: a flush that finds nothing under way has completed the requests, too.
            state.end();
        });
        let sent = engine.request_then(operation, place.peer.world, header, payload, Some(then));
        sent.map(drop).inspect_err(|_| {
            // The reply that would have counted will not come.
            counting.end();
            over(engine, &self.count);
        })
    }
}

/// Starts an operation, whose parts are counted; after the last comes `finish`. The promise is kept then.
pub(crate) fn later(
    core: &Core,
    (operation, target): (&'static str, usize),
    sink: Sink,
    start: impl FnOnce(&Later) -> Result<()>,
    finish: impl FnOnce() -> Result<()> + Send + 'static,
) -> Result<Arc<Promise<()>>> {
    let promise = Promise::new();
    let (kept, named) = (promise.clone(), namer(core, operation, target));
    let then = move |engine: &Engine, error: Option<TransportError>| {
        kept.keep(engine, error.map_or_else(finish, |error| Err(named(&error))));
    };
    let later = Later::new(Countdown::new(1, Some(Box::new(then))), sink);
    let started = start(&later);
    over(&core.member.engine, &later.count);
    started.map(|()| promise)
}
