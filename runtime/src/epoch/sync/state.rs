//! What this process has open on a window: one access epoch, or locks of several targets, and one exposure epoch.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use super::OpenEpochs;
use super::carried::Carried;
use super::deferred::Deferred;
use super::group::KeptGroup;
use crate::protocol::lock::{LockKind, Ticket};

/// How an epoch is opened and closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum By {
    /// By the beginning and the end of a scope.
    #[default]
    Scope,
    /// By calls.
    Calls,
}

/// Whether and how a target is covered by an access epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Coverage {
    /// It is not.
    None = 0,
    /// By an epoch of fence or start.
    Active = 1,
    /// By an epoch of lock or lock_all.
    Passive = 2,
    /// By one of lock, for which the lock is yet to be taken.
    Deferred = 3,
}

/// A target that no rank has.
pub(super) const NOBODY: usize = usize::MAX - 1;

/// More than one.
pub(super) const SEVERAL: usize = usize::MAX - 2;

/// The open epochs of one window, and what they have to complete.
#[derive(Debug)]
pub(crate) struct AccessState {
    pub open: OpenEpochs,
    /// Of the epoch of lock_all, start or fence.
    pub(super) whole: Mutex<Whole>,
    /// The ranks of an epoch of start, ascending.
    pub(super) started: KeptGroup,
    /// The ranks of the exposure epoch that calls have opened.
    pub(super) posted: KeptGroup,
    /// How it was opened.
    pub(super) opened: Opened,
    /// The only target that the epoch covers so far: [`NOBODY`] if there is none, [`SEVERAL`] if they are in `whole`.
    pub(super) only: AtomicUsize,
    /// Operations were started in the epoch of a fence: only then it has begun (MPI-4.1 §12.5.1).
    pub(super) fence_used: AtomicBool,
    /// Whether a lock of the null rank is held, and how it was opened.
    pub(super) null_lock: Mutex<Option<By>>,
    /// The lock that is yet to be taken.
    pub(super) deferred: Mutex<Deferred>,
    /// A thread has taken a lock, or failed to.
    pub(super) taken: Condvar,
    /// Operations that wait for the end of the epoch, by target.
    pub(super) carried: Carried,
    /// Targets reached by a transport or messages since their epoch began.
    pub(super) touched: Mutex<BTreeSet<usize>>,
    /// The last of them to be touched: [`NOBODY`] if there is none.
    pub(super) last_touched: AtomicUsize,
}

impl Default for AccessState {
    fn default() -> Self {
        Self {
            open: OpenEpochs::default(),
            whole: Mutex::default(),
            started: KeptGroup::default(),
            posted: KeptGroup::default(),
            opened: Opened::default(),
            only: AtomicUsize::new(NOBODY),
            fence_used: AtomicBool::new(false),
            null_lock: Mutex::default(),
            deferred: Mutex::default(),
            taken: Condvar::new(),
            carried: Carried::default(),
            touched: Mutex::default(),
            last_touched: AtomicUsize::new(NOBODY),
        }
    }
}

impl AccessState {
    /// The epoch covers `target` alone, unless it covers others already.
    #[inline]
    pub(super) fn cover_alone(&self, target: usize) -> bool {
        if !self.open.is_serial() {
            return self.only.compare_exchange(NOBODY, target, Ordering::AcqRel, Ordering::Acquire).is_ok();
        }
        let first = self.only.load(Ordering::Acquire) == NOBODY;
        if first {
            self.only.store(target, Ordering::Release);
        }
        first
    }
}

/// How the last epoch to all ranks or to a group was opened.
#[derive(Debug, Default)]
pub(super) struct Opened(AtomicU8);

impl Opened {
    const BY_CALLS: u8 = 1;
    const CHECKED: u8 = 2;

    #[inline]
    pub fn set(&self, by: By, checked: bool) {
        let by = if by == By::Calls { Self::BY_CALLS } else { 0 };
        self.0.store(by | if checked { Self::CHECKED } else { 0 }, Ordering::Release);
    }

