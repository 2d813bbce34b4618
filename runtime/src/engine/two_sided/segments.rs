//! Long messages in segments, where the transport has no get.

use zerocopy::IntoBytes;

use super::{Advance, OnDelivered, Transfer};
use crate::engine::Engine;
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::{Element, Result};

/// Segments that one poll sends.
const SEGMENTS_PER_POLL: usize = 32;

/// A message that arrives in segments.
pub(super) struct SegmentedReceive {
    peer: usize,
    buffer: Box<dyn Buffer>,
    left: usize,
}

trait Buffer: Send {
    /// Where a segment belongs.
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]>;
    /// All segments have arrived.
    fn finish(self: Box<Self>, engine: &Engine);
}

struct VecBuffer<T> {
    vec: Vec<T>,
    then: OnDelivered<T>,
}

impl<T: Element> Buffer for VecBuffer<T> {
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]> {
        self.vec.as_mut_bytes().get_mut(start..start.checked_add(len)?)
    }

    fn finish(self: Box<Self>, engine: &Engine) {
        (self.then)(engine, Ok(self.vec));
    }
}

/// Asks the sender of number `number` for its message.
pub(super) fn request_segments<T: Element>(
    engine: &Engine,
    peer: usize,
    number: Option<u64>,
    vec: Vec<T>,
    then: OnDelivered<T>,
) {
    let left = size_of_val(&vec[..]);
    if left == 0 {
        engine.acknowledge(peer, number, true);
        return then(engine, Ok(vec));
    }
    let own = engine.two_sided.number();
    let buffer = Box::new(VecBuffer { vec, then });
    engine.two_sided.segmented.lock().insert(own, SegmentedReceive { peer, buffer, left });
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
    bytes: &[u8],
) -> Option<()> {
    let mut all = engine.two_sided.segmented.lock();
    let segmented =
        all.get_mut(&number).filter(|segmented| segmented.peer == peer && bytes.len() <= segmented.left)?;
    segmented.buffer.part(usize::try_from(start).ok()?, bytes.len())?.copy_from_slice(bytes);
    segmented.left -= bytes.len();
    if segmented.left == 0 {
        let segmented = all.remove(&number)?;
        drop(all);
        segmented.buffer.finish(engine);
    }
    Some(())
}

/// The callback when all of a message is sent.
pub(crate) type OnSent<T> = Box<dyn FnOnce(&Engine, Result<Vec<T>>) + Send>;

/// A send in segments.
pub(crate) struct SegmentedSend<T> {
    pub operation: &'static str,
    pub peer: usize,
    /// The receiver's number.
    pub number: u64,
    pub vec: Vec<T>,
    pub at: usize,
    pub then: OnSent<T>,
}

impl<T: Element> Transfer for SegmentedSend<T> {
    fn advance(mut self: Box<Self>, engine: &Engine) -> Advance {
        let Self { operation, peer, number, .. } = *self;
        let room = engine.routes.route(peer).capabilities.max_message - HEADER_BYTES;
        let mut header = engine.header(Kind::Segment);
        header.value = number;
        for _ in 0..SEGMENTS_PER_POLL {
            let bytes = self.vec.as_bytes();
            let segment = &bytes[self.at..bytes.len().min(self.at + room)];
            if segment.is_empty() {
                (self.then)(engine, Ok(self.vec));
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
