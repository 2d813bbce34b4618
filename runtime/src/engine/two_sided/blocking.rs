//! Blocking receives of long messages, straight into the caller's buffer; and blocking sends in segments.

use std::sync::Arc;

use transom_transport::{Posted, Region, Remote, Span};

use super::delivery::{MAX_GET, failed, has_region, source};
use super::joint::{Copied, Joint};
use super::{Body, Incoming, awaits_bytes};
use crate::Result;
use crate::engine::{Coming, Countdown, Engine, Pending, Route, TargetState, waiting};
use crate::memory::{self, LocalBuffer, ResultBuffer};
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::settings::Fault;
use crate::waits::Awaits;

impl Incoming<'_> {
    /// Whether [`fetch_blocking`] can get it.
    pub fn can_be_fetched(&self, engine: &Engine) -> bool {
        matches!(&self.body, Body::Rendezvous { key, .. } if has_region(engine, self.envelope.source, key))
    }

    /// How its bytes come to who has matched it.
    pub fn coming(&self, engine: &Engine) -> Coming {
        let announced = matches!(self.body, Body::Rendezvous { .. });
        Coming { from: self.envelope.source, in_segments: announced && !self.can_be_fetched(engine) }
    }
}

/// Fetches an announced message into `buffer`, which is of its length, and acknowledges it.
pub(crate) fn fetch_blocking(
    engine: &Engine,
    operation: &'static str,
    arrived: Incoming<'_>,
    buffer: &mut [u8],
) -> Result<()> {
    let from = arrived.envelope.source;
    let Body::Rendezvous { bytes, key } = arrived.body else { return Ok(()) };
    let fetched = source(engine, from, key, bytes)
        .map_err(|error| failed(engine, operation, &error))
        .and_then(|remote| get_jointly(engine, operation, arrived.number, &remote, buffer));
    engine.acknowledge(from, arrived.number, fetched.is_ok());
    fetched
}

/// Gets all of message `number`, with its sender's help if it can.
fn get_jointly(
    engine: &Engine,
    operation: &'static str,
    number: Option<u64>,
    remote: &Remote,
    buffer: &mut [u8],
) -> Result<()> {
    let shown = memory::expose(buffer);
    let joint = Joint::offer(engine, remote.peer, number, &shown);
    let result = ResultBuffer::borrowed(buffer);
    let Some(joint) = joint else { return get(engine, operation, remote, &result) };
    let transport = engine.routes.to(remote.peer);
    let what = || awaits_bytes(remote.peer);
    // Nothing tells a thread that sleeps when the sender has put its last part.
    let sleep = Some(waiting::SHORT_SLEEP);
    let copied = engine.wait_until(operation, &what, sleep, || match joint.get(transport, remote, &result) {
        Ok(Copied::Some | Copied::Own) => None,
        Ok(Copied::All) => Some(Ok(result.len())),
        Ok(Copied::UpTo(end)) => Some(Ok(end)),
        Err(error) => Some(Err(failed(engine, operation, &error))),
    });
    drop(joint);
    let copied = copied?;
    let rest =
        remote.part(copied, result.len() - copied).map_err(|error| failed(engine, operation, &error))?;
    get(engine, operation, &rest, &ResultBuffer::borrowed(&mut buffer[copied..]))
}

/// Gets what a rank shows at `start` of a region into `buffer`.
pub(crate) fn fetch_region(
    engine: &Engine,
    operation: &'static str,
    (from, key): (usize, Vec<u8>),
    start: usize,
    buffer: &mut [u8],
) -> Result<()> {
    let remote = source(engine, from, key, start.saturating_add(buffer.len()))
        .and_then(|remote| remote.part(start, buffer.len()))
        .map_err(|error| failed(engine, operation, &error))?;
    get(engine, operation, &remote, &ResultBuffer::borrowed(buffer))
}

/// The region of bytes that a rank is to get; none where the transport has no get, or registers no more.
pub(crate) fn register(engine: &Engine, to: usize, memory: &Span) -> Option<Box<dyn Region>> {
    let Route { transport, capabilities } = engine.routes.route(to);
    if !capabilities.rma || engine.settings.fault == Some(Fault::Register(engine.rank as u64)) {
        return None;
    }
    transport.register(memory).ok()
}

/// Gets all of a region. Nothing is under way any more when it returns.
fn get(engine: &Engine, operation: &'static str, remote: &Remote, result: &ResultBuffer<'_>) -> Result<()> {
    let (target, count) = (Arc::default(), Countdown::new(1, None));
    let posted = post(engine, operation, remote, result, (&target, &count));
    // The whole has no more parts than were posted.
    let _ = count.count_down(None);
    let what = || {
        Awaits::target(format!("the bytes of a message from rank {} of the job", remote.peer), remote.peer)
    };
    let awaited = engine.wait_until(operation, &what, None, || count.is_finished().then_some(Ok(())));
    if awaited.is_err() {
        // The buffer goes now.
        tracing::error!(rank = engine.rank, "a receive is abandoned: this rank's transports stop");
        engine.routes.transports().iter().for_each(|transport| transport.abandon());
    }
    posted.and(awaited)?;
    target.take_error().map_or(Ok(()), |error| Err(failed(engine, operation, &error)))
}

fn post(
    engine: &Engine,
    operation: &'static str,
    remote: &Remote,
    result: &ResultBuffer<'_>,
    (target, count): (&Arc<TargetState>, &Arc<Countdown>),
) -> Result<()> {
    let transport = engine.routes.to(remote.peer);
    let most = MAX_GET.min(transport.capabilities().max_transfer);
    let mut at = 0;
    while at < result.len() {
        let len = most.min(result.len() - at);
        count.add(1);
        let (target, done) = (target.clone(), Some(count.clone()));
        let pending = Pending { target, buffer: result.owner(), done, pull: None, value: None };
        let context = engine.pendings.begin(pending);
        let attempt =
            || match LocalBuffer::Result(result).transfer(transport, (remote, at), (at, len), context) {
                Ok(Posted::Again) => None,
                Ok(posted) => Some(Ok(posted)),
                Err(error) => Some(Err(failed(engine, operation, &error))),
            };
        let what =
            || Awaits::room(format!("room in the queue to rank {} of the job", remote.peer), remote.peer);
        let posted = match attempt() {
            Some(posted) => posted,
            None => engine.wait_until(operation, &what, Some(waiting::SHORT_SLEEP), attempt),
        };
        if !matches!(posted, Ok(Posted::Pending)) {
            engine.pendings.cancel(context);
            // Not the last: the whole counts, too.
            let _ = count.count_down(None);
        }
        posted?;
        at += len;
    }
    Ok(())
}

/// Sends a message in segments, for the receiver's number of it.
pub(crate) fn send_segments(
    engine: &Engine,
    operation: &'static str,
    (peer, number): (usize, u64),
    bytes: &[u8],
) -> Result<()> {
    let room = engine.routes.route(peer).capabilities.max_message - HEADER_BYTES;
    let mut header = engine.header(Kind::Segment);
    header.value = number;
    for (i, segment) in bytes.chunks(room).enumerate() {
        header.offset = (i * room) as u64;
        engine.send_before(operation, peer, &header, segment, (i + 1) * room < bytes.len())?;
    }
    Ok(())
}
