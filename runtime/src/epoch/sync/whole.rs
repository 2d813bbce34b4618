//! Epochs to all ranks, or to a group: what lock_all, start and fence open (MPI-4.1 §12.5).

use std::sync::atomic::Ordering;

use super::lock::UnlockStep;
use super::state::{NOBODY, SEVERAL};
use super::table::Accessing;
use super::{By, ticket};
use crate::window::{Core, Peer};
use crate::{Assert, Class, Result};

impl Core {
    /// [`Core::lock_all`] where that only opens the epoch. False if not, and nothing is done.
    #[inline(always)]
    pub(crate) fn lock_all_ready(&self, by: By) -> bool {
        if !self.shortcut.has_plain_locks() || self.live.no_locks() || !self.access.open.open_only_all() {
            return false;
        }
        self.begin_whole(&[], Assert::NONE, by);
        true
    }

    /// The first step of [`Core::unlock_all`] where one target at most is covered, and nothing is under way there.
    #[inline(always)]
    pub(crate) fn unlock_all_ready(&self, by: By) -> UnlockStep {
        let access = &self.access;
        let plain = self.shortcut.has_plain_locks() && access.last_touched.load(Ordering::Relaxed) == NOBODY;
        if !plain || access.opened.by() != by {
            return UnlockStep::Otherwise;
        }
        let only = access.only.load(Ordering::Acquire);
        if only == NOBODY {
            if !access.open.close_only_all() {
                return UnlockStep::Otherwise;
            }
            self.order_stores();
            return UnlockStep::Done;
        }
        let Some(line) = self.shortcut.lock_line(only) else { return UnlockStep::Otherwise };
        let Some(peer) = line.plain_peer(only) else { return UnlockStep::Otherwise };
        let Some(Some(words)) = peer.lock.get() else { return UnlockStep::Otherwise };
        if !access.open.close_only_all() {
            return UnlockStep::Otherwise;
        }
        access.only.store(NOBODY, Ordering::Release);
        self.release_ready(line, (only, peer), words)
    }

    /// Opens an epoch to all ranks, with shared locks: each target's is taken when it is first accessed.
    pub(crate) fn lock_all(&self, assert: Assert, by: By) -> Result<()> {
        if assert == Assert::NONE && self.lock_all_ready(by) {
            return Ok(());
        }
        self.check_locks("lock_all", assert)?;
        self.access.open.open_all().map_err(|e| self.name(e))?;
        self.begin_whole(&[], assert, by);
        self.refresh("lock_all").inspect_err(|_| drop(self.unlock_all(by)))
    }

    /// Completes everything, and closes the epoch to all ranks.
    pub(crate) fn unlock_all(&self, by: By) -> Result<()> {
        match self.unlock_all_ready(by) {
            UnlockStep::Done => Ok(()),
            UnlockStep::Otherwise => self.unlock_all_otherwise(by),
            UnlockStep::Wakes(target) => self.unlock_wakes(target),
        }
    }

    #[inline(never)]
    fn unlock_all_otherwise(&self, by: By) -> Result<()> {
        if !self.is_open(Accessing::LockAll, by) {
            let message = "no lock_all epoch is open: call lock_all first";
            return Err(self.error(Class::RmaSync, "unlock_all", message));
        }
        let mut result = self.complete_touched("unlock_all", false);
        result = result.and(self.publish("unlock_all"));
        self.order_stores();
        self.end_whole(|target, peer| {
            if let Some(ticket) = peer.held.take() {
                let released = ticket::release(self, target, peer, ticket);
                if result.is_ok() {
                    result = released;
                }
            }
        });
        self.access.open.close_access();
        result
    }

    /// An epoch to all ranks or to a group begins.
    pub(super) fn begin_whole(&self, group: &[usize], assert: Assert, by: By) {
        self.access.opened.set(by, !assert.has(Assert::NOCHECK));
        if !group.is_empty() {
            self.access.started.keep(group);
        }
        self.access.fence_used.store(false, Ordering::Relaxed);
    }

    /// It covers nothing any more; `then` is called with each target that it covered.
    #[inline]
    pub(super) fn end_whole(&self, mut then: impl FnMut(usize, &Peer)) {
        let mut end = |target| {
            let peer = &self.peers[target];
            self.uncover(target, peer);
            then(target, peer);
        };
        let only = self.access.only.load(Ordering::Acquire);
        if only == NOBODY {
            return;
        }
        self.access.only.store(NOBODY, Ordering::Release);
        if only != SEVERAL {
            return end(only);
        }
        let mut covered = std::mem::take(&mut self.access.whole.lock().covered);
        covered.drain(..).for_each(end);
        // The next epoch has its memory.
        self.access.whole.lock().covered = covered;
    }

    /// Whether such an epoch is open, and was opened so.
    pub(super) fn is_open(&self, epoch: Accessing, by: By) -> bool {
        self.access.open.accessing() == epoch && self.access.opened.by() == by
    }
}
