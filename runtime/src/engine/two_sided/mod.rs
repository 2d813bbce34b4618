//! Two-sided messages: matching and transfer (MPI-4.1 chapter 3).
//!
//! Short messages are sent eagerly, those of a few times the transport's longest in parts. Of a longer one only a request to send
//! travels (rendezvous): when a receive has matched it, the receiver fetches the bytes straight to their final place by the
//! transport's get, maybe with the sender's help ([`joint`]), or has the sender send them in segments, and then tells the sender that it is done. What takes several polls is
//! a [`Transfer`].

mod agent;
mod blocking;
mod buffer;
mod delivery;
mod habit;
mod joint;
mod parts;
mod segments;
mod slots;
mod transfers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;
use transom_transport::{Payload, Span};

use super::Engine;
use super::receive_slots::ReceiveSlots;
use crate::Result;
use crate::memory::{RawBuffer, Source};
use crate::protocol::messages::{Envelope, Messages, Pattern};
use crate::protocol::wire::{self, Header, Kind};
pub(crate) use agent::Direct;
pub(super) use agent::handle;
pub(crate) use blocking::{fetch_blocking, fetch_region, register, send_segments};
pub(crate) use buffer::Buffer;
use delivery::OnDelivered;
pub(crate) use delivery::{check_capacity, deliver, fetch_all, fetch_to};
use habit::Habit;
use joint::Joints;
pub(crate) use parts::{MOST as MOST_IN_PARTS, Parts, ask, awaits_bytes, awaits_coming};
use segments::SegmentedReceive;
pub(crate) use segments::SegmentedSend;
pub(crate) use transfers::{Advance, Transfer, Transfers};

/// A message that has arrived, or been announced.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub envelope: Envelope,
    pub body: Body<'a>,
    /// The sender's number of it, if the sender awaits an acknowledgement.
    pub number: Option<u64>,
}

/// A message that no receive has matched when it came.
pub(crate) type Unexpected = Incoming<'static>;

/// The bytes of an eager message.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    /// Where the transport shows them.
    Arriving(Payload<'a>),
    /// Copied; few of them without memory of their own.
    Kept(SmallVec<[u8; 64]>),
}

impl Bytes<'_> {
    pub fn len(&self) -> usize {
        self.payload().len()
    }

    pub fn payload(&self) -> Payload<'_> {
        match self {
            Self::Arriving(bytes) => *bytes,
            Self::Kept(bytes) => Payload::Here(bytes),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Body<'a> {
    Eager(Bytes<'a>),
    /// The first of some parts, which the others follow.
    Parts(Arc<Parts>),
    /// Announced by a request to send: its length, and the key of a region to get it from, if there is one.
    Rendezvous {
        bytes: usize,
        key: Vec<u8>,
    },
}

impl Incoming<'_> {
    /// The same with bytes of its own.
    fn kept(self) -> Unexpected {
        let body = match self.body {
            Body::Eager(Bytes::Arriving(bytes)) => Body::Eager(Bytes::Kept(bytes.with(SmallVec::from_slice))),
            Body::Eager(Bytes::Kept(bytes)) => Body::Eager(Bytes::Kept(bytes)),
            Body::Parts(parts) => Body::Parts(parts),
            Body::Rendezvous { bytes, key } => Body::Rendezvous { bytes, key },
        };
        Incoming { envelope: self.envelope, body, number: self.number }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Eager(data) => data.len(),
            Body::Parts(parts) => parts.bytes(),
            Body::Rendezvous { bytes, .. } => *bytes,
        }
    }
}

/// A receive that is posted, until a message matches it.
pub(crate) trait Receiver: Send + Sync {
    /// Receives the message. Called once.
    fn receive(self: Arc<Self>, engine: &Engine, arrived: Incoming<'_>);
}

/// A receive that is posted: of an object, or in a slot, to a buffer.
pub(crate) enum Posted {
    Object(Arc<dyn Receiver>),
    Slot(usize, RawBuffer),
}

impl Posted {
    /// Receives the message that has matched it.
    #[inline]
    fn receive(self, engine: &Engine, arrived: Incoming<'_>) {
        match self {
            Self::Object(receiver) => receiver.receive(engine, arrived),
            Self::Slot(slot, buffer) => slots::receive(engine, slot, buffer, arrived),
        }
    }
}

/// What a receiver answers to a sender that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The message is received; or cannot be.
    Done(bool),
    /// It is to be sent in segments for this number.
    ClearToSend(u64),
    /// It was taken back before a receive matched it.
    Recalled,
}

