//! Completes what was started in an epoch, and ends it.

use std::sync::atomic::Ordering;

use transom_transport::memory::store_load_fence;

use super::access::{Access, Covers, NOBODY};
use super::{active, lock};
use crate::operation;
use crate::{Class, Result};

impl Access<'_> {
    /// `target` is reached by a transport or messages.
    pub(super) fn touch(&self, target: usize) {
        if self.last_touched.load(Ordering::Relaxed) != target {
            self.touched.lock().insert(target);
            self.last_touched.store(target, Ordering::Relaxed);
        }
    }

    /// Whether `target` was touched.
    #[inline]
    fn is_touched(&self, target: usize) -> bool {
        match self.last_touched.load(Ordering::Relaxed) {
            NOBODY => false,
            last => last == target || self.touched.lock().contains(&target),
        }
    }

    /// Completes all operations to `target`, there and here.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        let Some(peer) = self.core.target("flush", target)? else { return Ok(()) };
        self.check_flush(target)?;
        self.flush_stores();
        if !self.is_touched(target) {
            return Ok(());
        }
        let confirmation = operation::start_complete(self.core, "flush", target, peer)?;
        operation::complete(self.core, "flush", target, peer, confirmation.as_ref())
    }

    #[inline]
    fn check_flush(&self, target: usize) -> Result<()> {
        match &self.covers {
            Covers::One(locked) if *locked != target => {
                let message = format!("the epoch covers rank {locked} only");
                Err(self.core.error(Class::RmaSync, "flush", message).with_target(target))
            }
            _ => Ok(()),
        }
    }

    /// Waits until nothing is under way to `target`, so that buffers can go; if that fails, ends all traffic.
    pub fn end_gets(&self, target: usize) -> Result<()> {
        let Some(peer) = self.core.target("get", target)? else { return Ok(()) };
        let ended = operation::complete(self.core, "get", target, peer, None);
        if !peer.state.is_idle() {
            operation::abandon(self.core);
        }
        ended
    }

    /// Completes all operations to all targets.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_stores();
        let touched: Vec<usize> = self.touched.lock().iter().copied().collect();
        self.complete("flush_all", &touched)
    }

    /// Orders stores to mapped memory before whatever follows.
    #[inline]
    fn flush_stores(&self) {
        if self.shared {
            // Another thread may have flushed its own stores only.
            store_load_fence();
        } else if self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(false, Ordering::Relaxed);
            store_load_fence();
        }
    }

    /// Confirmations are asked of all targets before the first is awaited. Every target is completed, whatever happens
    /// to the others; the first error is returned.
    fn complete(&self, operation: &'static str, targets: &[usize]) -> Result<()> {
        let peers = targets.iter().map(|target| (*target, &self.core.peers[*target]));
        let asked: Vec<_> = peers
            .map(|(t, peer)| (t, peer, operation::start_complete(self.core, operation, t, peer)))
            .collect();
        let mut result = Ok(());
        for (target, peer, confirmation) in asked {
            let completed = confirmation.and_then(|confirmation| {
                operation::complete(self.core, operation, target, peer, confirmation.as_ref())
            });
            result = result.and(completed);
        }
        result
    }

    /// Completes everything and releases every lock.
    #[inline]
    pub fn close(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.closed.store(true, Ordering::Relaxed);
        let operation = match &self.covers {
            Covers::One(_) => "unlock",
            Covers::Locked => "unlock_all",
            Covers::Fenced => "fence",
            Covers::Started(_) => "complete",
        };
        let mut result = self.complete_all(operation);
        match &self.covers {
            Covers::One(target) => {
                result = result.and(self.core.publish(operation));
                if let Some(ticket) = self.ticket {
                    let peer = &self.core.peers[*target];
                    result = result.and(lock::release(self.core, *target, peer, ticket));
                } else {
                    self.flush_stores();
                }
            }
            Covers::Locked => {
                result = result.and(self.core.publish(operation));
                self.flush_stores();
                for (target, ticket) in std::mem::take(&mut self.held.lock().tickets) {
                    result = result.and(lock::release(self.core, target, &self.core.peers[target], ticket));
                }
            }
            // Ordered before the signals of the fence that follows.
            Covers::Fenced => {}
            Covers::Started(group) => {
                // First, since it waits for stores: a signal had better travel with that of a post which follows.
                self.forget();
                let order = || self.flush_stores();
                return result.and(active::complete(self.core, group, self.checked, order));
            }
        }
        self.forget();
        result
    }

    /// Completes all operations, or ends all traffic: their buffers are about to go.
    #[inline]
    fn complete_all(&self, operation: &'static str) -> Result<()> {
        if self.last_touched.load(Ordering::Relaxed) == NOBODY {
            return Ok(());
        }
        let touched: Vec<usize> = std::mem::take(&mut *self.touched.lock()).into_iter().collect();
        let result = self.complete(operation, &touched);
        if touched.iter().any(|target| !self.core.peers[*target].state.is_idle()) {
            operation::abandon(self.core);
        }
        result
    }

    /// The epoch is no longer open.
    fn forget(&self) {
        match &self.covers {
            Covers::One(target) => self.core.epochs.close_lock(*target),
            Covers::Locked | Covers::Fenced | Covers::Started(_) => {
                self.core.epochs.close_access();
            }
        }
    }
}

impl Drop for Access<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Relaxed)
            && let Err(error) = self.close()
        {
            tracing::error!(%error, "an epoch ended by unwinding is not complete");
        }
    }
}
