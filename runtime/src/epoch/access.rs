//! An access epoch without element type or scope: checks that the target is covered, remembers what must be completed.
//! The operations in it are in `untyped.rs` and `shaped.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use transom_transport::Span;
use transom_transport::memory::store_load_fence;

use super::table::Epochs;
use super::{active, lock};
use crate::explain::{self, AtHand};
use crate::operation::{self, Place};
use crate::protocol::lock::{LockKind, Ticket};
use crate::window::{Core, Peer};
use crate::{Assert, Class, Result};

/// Which targets an epoch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Covers {
    /// The one whose lock is held (or the null rank).
    One(usize),
    /// All. Each target's shared lock is taken when it is first accessed, so that the epoch costs nothing for targets
    /// that it does not touch.
    Locked,
    /// All, between fences.
    Fenced,
    /// Those of a group, each once it has posted its window.
    Started(Box<[usize]>),
}

/// The locks of an epoch of [`Covers::Locked`].
#[derive(Debug, Default)]
struct Held {
    tickets: Vec<(usize, Ticket)>,
    /// Targets whose locks threads wait for: one lock for each, however many threads there are.
    awaited: Vec<usize>,
}

/// An open access epoch. Several threads may use it at once; one closes it, when no other does.
#[derive(Debug)]
pub(super) struct Access<'w> {
    core: &'w Core,
    covers: Covers,
    /// Whether the matching calls or locks of others are awaited ([`Assert::NOCHECK`] is not given).
    checked: bool,
    /// Whether several threads use it.
    shared: bool,
    /// The target of the last access, which is covered.
    covered: AtomicUsize,
    /// A bit per rank whose lock [`Covers::Locked`] has taken, or whose post has come.
    taken: Box<[AtomicU64]>,
    /// The lock that [`Covers::One`] holds.
    ticket: Option<Ticket>,
    held: Mutex<Held>,
    /// Stores to mapped memory were made since the last flush.
    dirty: AtomicBool,
    /// Targets reached by a transport or messages since the epoch began.
    touched: Mutex<BTreeSet<usize>>,
    /// The last of them to be touched: [`NOBODY`] if there is none.
    last_touched: AtomicUsize,
    closed: AtomicBool,
    /// Counts accesses to memory at hand, if the window counts.
    counting: Option<AtHand<'w>>,
}

/// A target that no rank has: nothing is covered yet.
const NOBODY: usize = usize::MAX - 1;

impl<'w> Access<'w> {
    #[inline(always)]
    fn open(core: &'w Core, covers: Covers, assert: Assert) -> Self {
        let bits = match covers {
            Covers::Locked | Covers::Started(_) => core.peers.len().div_ceil(64),
            Covers::One(_) | Covers::Fenced => 0,
        };
        Self {
            core,
            covers,
            checked: !assert.has(Assert::NOCHECK),
            shared: false,
            covered: AtomicUsize::new(NOBODY),
            taken: if bits == 0 { Box::default() } else { (0..bits).map(|_| AtomicU64::new(0)).collect() },
            ticket: None,
            held: Mutex::default(),
            dirty: AtomicBool::new(false),
            touched: Mutex::default(),
            last_touched: AtomicUsize::new(NOBODY),
            closed: AtomicBool::new(false),
            counting: core.counters.as_ref().map(|counters| counters.open()),
        }
    }

    /// Locks `target` and opens an epoch to it.
    #[inline]
    pub fn lock(core: &'w Core, kind: LockKind, target: usize, assert: Assert) -> Result<Self> {
        let peer = core.target("lock", target)?;
        if core.live.no_locks() || assert != Assert::NONE {
            check_locks(core, "lock", assert)?;
        }
        core.epochs.open_lock(target, core.rank()).map_err(|e| core.name(e).with_target(target))?;
        let ticket = match peer {
            Some(peer) if !assert.has(Assert::NOCHECK) => match lock::acquire(core, target, peer, kind) {
                Ok(ticket) => Some(ticket),
                Err(error) => {
                    core.epochs.close_lock(target);
                    return Err(error);
                }
            },
            _ => None,
        };
        if let Err(error) = core.refresh("lock") {
            drop(Self::locked(core, target, assert, ticket));
            return Err(error);
        }
        Ok(Self::locked(core, target, assert, ticket))
    }

    /// The epoch of a lock that is held. Made last, where the caller wants it: it is some 200 bytes.
    #[inline(always)]
    fn locked(core: &'w Core, target: usize, assert: Assert, ticket: Option<Ticket>) -> Self {
        let mut access = Self::open(core, Covers::One(target), assert);
        access.ticket = ticket;
        access.covered = AtomicUsize::new(target);
        access
    }

