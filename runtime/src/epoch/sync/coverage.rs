//! Makes sure that an open epoch covers the target of an operation: takes a lock, or waits for a post, when it first must.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::{NOBODY, SEVERAL};
use super::table::Accessing;
use super::{Coverage, ticket};
use crate::protocol::lock::LockKind;
use crate::window::{Core, Domain, Peer};
use crate::{Class, Error, Result};

impl Core {
    /// Makes sure that the open epoch covers `target`.
    #[inline]
    pub(crate) fn check_covered(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        match peer.coverage() {
            Coverage::Active | Coverage::Passive => Ok(()),
            Coverage::Deferred => self.take_lock_of(operation, target, peer),
            Coverage::None => self.cover_first(operation, target, peer),
        }
    }

    /// The first operation to `target` since the epoch was opened.
    #[inline(never)]
    fn cover_first(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        let access = &self.access;
        let coverage = match access.open.accessing() {
            Accessing::Nothing | Accessing::Locks => return Err(self.not_covered(operation, target)),
            Accessing::Fence => Coverage::Active,
            Accessing::Start => {
                self.await_start(operation, target)?;
                // The target has posted its window behind its last epoch.
                peer.state.settle();
                Coverage::Active
            }
            Accessing::LockAll => {
                if self.cover_only(target)? || !self.take_lock_once(operation, target, peer)? {
                    return Ok(());
                }
                Coverage::Passive
            }
        };
        if !access.cover_alone(target) {
            let mut whole = access.whole.lock();
            let only = access.only.swap(SEVERAL, Ordering::AcqRel);
            whole
                .covered
                .extend([only, target].into_iter().filter(|target| !matches!(*target, NOBODY | SEVERAL)));
        }
        peer.cover(coverage);
        Ok(())
    }

    /// Has an epoch of lock_all that one thread opened cover its first target, if everything for that stands ready. False if not, and
    /// nothing is done.
    fn cover_only(&self, target: usize) -> Result<bool> {
        let access = &self.access;
        if !access.open.is_locked_all_by_one_thread() || access.only.load(Ordering::Relaxed) != NOBODY {
            return Ok(false);
        }
        let Some(line) = self.shortcut.lock_line(target) else { return Ok(false) };
        let Some(peer) = line.free_peer(target) else { return Ok(false) };
        let Some(Some(words)) = peer.lock.get() else { return Ok(false) };
        if !access.opened.checked() || peer.coverage() != Coverage::None {
            return Ok(false);
        }
        let ticket = ticket::enter(self, target, peer, words, words.lock().draw(LockKind::Shared))?;
        peer.held.set(Some(ticket), access.opened.by());
        access.only.store(target, Ordering::Release);
        peer.cover(Coverage::Passive);
        line.cover(target, Coverage::Passive, self.shortcut.pending());
        Ok(true)
    }

    /// Has the epoch cover a target with a line of its own to which nothing has been done in it, and `work` done by the short cut, if that
    /// stands ready. False if not; then `work` is still to be done.
    #[inline(never)]
    pub(crate) fn cover_and(
        &self,
        operation: &'static str,
        target: usize,
        work: impl FnOnce() -> bool,
    ) -> Result<bool> {
        let accessing = self.access.open.accessing();
        if accessing == Accessing::LockAll {
            return Ok(self.cover_only(target)? && work());
        }
        let is_fence = accessing == Accessing::Fence;
        // Threads that share the epoch of a fence could take the short cut before one of them has begun that.
        if !(is_fence && !self.shortcut.is_shared() || accessing == Accessing::Start) {
            return Ok(false);
        }
        let peer = &self.peers[target];
        if peer.coverage() != Coverage::None || (is_fence && peer.state.is_unsettled()) {
            return Ok(false);
        }
        self.cover_first(operation, target, peer)?;
        self.shortcut.cover(target, Coverage::Active);
        let done = work();
        if is_fence && done {
            self.access.fence_used.store(true, Ordering::Release);
        } else if is_fence {
            // The next may not take it before one has begun the epoch.
            self.shortcut.uncover(target);
        }
        Ok(done)
    }

    /// An operation has found its place: it begins the epoch of a fence, and others may take the short cut if the target is `mapped`.
    #[inline]
    pub(crate) fn begin(&self, target: usize, peer: &Peer, mapped: bool) {
        if self.access.open.accessing() == Accessing::Fence {
            self.access.fence_used.store(true, Ordering::Release);
        }
        if mapped && self.counters.is_none() {
            if !self.shortcut.is_ready(target) {
                self.make_ready(target, peer);
            }
            self.shortcut.cover(target, peer.coverage());
        }
    }