pub(crate) type OnAnswer = Box<dyn FnOnce(&Engine, Answer) + Send>;

/// The two-sided messages of one rank that are not complete.
#[derive(Default)]
pub(crate) struct TwoSided {
    state: Mutex<Messages<Posted, Unexpected>>,
    /// One more than how many receives are posted, if the state has anything in it: written by who holds its lock.
    any: AtomicUsize,
    /// Sends that await an answer, by number.
    sends: Mutex<HashMap<u64, AwaitingSend>>,
    /// Messages that arrive in segments, by number.
    segmented: Mutex<HashMap<u64, SegmentedReceive>>,
    /// Messages of which parts are to come.
    parts: Mutex<HashMap<parts::Key, Arc<Parts>>>,
    numbers: AtomicU64,
    joints: Joints,
    habit: Habit,
    pub transfers: Transfers,
    pub slots: ReceiveSlots,
}

/// A send that awaits an answer.
struct AwaitingSend {
    /// The receiver.
    peer: usize,
    then: OnAnswer,
    /// Its bytes, if the receiver may get them.
    source: Option<Arc<Source>>,
}

impl std::fmt::Debug for TwoSided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TwoSided").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl TwoSided {
    /// A number that no other message of this rank's has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a send that `peer` answers; returns its number. `shown`: its bytes, if the receiver may get them.
    pub fn await_answer(&self, peer: usize, shown: Option<Span>, then: OnAnswer) -> u64 {
        let (number, source) = (self.number(), shown.map(Source::new).map(Arc::new));
        self.sends.lock().insert(number, AwaitingSend { peer, then, source });
        number
    }

    /// The send is answered, or awaits no answer any more. Its bytes are not read any more.
    pub fn end_send(&self, peer: usize, number: u64) -> Option<OnAnswer> {
        let AwaitingSend { then, source, .. } = {
            let mut sends = self.sends.lock();
            if sends.get(&number)?.peer != peer {
                return None;
            }
            sends.remove(&number)?
        };
        if let Some(source) = source {
            source.end();
        }
        Some(then)
    }

    /// The bytes of a send to `peer` that awaits an answer, if they are shown.
    fn source(&self, peer: usize, number: u64) -> Option<Arc<Source>> {
        let sends = self.sends.lock();
        sends.get(&number).filter(|send| send.peer == peer)?.source.clone()
    }

    /// The first message that a receive would match: its envelope and length.
    pub fn look(&self, pattern: Pattern) -> Option<(Envelope, usize)> {
        let mut state = self.state.lock();
        state.look(pattern).map(|(envelope, arrived)| (envelope, arrived.bytes()))
    }

    /// Whether there are messages that no receive has matched, or receives that no message has.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire) != 0
    }

    /// How many receives are posted that no message has matched.
    #[inline]
    pub fn posted(&self) -> usize {
        self.any.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Changes the state.
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut Messages<Posted, Unexpected>) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        let any = if state.is_empty() { 0 } else { 1 + state.posted() };
        self.any.store(any, Ordering::Release);
        result
    }

    /// Takes that message.
    #[inline]
    pub fn take(&self, pattern: Pattern) -> Option<Unexpected> {
        if !self.has_any() {
            return None;
        }
        self.change(|state| state.take(pattern)).map(|(_, arrived)| arrived)
    }

    /// Takes that message to a buffer, if it is there whole, has room, and nobody is to be told of it: its envelope and length.
    #[inline]
    pub fn take_to(&self, pattern: Pattern, buffer: &mut [u8]) -> Option<(Envelope, usize)> {
        self.change(|state| {
            let (envelope, arrived) = state.look(pattern)?;
            let Incoming { body: Body::Eager(bytes), number: None, .. } = arrived else { return None };
            let bytes = bytes.payload();
            bytes.copy_to(buffer.get_mut(..bytes.len())?);
            let taken = (envelope, bytes.len());
            state.take(pattern).map(|_| taken)
        })
    }

    /// Cancels a receive. False if it has matched a message.
    pub fn cancel(&self, pattern: Pattern, number: u64) -> bool {
        let cancelled = self.change(|state| state.cancel(pattern, number));
        // Dropped when the lock is not held any more: it may own what has a drop of its own.
        cancelled.is_some()
    }

    /// Forgets a message of a rank's that awaits an answer. False if a receive has matched it.
    fn forget(&self, source: usize, number: u64) -> bool {
        let is_it = |message: &Unexpected| message.number == Some(number);
        let forgotten = self.change(|state| state.withdraw(source, is_it));
        forgotten.is_some()
    }

    /// Drops what is not complete.
    pub fn clear(&self) {
        let cleared = self.change(Messages::clear);
        drop(cleared);
        let sends = std::mem::take(&mut *self.sends.lock());
        sends.values().filter_map(|send| send.source.as_ref()).for_each(|source| source.end());
        drop(sends);
        let segmented = std::mem::take(&mut *self.segmented.lock());
        drop(segmented);
        let parts = std::mem::take(&mut *self.parts.lock());
        drop(parts);
        self.transfers.clear();
    }
}

