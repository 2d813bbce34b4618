//! Completes what was started in the open epochs.

use std::sync::atomic::Ordering;

use transom_transport::memory::store_load_fence;

use super::state::NOBODY;
use super::table::Accessing;
use super::{By, Coverage};
use crate::operation;
use crate::window::{Core, Peer};
use crate::{Class, Result};

impl Core {
    /// `target` is reached by a transport or messages.
    #[inline]
    pub(crate) fn touch(&self, target: usize) {
        if self.access.last_touched.load(Ordering::Relaxed) != target {
            self.access.touched.lock().insert(target);
            self.access.last_touched.store(target, Ordering::Relaxed);
            self.shortcut.touch(target);
        }
    }

    /// Whether `target` was touched.
    #[inline]
    fn is_touched(&self, target: usize) -> bool {
        match self.access.last_touched.load(Ordering::Relaxed) {
            NOBODY => false,
            last => last == target || self.access.touched.lock().contains(&target),
        }
    }

    /// Orders this thread's stores to mapped memory before whatever follows.
    #[inline]
    pub(super) fn order_stores(&self) {
        store_load_fence();
    }

    /// Completes all operations to `target`, there and here.
    pub(crate) fn flush(&self, target: usize) -> Result<()> {
        match self.target("flush", target)? {
            Some(peer) => self.flush_peer(target, peer),
            None => Ok(()),
        }
    }

    /// The same for a target that has been found.
    #[inline]
    pub(crate) fn flush_peer(&self, target: usize, peer: &Peer) -> Result<()> {
        if peer.remote.get().is_none_or(|remote| remote.direct.is_some()) {
            self.order_stores();
        }
        if !self.is_touched(target) {
            return Ok(());
        }
        let confirmation = operation::start_complete(self, "flush", target, peer)?;
        operation::complete(self, "flush", target, peer, confirmation.as_ref())
    }

    /// Whether an epoch of lock or lock_all covers `target`, in which calls flush.
    pub(crate) fn check_flush(&self, target: usize) -> Result<()> {
        self.target("flush", target)?;
        if self.access.open.coverage(target) == Coverage::Passive {
            return Ok(());
        }
        let message = "no epoch of lock or lock_all covers this rank: flush is for those";
        Err(self.error(Class::RmaSync, "flush", message).with_target(target))
    }

    /// Whether any epoch of lock or lock_all is open, in which calls flush.
    pub(crate) fn check_passive(&self, operation: &'static str) -> Result<()> {
        if matches!(self.access.open.accessing(), Accessing::Locks | Accessing::LockAll) {
            return Ok(());
        }
        let message = "no epoch of lock or lock_all is open: flush is for those";
        Err(self.error(Class::RmaSync, operation, message))
    }

    /// Completes all operations to all targets.
    pub(crate) fn flush_all(&self, operation: &'static str) -> Result<()> {
        self.order_stores();
        let touched: Vec<usize> = self.access.touched.lock().iter().copied().collect();
        self.complete(operation, &touched)
    }

    /// Confirmations are asked of all targets before the first is awaited. Every target is completed, whatever happens
    /// to the others; the first error is returned.
    fn complete(&self, operation: &'static str, targets: &[usize]) -> Result<()> {
        let peers = targets.iter().filter_map(|target| Some((*target, self.peers.get(*target)?)));
        let asked: Vec<_> =
            peers.map(|(t, peer)| (t, peer, operation::start_complete(self, operation, t, peer))).collect();
        let mut result = Ok(());
        for (target, peer, confirmation) in asked {
            let completed = confirmation.and_then(|confirmation| {
                operation::complete(self, operation, target, peer, confirmation.as_ref())
            });
            result = result.and(completed);
        }
        result
    }

    /// Completes all operations to those of `targets` that were touched, or ends all traffic: their buffers are about to go.
    #[inline]
    pub(super) fn complete_last(&self, operation: &'static str, targets: &[usize]) -> Result<()> {
        if self.access.last_touched.load(Ordering::Relaxed) == NOBODY {
            return Ok(());
        }
        let ended: Vec<usize> = {
            let mut touched = self.access.touched.lock();
            // The next access to one of them is to say so again.
            self.access.last_touched.store(NOBODY, Ordering::Relaxed);
            let ended = targets.iter().copied().filter(|target| touched.remove(target)).collect();
            if let Some(other) = touched.first() {
                self.access.last_touched.store(*other, Ordering::Relaxed);
            }
            ended
        };
        let result = self.complete(operation, &ended);
        if ended.iter().any(|target| self.peers.get(*target).is_some_and(|peer| !peer.state.is_idle())) {
            operation::abandon(self);
        }
        result
    }

    /// The same for all that were touched.
    #[inline]
    pub(super) fn complete_touched(&self, operation: &'static str) -> Result<()> {
        if self.access.last_touched.load(Ordering::Relaxed) == NOBODY {
            return Ok(());
        }
        let touched: Vec<usize> = self.access.touched.lock().iter().copied().collect();
        self.complete_last(operation, &touched)
    }

    /// Ends whatever calls have opened.
    pub(crate) fn end_calls(&self) {
        let locked = self.access.open.locked();
        for target in locked {
            let held = match self.peers.get(target) {
                Some(peer) => peer.held.is_held(By::Calls),
                None => *self.access.null_lock.lock() == Some(By::Calls),
            };
            if held {
                report(self.unlock(target, By::Calls));
            }
        }
        report(self.end_whole_by_calls());
        if let Some(group) = self.access.whole.lock().posted.take() {
            tracing::error!(?group, "an exposure epoch was not ended by wait");
            self.close_post(&group);
        }
    }
}

fn report(ended: Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an epoch that was left open is not complete");
    }
}
