//! Two-sided messages: who sends and receives what, as far as this rank knows (MPI-4.1 chapter 3).
//!
//! Short messages travel whole. Of a longer one only an announcement does; when a receive has met it, the
//! receiver's side gets the bytes straight into their final place by the transport, or has the sender send
//! them as pieces, and then tells the sender that it is done. What the agent cannot do at once it leaves as
//! an errand to later polls.

mod agent;
mod errands;
mod landing;
mod now;
mod pieces;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Engine;
use crate::Result;
use crate::protocol::messages::{Envelope, Messages, Pattern};
use crate::protocol::wire::{self, Header, Kind};
pub(super) use agent::handle;
pub(crate) use errands::{Errand, Errands, Turn};
pub(crate) use landing::{OnLanded, check_room, land};
pub(crate) use now::{fetch_now, push_now};
use pieces::Filling;
pub(crate) use pieces::Push;

/// A message that is here, or announced.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub envelope: Envelope,
    pub body: Body,
    /// The sender's number of it, if the sender is to be told when it is received.
    pub number: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Here(Vec<u8>),
    /// At the sender: so many bytes, and the key of a region to get them from, if there is one.
    There {
        bytes: usize,
        key: Vec<u8>,
    },
}

impl Arrived {
    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Here(data) => data.len(),
            Body::There { bytes, .. } => *bytes,
        }
    }
}

/// What a posted receive does with its message.
pub(crate) type OnMatch = Box<dyn FnOnce(&Engine, Arrived) + Send>;

/// What a receiver answers to a sender that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The message is received; or cannot be.
    Done(bool),
    /// It is to be sent as pieces for this number.
    Clear(u64),
}

pub(crate) type OnAnswer = Box<dyn FnOnce(&Engine, Answer) + Send>;

/// All messages of one rank that are not through.
#[derive(Default)]
pub(crate) struct Mail {
    state: Mutex<Messages<OnMatch, Arrived>>,
    /// Sends that await an answer, by number: to whom, and what is done then.
    sends: Mutex<HashMap<u64, (usize, OnAnswer)>>,
    /// Messages that come as pieces, by number.
    filling: Mutex<HashMap<u64, Filling>>,
    numbers: AtomicU64,
    pub errands: Errands,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl Mail {
    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a send that is answered by `peer`; gives its number.
    pub fn await_answer(&self, peer: usize, then: OnAnswer) -> u64 {
        let number = self.number();
        self.sends.lock().insert(number, (peer, then));
        number
    }

    /// The send is answered, or awaits no answer any more.
    pub fn end_send(&self, peer: usize, number: u64) -> Option<OnAnswer> {
        let mut sends = self.sends.lock();
        if sends.get(&number)?.0 != peer {
            return None;
        }
        sends.remove(&number).map(|(_, then)| then)
    }

    /// The first message that a receive would take: its envelope and length.
    pub fn look(&self, pattern: Pattern) -> Option<(Envelope, usize)> {
        self.state.lock().look(pattern).map(|(envelope, arrived)| (envelope, arrived.bytes()))
    }

    /// Takes that message.
    pub fn take(&self, pattern: Pattern) -> Option<Arrived> {
        self.state.lock().take(pattern).map(|(_, arrived)| arrived)
    }

    /// Takes a receive back. False if it has met a message.
    pub fn cancel(&self, pattern: Pattern, number: u64) -> bool {
        let cancelled = self.state.lock().cancel(pattern, number);
        // Dropped when the lock is not held any more: it may own what has a drop of its own.
        cancelled.is_some()
    }

    /// Drops what is not through.
    pub fn clear(&self) {
        let cleared = self.state.lock().clear();
        drop(cleared);
        let sends = std::mem::take(&mut *self.sends.lock());
        drop(sends);
        let filling = std::mem::take(&mut *self.filling.lock());
        drop(filling);
        self.errands.clear();
    }
}

impl Engine {
    /// Posts a receive. Its number, if no message is there for it.
    pub fn receive_mail(&self, pattern: Pattern, receive: OnMatch) -> Option<u64> {
        let mut state = self.mail.state.lock();
        match state.take(pattern) {
            Some((_, arrived)) => {
                drop(state);
                receive(self, arrived);
                None
            }
            None => Some(state.post(pattern, receive)),
        }
    }

    /// A message has come or is announced.
    pub fn mail_arrived(&self, arrived: Arrived) {
        let met = self.mail.state.lock().arrive(arrived.envelope, arrived);
        if let Some((receive, arrived)) = met {
            receive(self, arrived);
        }
    }

    /// A message from this rank to itself. Not for the agent.
    pub fn mail_self(&self, arrived: Arrived) {
        self.mail_arrived(arrived);
        self.progress.interrupt();
    }

    /// Sends a message in order, now or by a later poll.
    pub fn post_mail(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
    ) -> Result<()> {
        match self.try_send(operation, peer, header, payload) {
            Some(result) => result,
            None => {
                self.send_mail_later(peer, header, payload);
                Ok(())
            }
        }
    }

    fn send_mail_later(&self, peer: usize, header: &Header, payload: &[u8]) {
        let idle = self.outbox.is_empty();
        self.send_later(peer, header, payload);
        if idle && !self.outbox.is_empty() {
            // Whoever sleeps must look again soon: no event tells of room.
            self.progress.interrupt();
        }
    }

    /// Tells the sender that its message is received, or cannot be.
    pub fn release_mail(&self, source: usize, number: Option<u64>, received: bool) {
        let Some(number) = number else { return };
        if source == self.rank {
            if let Some(then) = self.mail.end_send(source, number) {
                then(self, Answer::Done(received));
            }
            self.progress.interrupt();
            return;
        }
        let mut header = self.header(Kind::Done);
        header.value = number;
        header.status = if received { wire::OK } else { wire::REFUSED };
        self.send_mail_later(source, &header, &[]);
    }

    /// Does an errand, as far as it goes now. Whoever polls does the rest.
    pub fn run_errand(&self, errand: Box<dyn Errand>) {
        if let Turn::Moved(rest) | Turn::Stuck(rest) = errand.go(self) {
            self.mail.errands.put_off(rest);
            self.progress.interrupt();
        }
    }
}
