//! The agent's part of two-sided messages. It validates every number in what it receives.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use transom_transport::Payload;

use super::joint;
use super::parts::{self, Key, Parts};
use super::segments::store_segment;
use super::slots;
use super::{Answer, Body, Bytes, Incoming};
use crate::engine::Engine;
use crate::protocol::messages::{Envelope, Pattern};
use crate::protocol::wire::{self, Header, INLINE_BYTES, Kind};

/// Longest key of a region that is accepted.
pub(super) const MAX_KEY: usize = 256;

/// Handles one message. `None` if it is malformed.
pub(in crate::engine) fn handle(
    engine: &Engine,
    header: &Header,
    kind: Kind,
    payload: Payload<'_>,
) -> Option<()> {
    let peer = header.origin as usize;
    match kind {
        Kind::Eager => {
            let number = (header.op == 1).then_some(header.value);
            let inline = header.inline()?;
            let bytes = eager_bytes(header, &inline, payload);
            if number.is_none() && slots::takes(engine, &envelope(header)?, bytes) {
                return Some(());
            }
            arrived(engine, header, Body::Eager(Bytes::Arriving(bytes)), number)
        }
        Kind::RequestToSend => {
            let bytes = usize::try_from(header.count).ok()?;
            if payload.len() > MAX_KEY || isize::try_from(bytes).is_err() {
                return None;
            }
            let key = payload.with(<[u8]>::to_vec);
            arrived(engine, header, Body::Rendezvous { bytes, key }, Some(header.value))
        }
        Kind::ClearToSend => {
            let then = engine.two_sided.end_send(peer, header.value)?;
            then(engine, Answer::ClearToSend(header.compare));
            Some(())
        }
        Kind::Segment => store_segment(engine, peer, header.value, header.offset, payload).or_else(|| {
            let key = Key { peer, number: header.value, asked: true };
            parts::go_on(engine, key, header.offset, payload)
        }),
        Kind::Parts => parts::begin(engine, envelope(header)?, header.value, header.count, payload),
        Kind::Part => {
            let key = Key { peer, number: header.value, asked: false };
            parts::go_on(engine, key, header.offset, payload)
        }
        Kind::Join => joint::join(engine, header, payload),
        Kind::Done => {
            let then = engine.two_sided.end_send(peer, header.value)?;
            then(engine, Answer::Done(header.status == wire::OK));
            Some(())
        }
        Kind::Recall => {
            if engine.two_sided.forget(peer, header.value) {
                let mut answer = engine.header(Kind::Recalled);
                answer.value = header.value;
                engine.defer_send(peer, &answer, &[]);
            }
            Some(())
        }
        Kind::Recalled => {
            let then = engine.two_sided.end_send(peer, header.value)?;
            then(engine, Answer::Recalled);
            Some(())
        }
        _ => None,
    }
}

/// The bytes of an eager message: those in its header, if it says so, or its payload.
fn eager_bytes<'a>(
    header: &Header,
    (inline, len): &'a ([u8; INLINE_BYTES], usize),
    payload: Payload<'a>,
) -> Payload<'a> {
    if header.status == wire::INLINE { Payload::Here(&inline[..*len]) } else { payload }
}

fn envelope(header: &Header) -> Option<Envelope> {
    let tag = i32::try_from(header.offset.cast_signed()).ok()?;
    Some(Envelope { context: header.context(), source: header.origin as usize, tag })
}

/// A receive that blocks: the thread that waits takes its message when it polls, if that is there to be taken.
pub(crate) struct Direct<'a> {
    pattern: Pattern,
    buffer: RefCell<&'a mut [u8]>,
    /// What was taken, and how many bytes it has.
    taken: Cell<Option<(Envelope, usize)>>,
    /// What it is the first part of.
    parts: RefCell<Option<Arc<Parts>>>,
}

impl<'a> Direct<'a> {
    /// A receive to `buffer`.
    pub fn new(pattern: Pattern, buffer: &'a mut [u8]) -> Self {
        Self { pattern, buffer: RefCell::new(buffer), taken: Cell::new(None), parts: RefCell::new(None) }
    }

    /// What was taken, once.
    #[inline]
    pub fn take(&self) -> Option<(Envelope, usize)> {
        self.taken.take()
    }

    /// What it is only the first part of: the others are to come.
    #[inline]
    pub fn parts(&self) -> Option<Arc<Parts>> {
        self.parts.take()
    }

