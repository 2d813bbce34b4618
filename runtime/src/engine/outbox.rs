//! Messages that found a queue full: sent by a later poll, in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use transom_transport::Posted;

use super::{Engine, Routes};

/// What is to be done when messages have left.
type Then = Box<dyn FnOnce(&Engine) + Send>;

/// A message that waits, and what is to be done when it and all before it have left.
struct Waiting {
    message: Vec<u8>,
    then: Vec<Then>,
}

#[derive(Default)]
struct Messages {
    /// Of each peer, those that wait; of none an empty queue.
    to: BTreeMap<usize, VecDeque<Waiting>>,
    /// Ranks that are gone: whose queue is full stays so.
    gone: BTreeSet<usize>,
}

#[derive(Default)]
pub(super) struct Outbox {
    messages: Mutex<Messages>,
    len: AtomicUsize,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Whether messages to `peer` wait here: later ones must not overtake them.
    pub fn is_waiting(&self, peer: usize) -> bool {
        !self.is_empty() && self.messages.lock().to.contains_key(&peer)
    }

    /// Sends, or keeps the message if the queue is full.
    pub fn send(&self, routes: &Routes, peer: usize, header: &[u8], payload: &[u8]) {
        if !self.is_waiting(peer) && post(routes, peer, header, payload) {
            return;
        }
        let mut messages = self.messages.lock();
        if messages.gone.contains(&peer) {
            return;
        }
        let waiting = Waiting { message: [header, payload].concat(), then: Vec::new() };
        messages.to.entry(peer).or_default().push_back(waiting);
        self.len.fetch_add(1, Ordering::Release);
    }

    /// Has something done when all has left that waits for `peer` now: at once if nothing does, and never if the peer is gone before.
    pub fn when_left(&self, engine: &Engine, peer: usize, then: Then) {
        let mut messages = self.messages.lock();
        match messages.to.get_mut(&peer).and_then(VecDeque::back_mut) {
            Some(last) => last.then.push(then),
            None => {
                drop(messages);
                then(engine);
            }
        }
    }

    /// Drops what was meant for ranks that are gone, and what will be.
    pub fn forget(&self, gone: &[usize]) {
        let mut messages = self.messages.lock();
        messages.gone.extend(gone);
        let dropped: Vec<_> = gone.iter().filter_map(|peer| messages.to.remove(peer)).collect();
        self.len.fetch_sub(dropped.iter().map(VecDeque::len).sum(), Ordering::Release);
        // What they hold may be anything.
        drop(messages);
        drop(dropped);
    }

    /// Sends as many as queues have space for; returns how many.
    pub fn flush(&self, engine: &Engine) -> usize {
        if self.is_empty() {
            return 0;
        }
        let (mut sent, mut left) = (0, Vec::new());
        let mut messages = self.messages.lock();
        messages.to.retain(|peer, queue| {
            while let Some(first) = queue.front_mut() {
                if !post(&engine.routes, *peer, &first.message, &[]) {
                    break;
                }
                left.append(&mut first.then);
                queue.pop_front();
                sent += 1;
            }
            !queue.is_empty()
        });
        self.len.fetch_sub(sent, Ordering::Release);
        drop(messages);
        for then in left {
            then(engine);
        }
        sent
    }
}

/// Whether the message needs no further care: it was sent, or its peer is gone (which the job's watchers report).
fn post(routes: &Routes, peer: usize, header: &[u8], payload: &[u8]) -> bool {
    match routes.to(peer).message(peer, header, payload) {
        Ok(Posted::Again) => false,
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(peer, %error, "a reply could not be sent");
            true
        }
    }
}
