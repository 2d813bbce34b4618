//! Locks of single targets, and their epochs (MPI-4.1 §12.5.3).

use super::table::Accessing;
use super::ticket;
use super::{By, Coverage};
use crate::engine::LockWords;
use crate::protocol::lock::{LockKind, Ticket};
use crate::shortcut::Line;
use crate::window::{Core, Peer};
use crate::{Assert, Class, Result};

/// What is left of taking a lock after its first step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockStep {
    /// Nothing.
    Done,
    /// Everything: nothing has been done.
    Otherwise,
    /// To wait for the turn of a ticket that has been drawn.
    Awaits(Ticket),
    /// To tell whoever waits for it that it has been taken.
    Wakes,
}

/// What is left of releasing a lock after its first step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnlockStep {
    /// Nothing.
    Done,
    /// Everything: nothing has been done.
    Otherwise,
    /// To tell whoever waits for it, at this target.
    Wakes(usize),
}

impl Core {
    /// Locks `target` and opens an epoch to it.
    #[inline]
    pub(crate) fn lock(&self, kind: LockKind, target: usize, assert: Assert, by: By) -> Result<()> {
        match self.lock_ready(kind, target, assert, by) {
            LockStep::Done => Ok(()),
            LockStep::Otherwise => self.lock_otherwise(kind, target, assert, by),
            LockStep::Awaits(ticket) => self.lock_awaited(ticket, target, by),
            LockStep::Wakes => self.lock_wakes(target, by),
        }
    }

    /// The first step of it where everything for it stands ready, and nothing else is open.
    #[inline(always)]
    pub(crate) fn lock_ready(&self, kind: LockKind, target: usize, assert: Assert, by: By) -> LockStep {
        let Some(line) = self.shortcut.lock_line(target) else { return LockStep::Otherwise };
        let Some(peer) = line.free_peer(target) else { return LockStep::Otherwise };
        let Some(Some(words)) = peer.lock.get() else { return LockStep::Otherwise };
        if assert != Assert::NONE || self.live.no_locks() || !self.access.open.open_only_lock(target) {
            return LockStep::Otherwise;
        }
        let queue = words.queue();
        let ticket = queue.lock.draw(kind);
        if !queue.lock.try_enter(ticket) {
            return LockStep::Awaits(ticket);
        }
        peer.held.set(Some(ticket), by);
        peer.cover(Coverage::Passive);
        line.cover(target, Coverage::Passive, self.shortcut.pending());
        // A reader who enters lets in the next, whom somebody may have to wake.
        if kind == LockKind::Shared && queue.somebody_waits() { LockStep::Wakes } else { LockStep::Done }
    }

    /// The second step of a shared lock that is held: tells whoever waits that the lock has changed.
    #[inline(never)]
    pub(crate) fn lock_wakes(&self, target: usize, by: By) -> Result<()> {
        let peer = &self.peers[target];
        let told = match self.lock_words("lock", target, peer)? {
            Some(words) => ticket::changed(self, "lock", target, peer, &words.queue()),
            None => Ok(()),
        };
        told.inspect_err(|_| drop(self.unlock(target, by)))
    }

    /// The second step: waits for the turn of a ticket.
    #[inline(never)]
    pub(crate) fn lock_awaited(&self, ticket: Ticket, target: usize, by: By) -> Result<()> {
        let peer = &self.peers[target];
        let entered = match self.lock_words("lock", target, peer)? {
            Some(words) => ticket::enter(self, target, peer, words, ticket),
            None => Ok(ticket),
        };
        let ticket = entered.inspect_err(|_| self.access.open.close_lock(target))?;
        peer.held.set(Some(ticket), by);
        self.cover_by(target, peer, Coverage::Passive);
        Ok(())
    }

    #[inline(never)]
    fn lock_otherwise(&self, kind: LockKind, target: usize, assert: Assert, by: By) -> Result<()> {
        let peer = self.target("lock", target)?;
        self.check_locks("lock", assert)?;
        let access = &self.access;
        access.open.open_lock(target, self.rank()).map_err(|e| self.name(e).with_target(target))?;
        let Some(peer) = peer else {
            *access.null_lock.lock() = Some(by);
            return Ok(());
        };
        let taken = self.take_or_defer(kind, (target, peer), assert, by);
        taken.inspect_err(|_| access.open.close_lock(target))?;
        self.refresh("lock").inspect_err(|_| drop(self.end_lock(target, peer)))
    }