    /// Takes a message, or its first part, if it is one for this receive, has room, and nobody is to be told of it. Messages and
    /// receives that were there before come first.
    #[inline]
    pub fn takes(&self, engine: &Engine, header: &Header, kind: Kind, payload: Payload<'_>) -> bool {
        if !matches!(kind, Kind::Eager | Kind::Parts) || header.op != 0 || engine.two_sided.has_any() {
            return false;
        }
        let known = header.origin < engine.size as u32 && self.taken.get().is_none();
        let (Some(envelope), Some(inline), true) = (envelope(header), header.inline(), known) else {
            return false;
        };
        if kind == Kind::Parts {
            return self.begins(engine, header, envelope, payload);
        }
        let bytes = eager_bytes(header, &inline, payload);
        let mut buffer = self.buffer.borrow_mut();
        let Some(place) = buffer.get_mut(..bytes.len()).filter(|_| self.pattern.matches(&envelope)) else {
            return false;
        };
        bytes.copy_to(place);
        self.taken.set(Some((envelope, bytes.len())));
        true
    }

    fn begins(&self, engine: &Engine, header: &Header, envelope: Envelope, payload: Payload<'_>) -> bool {
        if !self.pattern.matches(&envelope) {
            return false;
        }
        let begun = parts::begin_at(engine, header, payload, &mut self.buffer.borrow_mut());
        if let Some(parts) = &begun {
            self.taken.set(Some((envelope, parts.bytes())));
        }
        let begins = begun.is_some();
        *self.parts.borrow_mut() = begun;
        begins
    }
}

fn arrived(engine: &Engine, header: &Header, body: Body<'_>, number: Option<u64>) -> Option<()> {
    let envelope = envelope(header)?;
    engine.message_arrived(Incoming { envelope, body, number });
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ANY_TAG, Class};

    fn header(engine: &Engine, kind: Kind, count: u64, value: u64) -> Header {
        Header { origin: 1, count, value, ..engine.header(kind) }
    }

    #[test]
    fn nonsense_is_refused_and_huge_announcements_take_no_memory() {
        let program = |job: crate::Job| {
            if job.rank() == 1 {
                return job.barrier();
            }
            let engine = &job.member().engine;
            let handle = |kind, count, value, payload: &[u8]| {
                handle(engine, &header(engine, kind, count, value), kind, payload.into())
            };
            assert!(handle(Kind::RequestToSend, u64::MAX, 1, b"key").is_none());
            assert!(handle(Kind::RequestToSend, 1, 1, &[0; MAX_KEY + 1]).is_none());
            for kind in [Kind::ClearToSend, Kind::Segment, Kind::Done, Kind::Put] {
                assert!(handle(kind, 1, 77, b"").is_none());
            }
            let own =
                engine.two_sided.await_answer(0, None, Box::new(|_, _| panic!("another rank answered")));
            assert!(
                handle(Kind::Done, 0, own, b"").is_none() && handle(Kind::ClearToSend, 0, own, b"").is_none()
            );
            assert!(engine.two_sided.end_send(0, own).is_some());
            for number in 0..3 {
                assert!(handle(Kind::RequestToSend, 1 << 61, number, b"no key").is_some());
            }
            let class = |result: crate::Result<_>| result.map(drop).unwrap_err().class();
            assert_eq!(job.probe(1, 0)?.bytes, 1 << 61);
            assert_eq!(class(job.recv_into(1, 0, &mut [0u8; 9]).map(drop)), Class::Truncate);
            assert_eq!(class(job.recv::<u64>(1, ANY_TAG).map(drop)), Class::NoMemory);
            assert_eq!(class(job.irecv::<u8>(1, 0, usize::MAX).wait().map(drop)), Class::NoMemory);
            assert!(handle(Kind::RequestToSend, 8, 9, b"no key").is_some());
            assert_eq!(class(job.recv::<u64>(1, ANY_TAG).map(drop)), Class::Peer);
            job.barrier()
        };
        crate::local(2, program).unwrap();
    }

    #[test]
    fn segments_stay_inside_their_message() {
        let program = |job: crate::Job| {
            if job.rank() == 1 {
                return job.barrier();
            }
            let engine = &job.member().engine;
            let received = job.irecv::<u8>(1, 0, 8);
            let announce = header(engine, Kind::RequestToSend, 8, 5);
            assert!(handle(engine, &announce, Kind::RequestToSend, b"".into()).is_some());
            let segment = |origin, offset, bytes: &[u8]| {
                // The first number that this rank gives.
                let segment = Header { offset, origin, ..header(engine, Kind::Segment, 0, 0) };
                handle(engine, &segment, Kind::Segment, bytes.into())
            };
            assert!(segment(1, 8, b"a").is_none() && segment(1, 4, b"abcde").is_none());
            assert!(segment(1, u64::MAX, b"a").is_none() && segment(0, 0, b"a").is_none());
            assert!(segment(1, 4, b"efgh").is_some() && segment(1, 0, b"abcde").is_none());
            assert!(!received.is_done() && segment(1, 0, b"abcd").is_some());
            assert_eq!(received.wait()?.0, b"abcdefgh");
            assert!(segment(1, 0, b"a").is_none(), "it is complete");
            job.barrier()
        };
        crate::local(2, program).unwrap();
    }
}
