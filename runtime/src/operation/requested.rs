//! Operations with a request of their own, which own their buffers until they are complete (MPI-4.1 §12.3.5).

use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::{Basic, TransportError};
use zerocopy::IntoBytes;

use super::atomic::{header, room};
use super::later::{Later, Sink};
use super::transfer::{Place, get, over, put};
use super::{Accumulate, get_accumulate};
use crate::engine::{Countdown, Engine, Promise};
use crate::memory::ExposedVec;
use crate::protocol::wire::Kind;
use crate::window::Core;
use crate::{Class, Element, Error, Result};

/// Names an error of an operation after the call that started it has returned.
pub(super) fn namer(
    core: &Core,
    operation: &'static str,
    target: usize,
) -> impl Fn(&TransportError) -> Error + Send + use<> {
    let (rank, window) = (core.member.engine.rank, core.number);
    move |error| Error::transport(operation, error).at_rank(rank).in_window(window).with_target(target)
}

/// Counts the parts of an operation on `vector`; the promise gives the vector back after the last.
fn counted<T: Element>(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    vector: Arc<ExposedVec<T>>,
) -> (Arc<Promise<Vec<T>>>, Arc<Countdown>) {
    let promise = Promise::new();
    let (kept, named) = (promise.clone(), namer(core, operation, place.target));
    let then = move |engine: &Engine, error: Option<TransportError>| {
        let result = match (error, Arc::try_unwrap(vector)) {
            (None, Ok(vector)) => Ok(vector.take()),
            (Some(error), _) => Err(named(&error)),
            (None, Err(_)) => Err(Error::new(Class::Other, operation, "the buffer is still in use")),
        };
        kept.keep(engine, result);
    };
    (promise, Countdown::new(1, Some(Box::new(then))))
}

/// Starts a put of all of `data`, which comes back when it may be reused.
pub(crate) fn rput<T: Element>(core: &Core, place: &Place<'_>, data: Vec<T>) -> Result<Arc<Promise<Vec<T>>>> {
    let engine = &core.member.engine;
    let vector = Arc::new(ExposedVec::new(data).0);
    let origin = vector.origin();
    let (promise, count) = counted(core, "rput", place, vector);
    let put = put(core, place, &origin, Some(&count));
    // The last to hold the vector besides the operation.
    drop(origin);
    over(engine, &count);
    put.map(|()| promise)
}

/// Starts a get to `data`.
pub(crate) fn rget<T: Element>(core: &Core, place: &Place<'_>, data: Vec<T>) -> Result<Arc<Promise<Vec<T>>>> {
    let engine = &core.member.engine;
    let vector = Arc::new(ExposedVec::new(data).0);
    let mut result = vector.result();
    let (promise, count) = counted(core, "rget", place, vector);
    let got = get(core, place, &mut result, Some(&count));
    drop(result);
    over(engine, &count);
    got.map(|()| promise)
}

/// Starts an accumulate that fetches what was there.
pub(crate) fn rget_accumulate<T: Element + Basic>(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    what: Accumulate<'_>,
) -> Result<Arc<Promise<Vec<T>>>> {
    let engine = &core.member.engine;
    let promise = Promise::new();
    let mut old = vec![T::new_zeroed(); what.operands.len() / size_of::<T>()];
    if place.remote.direct.is_some() || core.words(place, what.ty, 0)?.is_some() {
        get_accumulate(core, place, what, old.as_mut_bytes())?;
        promise.keep(engine, Ok(old));
        return Ok(promise);
    }
    let (kept, stream) = (promise.clone(), Arc::new(Mutex::new(vec![0; what.operands.len()])));
    let (named, results) = (namer(core, operation, place.target), stream.clone());
    let then = move |engine: &Engine, error: Option<TransportError>| {
        old.as_mut_bytes().copy_from_slice(&results.lock());
        kept.keep(engine, error.map_or(Ok(old), |error| Err(named(&error))));
    };
    let later = Later::new(Countdown::new(1, Some(Box::new(then))), Sink::Stream(stream));
    let started = fetch_accumulate(core, operation, place, what, &later);
    over(engine, &later.count);
    started.map(|()| promise)
}

/// Starts an accumulate by the target's agent, which fetches what was there.
pub(crate) fn fetch_accumulate(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    what: Accumulate<'_>,
    later: &Later,
) -> Result<()> {
    core.took_agent(place, what.ty.size(), what.operands.len());
    let room = room(core, place.peer, what.ty);
    what.operands.chunks(room).enumerate().try_for_each(|(i, part)| {
        let (start, len) = (i * room, part.len());
        let header = header(core, place, Kind::GetAccumulate, what.op, what.ty, start);
        later.request(core, operation, place, header, part, (vec![(start, len)], len))
    })
}