impl Engine {
    /// Posts a receive; returns its number if no message has matched it.
    pub fn post_receive(&self, pattern: Pattern, receiver: Arc<dyn Receiver>) -> Option<u64> {
        let (number, met) = self.two_sided.change(|state| match state.take(pattern) {
            Some((_, arrived)) => (None, Some((receiver, arrived))),
            None => (Some(state.post(pattern, Posted::Object(receiver))), None),
        });
        if let Some((receiver, arrived)) = met {
            receiver.receive(self, arrived);
        }
        number
    }

    /// A message has arrived or been announced.
    pub fn message_arrived(&self, arrived: Incoming<'_>) {
        let met = self.two_sided.change(|state| state.arrive(arrived.envelope, arrived, Incoming::kept));
        if let Some((posted, arrived)) = met {
            posted.receive(self, arrived);
        }
    }

    /// A message from this rank to itself. Not for the agent.
    pub fn send_to_self(&self, arrived: Unexpected) {
        self.message_arrived(arrived);
        self.progress.interrupt();
    }

    /// [`Engine::send_in_order`]; `others` to the same peer follow at once, if so.
    pub fn send_in_order_before(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
        others: bool,
    ) -> Result<()> {
        if others && self.has_sent_before(peer, header, payload) {
            Ok(())
        } else {
            self.send_in_order(operation, peer, header, payload)
        }
    }

    /// Sends a message in order, now or by a later poll.
    pub fn send_in_order(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
    ) -> Result<()> {
        match self.try_send(operation, peer, header, payload) {
            Some(result) => result,
            None => {
                self.defer_send(peer, header, payload);
                Ok(())
            }
        }
    }

    fn defer_send(&self, peer: usize, header: &Header, payload: &[u8]) {
        let idle = self.outbox.is_empty();
        self.send_later(peer, header, payload);
        if idle && !self.outbox.is_empty() {
            // Sleeping threads must check again soon: no event announces space in a queue.
            self.progress.interrupt();
        }
    }

    /// Tells the sender that its message is received, or cannot be.
    pub fn acknowledge(&self, source: usize, number: Option<u64>, received: bool) {
        let Some(number) = number else { return };
        if source == self.rank {
            if let Some(then) = self.two_sided.end_send(source, number) {
                then(self, Answer::Done(received));
            }
            self.progress.interrupt();
            return;
        }
        let mut header = self.header(Kind::Done);
        header.value = number;
        header.status = if received { wire::OK } else { wire::REFUSED };
        self.defer_send(source, &header, &[]);
    }

    /// Takes back a send that awaits an answer, unless a receive has matched it: it is answered in any case.
    pub fn recall(&self, operation: &'static str, peer: usize, number: u64) -> Result<()> {
        if peer != self.rank {
            let mut header = self.header(Kind::Recall);
            header.value = number;
            return self.send_in_order(operation, peer, &header, &[]);
        }
        if self.two_sided.forget(peer, number)
            && let Some(then) = self.two_sided.end_send(peer, number)
        {
            then(self, Answer::Recalled);
            self.progress.interrupt();
        }
        Ok(())
    }

    /// Advances a transfer as far as it goes now; later polls do the rest.
    pub fn start_transfer(&self, transfer: Box<dyn Transfer>) {
        if let Advance::Progressed(rest) | Advance::Blocked(rest) = transfer.advance(self) {
            self.two_sided.transfers.defer(rest);
            self.progress.interrupt();
        }
    }
}