    /// By what.
    #[inline]
    pub fn by(&self) -> By {
        if self.0.load(Ordering::Acquire) & Self::BY_CALLS != 0 { By::Calls } else { By::Scope }
    }

    /// Whether the matching calls or locks of others are awaited ([`crate::Assert::NOCHECK`] is not given).
    #[inline]
    pub fn checked(&self) -> bool {
        self.0.load(Ordering::Acquire) & Self::CHECKED != 0
    }
}

/// An access epoch to all ranks, or to a group.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Targets that the epoch covers so far: each when it is first accessed.
    pub covered: Vec<usize>,
    /// Targets whose locks threads wait for: one lock for each, however many threads there are.
    pub awaited: Vec<usize>,
}

/// The lock of a target that this process holds, if it holds one.
#[derive(Debug, Default)]
pub(crate) struct HeldLock(AtomicU64);

/// Some lock is held.
const HELD: u64 = 1 << 32;
/// It was opened by calls.
const BY_CALLS: u64 = 1 << 33;
/// There is a ticket.
const TICKET: u64 = 1 << 34;
/// It is exclusive.
const EXCLUSIVE: u64 = 1 << 35;

impl HeldLock {
    /// A lock is held: with a ticket, unless the program says that none is needed.
    #[inline(always)]
    pub fn set(&self, ticket: Option<Ticket>, by: By) {
        let ticket = ticket.map_or(0, |Ticket { number, kind }| {
            u64::from(number) | TICKET | if kind == LockKind::Exclusive { EXCLUSIVE } else { 0 }
        });
        let by = if by == By::Calls { BY_CALLS } else { 0 };
        self.0.store(HELD | by | ticket, Ordering::Release);
    }

    /// The lock that is held without a ticket has one from now on.
    pub fn grant(&self, ticket: Ticket) {
        let by = self.0.load(Ordering::Acquire) & BY_CALLS;
        self.set(Some(ticket), if by == 0 { By::Scope } else { By::Calls });
    }

    /// Whether a lock is held that was opened so.
    #[inline(always)]
    pub fn is_held(&self, by: By) -> bool {
        let held = self.0.load(Ordering::Acquire);
        held & HELD != 0 && (held & BY_CALLS != 0) == (by == By::Calls)
    }

    /// Whether a lock is held by a ticket, and whether that excludes others: for who only looks.
    pub fn peek(&self) -> Option<LockKind> {
        let held = self.0.load(Ordering::Acquire);
        let kind = if held & EXCLUSIVE != 0 { LockKind::Exclusive } else { LockKind::Shared };
        (held & HELD != 0 && held & TICKET != 0).then_some(kind)
    }

    /// It is held no more; its ticket.
    #[inline(always)]
    pub fn take(&self) -> Option<Ticket> {
        let held = self.0.load(Ordering::Acquire);
        self.0.store(0, Ordering::Release);
        let kind = if held & EXCLUSIVE != 0 { LockKind::Exclusive } else { LockKind::Shared };
        (held & TICKET != 0).then_some(Ticket { number: held as u32, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_as_it_was_taken() {
        let held = HeldLock::default();
        assert!(!held.is_held(By::Scope) && !held.is_held(By::Calls) && held.take().is_none());
        for by in [By::Scope, By::Calls] {
            for kind in [LockKind::Shared, LockKind::Exclusive] {
                let ticket = Ticket { number: u32::MAX, kind };
                held.set(Some(ticket), by);
                assert!(
                    held.is_held(by) && !held.is_held(if by == By::Calls { By::Scope } else { By::Calls })
                );
                assert_eq!(held.take(), Some(ticket));
                assert!(!held.is_held(by));
            }
            held.set(None, by);
            assert!(held.is_held(by) && held.take().is_none() && !held.is_held(by));
        }
    }
}
