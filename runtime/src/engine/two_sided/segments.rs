//! Long messages in segments, where the transport has no get.

use transom_transport::Payload;

use super::{Advance, Buffer, OnDelivered, Transfer};
use crate::Result;
use crate::engine::Engine;
use crate::protocol::wire::{HEADER_BYTES, Kind};

/// Segments that one poll sends.
const SEGMENTS_PER_POLL: usize = 32;

/// A message that arrives in segments.
pub(super) struct SegmentedReceive {
    peer: usize,
    place: Box<dyn Place>,
    left: usize,
}

/// Where the bytes of a message go.
pub(super) trait Place: Send {
    /// Where a segment belongs.
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]>;
    /// All segments have arrived.
    fn finish(self: Box<Self>, engine: &Engine);
}

/// A buffer, and what is done with it when it is filled.
pub(super) struct Arriving<B> {
    pub buffer: B,
    pub then: OnDelivered<B>,
}

impl<B: Buffer> Place for Arriving<B> {
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]> {
        self.buffer.bytes_mut().get_mut(start..start.checked_add(len)?)
    }

    fn finish(self: Box<Self>, engine: &Engine) {
        (self.then)(engine, Ok(self.buffer));
    }
}

/// Asks the sender of number `number` for its message.
pub(super) fn request_segments<B: Buffer>(
    engine: &Engine,
    peer: usize,
    number: Option<u64>,
    buffer: B,
    then: OnDelivered<B>,
) {
    let left = buffer.bytes().len();
    if left == 0 {
        engine.acknowledge(peer, number, true);
        return then(engine, Ok(buffer));
    }
    let own = engine.two_sided.number();
    let place = Box::new(Arriving { buffer, then });
    engine.two_sided.segmented.lock().insert(own, SegmentedReceive { peer, place, left });
    let mut header = engine.header(Kind::ClearToSend);
    header.value = number.unwrap_or_default();
    header.compare = own;
    engine.defer_send(peer, &header, &[]);
}

/// A segment has arrived. `None` if it is malformed.
pub(super) fn store_segment(
    engine: &Engine,
    peer: usize,
    number: u64,
    start: u64,
    bytes: Payload<'_>,
) -> Option<()> {
    let mut all = engine.two_sided.segmented.lock();
    let segmented =
        all.get_mut(&number).filter(|segmented| segmented.peer == peer && bytes.len() <= segmented.left)?;
    bytes.copy_to(segmented.place.part(usize::try_from(start).ok()?, bytes.len())?);
    segmented.left -= bytes.len();
    if segmented.left == 0 {
        let segmented = all.remove(&number)?;
        drop(all);
        segmented.place.finish(engine);
    }
    Some(())
}

/// The callback when all of a message is sent.
pub(crate) type OnSent<B> = Box<dyn FnOnce(&Engine, Result<B>) + Send>;

/// A send in segments.
pub(crate) struct SegmentedSend<B> {
    pub operation: &'static str,
    pub peer: usize,
    /// The receiver's number.
    pub number: u64,
    pub buffer: B,
    pub at: usize,
    pub then: OnSent<B>,
}

impl<B: Buffer> Transfer for SegmentedSend<B> {
    fn advance(mut self: Box<Self>, engine: &Engine) -> Advance {
        let Self { operation, peer, number, .. } = *self;
        let room = engine.routes.route(peer).capabilities.max_message - HEADER_BYTES;
        let mut header = engine.header(Kind::Segment);
        header.value = number;
        for _ in 0..SEGMENTS_PER_POLL {
            let bytes = self.buffer.bytes();
            let segment = &bytes[self.at..bytes.len().min(self.at + room)];
            if segment.is_empty() {
                (self.then)(engine, Ok(self.buffer));
                return Advance::Done;
            }
            header.offset = self.at as u64;
            match engine.try_send(operation, peer, &header, segment) {
                None => return Advance::Blocked(self),
                Some(Ok(())) => self.at += segment.len(),
                Some(Err(error)) => {
                    (self.then)(engine, Err(error));
                    return Advance::Done;
                }
            }
        }
        Advance::Progressed(self)
    }
}
