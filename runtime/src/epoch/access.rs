//! An access epoch without element type or scope: checks that the target is covered, remembers what must be completed.
//! The operations in it are in `untyped.rs` and `shaped.rs`, its end is in `completing.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use transom_transport::Span;

use super::covering::Held;
use super::table::Epochs;
use super::{active, lock};
use crate::explain::{self, AtHand};
use crate::operation::Place;
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

/// An open access epoch. Several threads may use it at once; one closes it, when no other does.
#[derive(Debug)]
pub(super) struct Access<'w> {
    pub(super) core: &'w Core,
    pub(super) covers: Covers,
    /// Whether the matching calls or locks of others are awaited ([`Assert::NOCHECK`] is not given).
    pub(super) checked: bool,
    /// Whether several threads use it.
    pub(super) shared: bool,
    /// The target of the last access, which is covered.
    pub(super) covered: AtomicUsize,
    /// A bit per rank whose lock [`Covers::Locked`] has taken, or whose post has come.
    pub(super) taken: AtomicU64,
    /// The same for ranks from 64 on.
    pub(super) taken_above: Box<[AtomicU64]>,
    /// The lock that [`Covers::One`] holds.
    pub(super) ticket: Option<Ticket>,
    pub(super) held: Mutex<Held>,
    /// Stores to mapped memory were made since the last flush. Not kept where several threads would write it.
    pub(super) dirty: AtomicBool,
    /// Targets reached by a transport or messages since the epoch began.
    pub(super) touched: Mutex<BTreeSet<usize>>,
    /// The last of them to be touched: [`NOBODY`] if there is none.
    pub(super) last_touched: AtomicUsize,
    pub(super) closed: AtomicBool,
    /// Counts accesses to memory at hand, if the window counts.
    counting: Option<AtHand<'w>>,
}

/// A target that no rank has: nothing is covered yet.
pub(super) const NOBODY: usize = usize::MAX - 1;

impl<'w> Access<'w> {
    #[inline(always)]
    fn open(core: &'w Core, covers: Covers, assert: Assert) -> Self {
        let bits = match covers {
            Covers::Locked | Covers::Started(_) => core.peers.len().div_ceil(64),
            Covers::One(_) | Covers::Fenced => 1,
        };
        Self {
            core,
            covers,
            checked: !assert.has(Assert::NOCHECK),
            shared: false,
            covered: AtomicUsize::new(NOBODY),
            taken: AtomicU64::new(0),
            taken_above: if bits <= 1 {
                Box::default()
            } else {
                (1..bits).map(|_| AtomicU64::new(0)).collect()
            },
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
        core.epochs.open_fence().map_err(|e| core.name(e))?;
        Ok(Self::open(core, Covers::Fenced, Assert::NONE))
    }

    /// Opens an epoch to the ranks of `group`, which post their windows to this rank.
    pub fn start(core: &'w Core, group: &[usize], assert: Assert) -> Result<Self> {
        assert.check("start").map_err(|e| core.name(e))?;
        let group = active::check_group(core, "start", group)?;
        core.epochs.open_start().map_err(|e| core.name(e))?;
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
        self.peer_at_hand(target, displacement, bytes).map(|(_, memory, offset)| (memory, offset))
    }

    /// The same, with the target.
    #[inline]
    pub(super) fn peer_at_hand(
        &self,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Option<(&'w Peer, &'w Span, usize)> {
        if self.covered.load(Ordering::Acquire) != target && !self.is_taken(target) {
            return None;
        }
        let peer = self.core.peers.made(target)?;
        let memory = peer.remote.get()?.direct.as_ref()?;
        let offset = displacement.checked_mul(peer.unit)?;
        (offset <= peer.bytes && bytes <= peer.bytes - offset).then_some((peer, memory, offset))
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
    #[inline(always)]
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
        if !self.shared {
            self.dirty.store(true, Ordering::Relaxed);
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