    /// Takes the lock of a target, or leaves it for later.
    fn take_or_defer(
        &self,
        kind: LockKind,
        (target, peer): (usize, &Peer),
        assert: Assert,
        by: By,
    ) -> Result<()> {
        self.take_lock("lock")?;
        let deferred = !assert.has(Assert::NOCHECK) && self.defers_lock(target, peer)?;
        if assert.has(Assert::NOCHECK) && peer.state.is_unsettled() {
            self.settle("lock", target, peer)?;
        }
        if assert.has(Assert::NOCHECK) || deferred {
            peer.held.set(None, by);
        } else {
            peer.held.set(Some(ticket::acquire(self, target, peer, kind)?), by);
        }
        match deferred {
            true => self.defer_lock(kind, target, peer),
            false => {
                self.ready_for_locks(target, peer);
                self.cover_by(target, peer, Coverage::Passive);
            }
        }
        Ok(())
    }

    pub(super) fn check_locks(&self, operation: &'static str, assert: Assert) -> Result<()> {
        assert.check(operation).map_err(|e| self.name(e))?;
        if self.live.no_locks() {
            let message =
                "the window was made with the hint no_locks: make it without, or use fence or start";
            return Err(self.error(Class::RmaSync, operation, message));
        }
        Ok(())
    }

    /// Completes everything at `target`, and closes the epoch.
    #[inline]
    pub(crate) fn unlock(&self, target: usize, by: By) -> Result<()> {
        match self.unlock_ready(target, by) {
            UnlockStep::Done => Ok(()),
            UnlockStep::Otherwise => self.unlock_otherwise(target, by),
            UnlockStep::Wakes(target) => self.unlock_wakes(target),
        }
    }

    /// The first step of it where nothing else is open and nothing is under way.
    #[inline(always)]
    pub(crate) fn unlock_ready(&self, target: usize, by: By) -> UnlockStep {
        let Some(line) = self.shortcut.lock_line(target) else { return UnlockStep::Otherwise };
        let Some(peer) = line.plain_peer(target) else { return UnlockStep::Otherwise };
        let Some(Some(words)) = peer.lock.get() else { return UnlockStep::Otherwise };
        if !peer.held.is_held(by) || !self.access.open.close_only_lock(target) {
            return UnlockStep::Otherwise;
        }
        self.release_ready(line, (target, peer), words)
    }

    /// Ends the coverage of a target whose epoch is closed, and gives its lock back, if one is held.
    #[inline(always)]
    pub(super) fn release_ready(
        &self,
        line: &Line,
        (target, peer): (usize, &Peer),
        words: &LockWords,
    ) -> UnlockStep {
        line.uncover(target);
        peer.cover(Coverage::None);
        let Some(ticket) = peer.held.take() else {
            self.order_stores();
            return UnlockStep::Done;
        };
        // This orders stores to mapped memory before it.
        let queue = words.queue();
        queue.lock.release(ticket);
        if queue.somebody_waits() { UnlockStep::Wakes(target) } else { UnlockStep::Done }
    }

    /// The second step: tells whoever waits that the lock has changed.
    #[inline(never)]
    pub(crate) fn unlock_wakes(&self, target: usize) -> Result<()> {
        let peer = &self.peers[target];
        match self.lock_words("unlock", target, peer)? {
            Some(words) => ticket::changed(self, "unlock", target, peer, &words.queue()),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn unlock_otherwise(&self, target: usize, by: By) -> Result<()> {
        let not_held = || {
            let message = "no lock of this rank is held: call lock first";
            Err(self.error(Class::RmaSync, "unlock", message).with_target(target))
        };
        match self.target("unlock", target)? {
            Some(peer) if self.is_locked_alone() && peer.held.is_held(by) => self.end_lock(target, peer),
            Some(_) => not_held(),
            None => {
                let mut held = self.access.null_lock.lock();
                if *held != Some(by) {
                    return not_held();
                }
                *held = None;
                self.access.open.close_lock(target);
                Ok(())
            }
        }
    }

    /// Whether locks of single targets are open, not of all.
    fn is_locked_alone(&self) -> bool {
        self.access.open.accessing() == Accessing::Locks
    }

    /// Ends the epoch of a lock that is held, whatever comes of its operations.
    fn end_lock(&self, target: usize, peer: &Peer) -> Result<()> {
        let deferred =
            if peer.coverage() == Coverage::Deferred { self.end_deferred(target, peer) } else { None };
        let mut result = deferred.unwrap_or_else(|| self.complete_last("unlock", &[target]));
        result = result.and(self.publish("unlock"));
        self.uncover(target, peer);
        result = match peer.held.take() {
            Some(ticket) => result.and(ticket::release(self, target, peer, ticket)),
            None => {
                self.order_stores();
                result
            }
        };
        self.access.open.close_lock(target);
        result
    }
}
