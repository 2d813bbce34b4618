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

    /// Targets reached by a transport or messages since their epoch began.
    pub(crate) fn touched(&self) -> Vec<usize> {
        self.access.touched.lock().iter().copied().collect()
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
    pub(crate) fn order_stores(&self) {
        store_load_fence();
    }

    /// Whether an epoch of lock_all is open in which nothing was done yet, and `target` is a rank of the window.
    #[inline]
    pub(crate) fn has_done_nothing(&self, target: usize) -> bool {
        self.access.open.is_locked_all()
            && self.access.only.load(Ordering::Relaxed) == NOBODY
            && self.access.last_touched.load(Ordering::Relaxed) == NOBODY
            && target < self.peers.len()
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
        if peer.coverage() == Coverage::Deferred {
            self.take_lock_of("flush", target, peer)?;
        }
        if !self.is_touched(target) {
            return Ok(());
        }
        self.send_carried("flush", target, peer)?;
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
        let gathered = if self.access.open.is_locked_all() { Ok(()) } else { self.take_lock(operation) };
        if self.access.last_touched.load(Ordering::Relaxed) == NOBODY {
            return gathered;
        }
        gathered.and(self.complete(operation, &self.touched()))
    }

    /// Completes what epochs have left under way at a target, before puts and gets that might overtake it.
    #[inline(never)]
    pub(crate) fn settle(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        // Before: what other threads leave meanwhile is not done.
        peer.state.settle();
        let confirmation = operation::start_complete(self, operation, target, peer)?;
        operation::complete(self, operation, target, peer, confirmation.as_ref())
    }

    /// Whether the epoch of fence or start that is open ends with messages to this target that arrive behind whatever is sent to
    /// it: then what has come there need not be confirmed.
    ///
    /// A complete concerns its targets alone, and each is told. Of a fence all ranks are told by all; but a rank that leaves it
    /// may at once access another, where operations of a third may still have to come: only if there is no third, messages do.
    pub(crate) fn ends_in_order(&self, peer: &Peer) -> bool {
        let told = match self.access.open.accessing() {
            Accessing::Start => true,
            Accessing::Fence => self.peers.len() == 2,
            _ => false,
        };
        told && operation::arrives_behind_messages(self, peer)
    }

    /// Confirmations are asked of all targets before the first is awaited. Every target is completed, whatever happens
    /// to the others; the first error is returned.
    fn complete(&self, operation: &'static str, targets: &[usize]) -> Result<()> {
        self.complete_or_leave(operation, targets, false)
    }

    /// The same; what messages to the targets that end the epoch arrive behind is left under way if they will be `told`.
    fn complete_or_leave(&self, operation: &'static str, targets: &[usize], told: bool) -> Result<()> {
        let peers = targets.iter().filter_map(|target| Some((*target, self.peers.get(*target)?)));
        let (left, others): (Vec<_>, Vec<_>) = peers.partition(|(_, peer)| {
            told && self.ends_in_order(peer) && operation::is_complete_behind(self, peer)
        });
        let ask = |target, peer| {
            self.send_carried(operation, target, peer)?;
            operation::start_complete(self, operation, target, peer)
        };
        let asked: Vec<_> = others.into_iter().map(|(t, peer)| (t, peer, ask(t, peer))).collect();
        let mut result = Ok(());
        for (target, peer) in left {
            result = result.and(operation::error_of(self, operation, target, peer));
            peer.state.leave_unsettled();
        }
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
        self.end_last(operation, targets, false)
    }

    #[inline]
    fn end_last(&self, operation: &'static str, targets: &[usize], told: bool) -> Result<()> {
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
        let result = self.complete_or_leave(operation, &ended, told);
        if ended.iter().any(|target| self.peers.get(*target).is_some_and(|peer| peer.state.under_way() > 0)) {
            operation::abandon(self);
        }
        result
    }

    /// The same for all that were touched. If all targets are `told` next that the epoch has ended, what that arrives behind is left
    /// under way.
    #[inline]
    pub(super) fn complete_touched(&self, operation: &'static str, told: bool) -> Result<()> {
        if self.access.last_touched.load(Ordering::Relaxed) == NOBODY {
            return Ok(());
        }
        self.end_last(operation, &self.touched(), told)
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
        self.access.posted.take(false, |group| {
            tracing::error!(?group, "an exposure epoch was not ended by wait");
            self.close_post(group);
        });
    }
}

fn report(ended: Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an epoch that was left open is not complete");
    }
}