    /// Opens an epoch to all targets, with shared locks.
    pub fn lock_all(core: &'w Core, assert: Assert) -> Result<Self> {
        check_locks(core, "lock_all", assert)?;
        core.epochs.with(Epochs::open_all).map_err(|e| core.name(e))?;
        let access = Self::open(core, Covers::Locked, assert);
        core.refresh("lock_all")?;
        Ok(access)
    }

    /// Opens an epoch to all targets between fences.
    pub fn fence(core: &'w Core) -> Result<Self> {
        core.epochs.with(Epochs::open_fence).map_err(|e| core.name(e))?;
        Ok(Self::open(core, Covers::Fenced, Assert::NONE))
    }

    /// Opens an epoch to the ranks of `group`, which post their windows to this rank.
    pub fn start(core: &'w Core, group: &[usize], assert: Assert) -> Result<Self> {
        assert.check("start").map_err(|e| core.name(e))?;
        let group = active::check_group(core, "start", group)?;
        core.epochs.with(Epochs::open_start).map_err(|e| core.name(e))?;
        Ok(Self::open(core, Covers::Started(group), assert))
    }

    /// Says that several threads will use it.
    pub fn share(&mut self) {
        self.shared = true;
        if let Some(counting) = &mut self.counting {
            counting.share();
        }
    }

    /// Memory and offset of an access to a target that has been accessed before in this epoch, if its part of the window is
    /// mapped and holds the access. Everything else, errors above all, is [`Access::place`]'s.
    #[inline]
    pub(super) fn at_hand(
        &self,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Option<(&'w Span, usize)> {
        if self.covered.load(Ordering::Acquire) != target && !self.is_taken(target) {
            return None;
        }
        let peer = self.core.peers.made(target)?;
        let memory = peer.remote.get()?.direct.as_ref()?;
        let offset = displacement.checked_mul(peer.unit)?;
        (offset <= peer.bytes && bytes <= peer.bytes - offset).then_some((memory, offset))
    }

    /// What counts accesses to memory at hand, if they are counted.
    #[inline]
    pub(super) fn counting(&self) -> Option<&AtHand<'w>> {
        self.counting.as_ref()
    }

    /// One more access to memory at hand.
    #[inline]
    pub(super) fn count(&self, kind: explain::Kind, target: usize, bytes: usize) {
        if let Some(counting) = &self.counting {
            counting.add(kind, target == self.core.rank(), bytes);
        }
    }

    /// The place of an access, if the epoch covers the target and the window holds it. `None` for the null rank.
    pub fn place(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Result<Option<Place<'w>>> {
        let core = self.core;
        let Some(peer) = core.target(operation, target)? else { return Ok(None) };
        self.check_covered(operation, target, peer)?;
        let (remote, offset) = core.reach(operation, target, peer, displacement, bytes)?;
        Ok(Some(Place { operation, target, peer, remote, offset }))
    }

    /// Makes sure that the epoch covers `target`.
    #[inline]
    pub(super) fn check_covered(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        if self.covered.load(Ordering::Acquire) == target || self.is_taken(target) {
            return Ok(());
        }
        self.cover(operation, target, peer)
    }

    /// Whether this is an epoch of locks.
    pub(super) fn is_passive(&self) -> bool {
        matches!(self.covers, Covers::One(_) | Covers::Locked)
    }

    /// The window.
    #[inline]
    pub(super) fn core(&self) -> &'w Core {
        self.core
    }

    /// Stores were made to mapped memory.
    #[inline]
    pub(super) fn stored(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Whether the lock of `target` has been taken in an epoch to all ranks.
    #[inline]
    fn is_taken(&self, target: usize) -> bool {
        self.taken
            .get(target / 64)
            .is_some_and(|bits| bits.load(Ordering::Acquire) & (1 << (target % 64)) != 0)
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
        self.taken[target / 64].fetch_or(1 << (target % 64), Ordering::AcqRel);
    }

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
        if self.core.target("flush", target)?.is_none() {
            return Ok(());
        }
        self.check_flush(target)?;
        self.flush_stores();
        if !self.is_touched(target) {
            return Ok(());
        }
        let peer = &self.core.peers[target];
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
        // Another thread may have flushed its own stores only.
        if self.shared || self.dirty.load(Ordering::Relaxed) {
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
            Covers::Fenced => self.flush_stores(),
            Covers::Started(group) => {
                self.flush_stores();
                result = result.and(active::complete(self.core, group, self.checked));
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
                self.core.epochs.with(Epochs::close_access);
            }
        }
    }
}

#[cold]
fn check_locks(core: &Core, operation: &'static str, assert: Assert) -> Result<()> {
    assert.check(operation).map_err(|e| core.name(e))?;
    if core.live.no_locks() {
        let message = "the window was made with the hint no_locks: make it without, or use fence or start";
        return Err(core.error(Class::RmaSync, operation, message));
    }
    Ok(())
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
