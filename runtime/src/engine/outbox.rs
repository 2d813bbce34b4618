//! Messages that found a queue full: sent by a later poll, in order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use transom_transport::Posted;

use super::Routes;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<VecDeque<(usize, Vec<u8>)>>,
    len: AtomicUsize,
    /// Ranks that are gone: whose queue is full stays so.
    gone: Mutex<BTreeSet<usize>>,
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Whether messages to `peer` wait here: later ones must not overtake them.
    pub fn is_waiting(&self, peer: usize) -> bool {
        !self.is_empty() && self.waiting.lock().iter().any(|(to, _)| *to == peer)
    }

    /// Sends, or keeps the message if the queue is full.
    pub fn send(&self, routes: &Routes, peer: usize, header: &[u8], payload: &[u8]) {
        if !self.is_waiting(peer) && post(routes, peer, header, payload) {
            return;
        }
        let mut waiting = self.waiting.lock();
        if self.gone.lock().contains(&peer) {
            return;
        }
        waiting.push_back((peer, [header, payload].concat()));
        self.len.store(waiting.len(), Ordering::Release);
    }

    /// Drops what was meant for ranks that are gone, and what will be.
    pub fn forget(&self, gone: &[usize]) {
        let mut waiting = self.waiting.lock();
        self.gone.lock().extend(gone);
        waiting.retain(|(peer, _)| !gone.contains(peer));
        self.len.store(waiting.len(), Ordering::Release);
    }

    /// Sends as many as queues have space for; returns how many.
    pub fn flush(&self, routes: &Routes) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        let mut blocked = Vec::new();
        waiting.retain(|(peer, message)| {
            if blocked.contains(peer) {
                return true;
            }
            let sent = post(routes, *peer, message, &[]);
            if !sent {
                blocked.push(*peer);
            }
            !sent
        });
        self.len.store(waiting.len(), Ordering::Release);
        before - waiting.len()
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