    /// An operation to the null rank, which does nothing, but begins the epoch of a fence.
    pub(crate) fn check_null(&self, operation: &'static str) -> Result<()> {
        match self.access.open.coverage(crate::NULL_RANK) {
            Coverage::None => {
                let message = "no epoch is open: an operation to the null rank needs one, too";
                Err(self.error(Class::RmaSync, operation, message))
            }
            _ => {
                if self.access.open.accessing() == Accessing::Fence {
                    self.access.fence_used.store(true, Ordering::Release);
                }
                Ok(())
            }
        }
    }

    /// Whether an operation with a request may be started: in epochs of lock and lock_all (MPI-4.1 §12.3.5).
    pub(crate) fn check_requests(&self, operation: &'static str, target: usize) -> Result<()> {
        self.target(operation, target)?;
        match self.access.open.coverage(target) {
            Coverage::Passive | Coverage::Deferred => Ok(()),
            Coverage::None => Err(self.not_covered(operation, target)),
            Coverage::Active => {
                let message = "operations with requests are for epochs of lock and lock_all";
                Err(self.error(Class::RmaSync, operation, message).with_target(target))
            }
        }
    }

    #[cold]
    fn not_covered(&self, operation: &'static str, target: usize) -> Error {
        let message = "no access epoch to this rank is open: call lock, lock_all, start or fence first";
        self.error(Class::RmaSync, operation, message).with_target(target)
    }

    /// Waits for the post of a rank that the epoch of start names.
    fn await_start(&self, operation: &'static str, target: usize) -> Result<()> {
        if !self.access.started.contains(target) {
            let group = self.access.started.ranks();
            let message = format!("the epoch covers ranks {group:?} only: name this one to start");
            return Err(self.error(Class::RmaSync, operation, message).with_target(target));
        }
        if self.access.opened.checked() { self.await_post(operation, target) } else { Ok(()) }
    }

    /// Takes the shared lock of `target` in an epoch to all ranks, unless another thread has (false); waits for one that is at it. A
    /// second lock would queue behind an exclusive one that waits for the first.
    fn take_lock_once(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<bool> {
        let (whole, opened) = (&self.access.whole, &self.access.opened);
        loop {
            let mut state = whole.lock();
            if peer.coverage() != Coverage::None {
                return Ok(false);
            }
            if !state.awaited.contains(&target) {
                if !opened.checked() && peer.state.is_unsettled() {
                    drop(state);
                    self.settle(operation, target, peer)?;
                    continue;
                }
                if !opened.checked() {
                    peer.cover(Coverage::Passive);
                    return Ok(true);
                }
                state.awaited.push(target);
                break;
            }
            drop(state);
            let over = || (!whole.lock().awaited.contains(&target)).then_some(Ok(()));
            let what = || format!("the shared lock of rank {target}, for which another thread waits").into();
            let nap = Some(Duration::from_micros(100));
            let waited = self.member.engine.wait_until(operation, &what, nap, over);
            waited.map_err(|e| self.name(e).with_target(target))?;
        }
        let acquired = ticket::acquire(self, target, peer, LockKind::Shared);
        let mut state = whole.lock();
        state.awaited.retain(|other| *other != target);
        peer.held.set(Some(acquired?), opened.by());
        peer.cover(Coverage::Passive);
        Ok(true)
    }

    /// An epoch covers `target` from now on.
    pub(super) fn cover_by(&self, target: usize, peer: &Peer, coverage: Coverage) {
        peer.cover(coverage);
        self.shortcut.cover(target, coverage);
    }

    /// No epoch covers `target` any more.
    pub(super) fn uncover(&self, target: usize, peer: &Peer) {
        peer.cover(Coverage::None);
        self.shortcut.uncover(target);
    }

    /// The same for locks to come of a target on this node, before anything is done there.
    pub(super) fn ready_for_locks(&self, target: usize, peer: &Peer) {
        if self.counters.is_none()
            && !self.shortcut.is_ready(target)
            && self.member.engine.routes.shares_memory(peer.world)
            && self.is_mapped(target)
        {
            self.make_ready(target, peer);
        }
    }

    /// Has the memory of a target stand ready for the short cut.
    #[inline(never)]
    fn make_ready(&self, target: usize, peer: &Peer) {
        let mapped = peer.remote.get().and_then(|remote| remote.direct.clone());
        let (Some(memory), Some(shared)) = (mapped, self.peers.share(target)) else { return };
        // What a device updates, or only this rank and its agent, has rules of its own.
        let updates = if self.domain == Domain::Cpu && !self.private {
            self.updates("window", target, peer).ok().cloned()
        } else {
            None
        };
        // Found now, for locks later.
        let _ = self.lock_words("window", target, peer);
        self.shortcut
            .prepare(target, shared, |line| line.fill(target, memory, (peer.bytes, peer.unit), updates));
    }
}
