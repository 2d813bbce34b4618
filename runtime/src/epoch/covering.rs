//! Makes sure that an epoch covers the target of an access: takes a lock, or waits for a post, when it first must.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::access::{Access, Covers};
use super::{active, lock};
use crate::protocol::lock::{LockKind, Ticket};
use crate::window::Peer;
use crate::{Class, Result};

/// The locks of an epoch of [`Covers::Locked`].
#[derive(Debug, Default)]
pub(super) struct Held {
    pub tickets: Vec<(usize, Ticket)>,
    /// Targets whose locks threads wait for: one lock for each, however many threads there are.
    awaited: Vec<usize>,
}

impl Access<'_> {
    /// Makes sure that the epoch covers `target`.
    #[inline]
    pub(super) fn check_covered(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        if self.covered.load(Ordering::Acquire) == target || self.is_taken(target) {
            return Ok(());
        }
        self.cover(operation, target, peer)
    }

    /// The word with the bit of `target`.
    #[inline]
    fn bits(&self, target: usize) -> Option<&AtomicU64> {
        if target < 64 { Some(&self.taken) } else { self.taken_above.get(target / 64 - 1) }
    }

    /// Whether the lock of `target` has been taken in an epoch to all ranks.
    #[inline]
    pub(super) fn is_taken(&self, target: usize) -> bool {
        self.bits(target).is_some_and(|bits| bits.load(Ordering::Acquire) & (1 << (target % 64)) != 0)
    }

    /// Makes sure that `target` is covered.
    #[cold]
    fn cover(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        match &self.covers {
            Covers::One(locked) => {
                let message =
                    format!("the epoch covers rank {locked} only: lock rank {target}, or use lock_all");
                return Err(self.core.error(Class::RmaSync, operation, message).with_target(target));
            }
            Covers::Locked => {
                if self.checked && !self.shared {
                    let ticket = lock::acquire(self.core, target, peer, LockKind::Shared)?;
                    self.held.lock().tickets.push((target, ticket));
                } else if self.checked {
                    self.take_lock_once(operation, target, peer)?;
                }
                self.take(target);
            }
            Covers::Started(group) => {
                if group.binary_search(&target).is_err() {
                    let message = format!("the epoch covers ranks {group:?} only: name this one to start");
                    return Err(self.core.error(Class::RmaSync, operation, message).with_target(target));
                }
                if self.checked {
                    active::await_post(self.core, operation, target)?;
                }
                self.take(target);
            }
            Covers::Fenced => {}
        }
        self.covered.store(target, Ordering::Release);
        Ok(())
    }

    /// Takes the shared lock of `target` in an epoch to all ranks, unless another thread has; waits for one that is at it. A
    /// second lock would queue behind an exclusive one that waits for the first.
    fn take_lock_once(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        let (engine, what) = (&self.core.member.engine, || format!("the shared lock of rank {target}"));
        let awaited = |held: &Held| held.awaited.contains(&target);
        loop {
            let mut held = self.held.lock();
            if self.is_taken(target) {
                return Ok(());
            }
            if !awaited(&held) {
                held.awaited.push(target);
                break;
            }
            drop(held);
            let over = || (!awaited(&self.held.lock())).then_some(Ok(()));
            let waited = engine.wait_until(operation, &what, Some(Duration::from_micros(100)), over);
            waited.map_err(|e| self.core.name(e).with_target(target))?;
        }
        let acquired = lock::acquire(self.core, target, peer, LockKind::Shared);
        let mut held = self.held.lock();
        held.awaited.retain(|other| *other != target);
        held.tickets.push((target, acquired?));
        self.take(target);
        Ok(())
    }

    fn take(&self, target: usize) {
        if let Some(bits) = self.bits(target) {
            bits.fetch_or(1 << (target % 64), Ordering::AcqRel);
        }
    }
}
