//! The table of open epochs, with a short way for the most common states: one lock and nothing else, lock_all, or no lock.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Coverage;
use super::table::{Accessing, Epochs};
use crate::{NULL_RANK, Result};

/// Nothing is open.
const NOTHING: usize = 0;
/// What is open is in the table.
const TABLE: usize = usize::MAX;
/// An exposure epoch is open, an access epoch of start, both, an epoch of a fence, or one of lock_all; and nothing else.
const EXPOSED: usize = usize::MAX - 1;
const STARTED: usize = usize::MAX - 2;
const BOTH: usize = usize::MAX - 3;
const FENCED: usize = usize::MAX - 4;
const LOCKED_ALL: usize = usize::MAX - 5;

/// The open epochs of one window.
#[derive(Debug, Default)]
pub(crate) struct OpenEpochs {
    /// One of the states above, or one more than the target of the only lock that is open. Opening and closing these is
    /// one atomic instruction each; the table is empty then.
    alone: AtomicUsize,
    table: Mutex<Epochs>,
    /// One thread at a time opens and closes epochs: then that takes no atomic instruction.
    serial: AtomicBool,
}

/// What stands for the lock of a target, but for the last few numbers, which are in the table.
#[inline(always)]
fn alone(target: usize) -> Option<usize> {
    target.checked_add(1).filter(|alone| *alone < LOCKED_ALL)
}

impl OpenEpochs {
    /// The program promises that one thread at a time opens and closes epochs.
    pub fn promise_one_thread(&self) {
        self.serial.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    #[inline]
    pub fn is_serial(&self) -> bool {
        self.serial.load(Ordering::Relaxed)
    }

    /// Opens a lock epoch to `target`, a rank of the window, if nothing else is open.
    #[inline(always)]
    pub fn open_only_lock(&self, target: usize) -> bool {
        self.replace(NOTHING, target + 1)
    }

    /// Closes a lock epoch to `target`, a rank of the window, if nothing else is open.
    #[inline(always)]
    pub fn close_only_lock(&self, target: usize) -> bool {
        self.replace(target + 1, NOTHING)
    }

    /// Opens a lock_all epoch, if nothing else is open.
    #[inline(always)]
    pub fn open_only_all(&self) -> bool {
        self.replace(NOTHING, LOCKED_ALL)
    }

    /// Closes a lock_all epoch, if nothing else is open.
    #[inline(always)]
    pub fn close_only_all(&self) -> bool {
        self.replace(LOCKED_ALL, NOTHING)
    }

    /// Whether and how the open epochs cover `target`; any lock will do for the null rank.
    pub fn coverage(&self, target: usize) -> Coverage {
        match self.alone.load(Ordering::Acquire) {
            NOTHING | EXPOSED => Coverage::None,
            STARTED | BOTH | FENCED => Coverage::Active,
            LOCKED_ALL => Coverage::Passive,
            TABLE => self.with(|epochs| epochs.coverage(target)),
            locked if locked - 1 == target || target == NULL_RANK => Coverage::Passive,
            _ => Coverage::None,
        }
    }

    /// The open access epoch.
    pub fn accessing(&self) -> Accessing {
        match self.alone.load(Ordering::Acquire) {
            NOTHING | EXPOSED => Accessing::Nothing,
            STARTED | BOTH => Accessing::Start,
            FENCED => Accessing::Fence,
            LOCKED_ALL => Accessing::LockAll,
            TABLE => self.with(|epochs| epochs.accessing()),
            _ => Accessing::Locks,
        }
    }

    /// Whether an epoch of lock_all is known to be open: then no lock of a single target is.
    #[inline]
    pub fn is_locked_all(&self) -> bool {
        self.alone.load(Ordering::Acquire) == LOCKED_ALL
    }

    /// The same where one thread at a time makes calls.
    #[inline]
    pub fn is_locked_all_by_one_thread(&self) -> bool {
        self.is_locked_all() && self.serial.load(Ordering::Relaxed)
    }

    /// The targets whose locks are held.
    pub fn locked(&self) -> Vec<usize> {
        self.with(|epochs| epochs.locked().to_vec())
    }

    /// Opens a lock epoch to `target`, as [`Epochs::open_lock`].
    #[inline]
    pub fn open_lock(&self, target: usize, own: usize) -> Result<()> {
        if alone(target).is_some_and(|alone| self.replace(NOTHING, alone)) {
            return Ok(());
        }
        self.with(|epochs| epochs.open_lock(target, own))
    }

    /// Closes it.
    #[inline]
    pub fn close_lock(&self, target: usize) {
        if !alone(target).is_some_and(|alone| self.replace(alone, NOTHING)) {
            self.with(|epochs| epochs.close_lock(target));
        }
    }

    /// Opens a lock_all epoch, as [`Epochs::open_all`].
    #[inline]
    pub fn open_all(&self) -> Result<()> {
        if self.open_only_all() { Ok(()) } else { self.with(Epochs::open_all) }
    }

    /// Opens a fence epoch, as [`Epochs::open_fence`].
    #[inline]
    pub fn open_fence(&self) -> Result<()> {
        if self.replace(NOTHING, FENCED) { Ok(()) } else { self.with(Epochs::open_fence) }
    }

    /// Opens an access epoch of start, as [`Epochs::open_start`].
    #[inline]
    pub fn open_start(&self) -> Result<()> {
        let opened = match self.alone.load(Ordering::Relaxed) {
            EXPOSED => self.replace(EXPOSED, BOTH),
            _ => self.replace(NOTHING, STARTED),
        };
        if opened { Ok(()) } else { self.with(Epochs::open_start) }
    }

    /// Closes an access epoch that is not of lock.
    #[inline]
    pub fn close_access(&self) {
        let closed = match self.alone.load(Ordering::Relaxed) {
            BOTH => self.replace(BOTH, EXPOSED),
            state @ (STARTED | FENCED | LOCKED_ALL) => self.replace(state, NOTHING),
            _ => false,
        };
        if !closed {
            self.with(Epochs::close_access);
        }
    }

    /// Opens an exposure epoch, as [`Epochs::open_post`].
    #[inline]
    pub fn open_post(&self, own: usize) -> Result<()> {
        let opened = match self.alone.load(Ordering::Relaxed) {
            STARTED => self.replace(STARTED, BOTH),
            _ => self.replace(NOTHING, EXPOSED),
        };
        if opened { Ok(()) } else { self.with(|epochs| epochs.open_post(own)) }
    }

    /// Closes it.
    #[inline]
    pub fn close_post(&self) {
        let closed = match self.alone.load(Ordering::Relaxed) {
            BOTH => self.replace(BOTH, STARTED),
            EXPOSED => self.replace(EXPOSED, NOTHING),
            _ => false,
        };
        if !closed {
            self.with(Epochs::close_post);
        }
    }

    /// No epoch may be open.
    #[inline]
    pub fn check_none(&self, operation: &'static str) -> Result<()> {
        match self.alone.load(Ordering::Acquire) {
            NOTHING => Ok(()),
            _ => self.with(|epochs| epochs.check_none(operation)),
        }
    }

    #[inline(always)]
    fn replace(&self, old: usize, new: usize) -> bool {
        if self.serial.load(Ordering::Relaxed) {
            let same = self.alone.load(Ordering::Acquire) == old;
            if same {
                self.alone.store(new, Ordering::Release);
            }
            return same;
        }
        self.alone.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Calls `use_it` with the table, in which everything is.
    #[inline(never)]
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&mut Epochs) -> R) -> R {
        let mut epochs = self.table.lock();
        // From here on no thread takes the short way.
        match self.alone.swap(TABLE, Ordering::AcqRel) {
            NOTHING | TABLE => {}
            EXPOSED => epochs.note(Accessing::Nothing, true),
            STARTED => epochs.note(Accessing::Start, false),
            BOTH => epochs.note(Accessing::Start, true),
            FENCED => epochs.note(Accessing::Fence, false),
            LOCKED_ALL => epochs.note(Accessing::LockAll, false),
            alone => epochs.note_lock(alone - 1),
        }
        let result = use_it(&mut epochs);
        if epochs.is_empty() {
            self.alone.store(NOTHING, Ordering::Release);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_lock_alone_is_seen_by_all_that_comes() {
        let open = OpenEpochs::default();
        open.open_lock(3, 0).unwrap();
        assert_eq!(open.alone.load(Ordering::Relaxed), 4);
        assert!(open.open_lock(3, 0).is_err() && open.with(Epochs::open_all).is_err());
        open.open_lock(5, 0).unwrap();
        open.close_lock(3);
        assert!(open.check_none("free").is_err());
        open.close_lock(5);
        assert_eq!(open.alone.load(Ordering::Relaxed), NOTHING);
        open.with(|epochs| epochs.check_none("free")).unwrap();
        for strange in [usize::MAX, usize::MAX - 1] {
            open.open_lock(strange, 0).unwrap();
            assert!(open.check_none("free").is_err());
            open.close_lock(strange);
        }
        open.with(Epochs::open_all).unwrap();
        assert!(open.open_lock(1, 0).is_err());
        open.with(Epochs::close_access);
        open.open_lock(1, 0).unwrap();
    }

    /// The short way allows what the table allows, and both say the same of what is open, in every order of calls.
    #[test]
    fn the_short_way_leads_where_the_table_does() {
        type Step = (fn(&OpenEpochs) -> bool, fn(&mut Epochs) -> bool);
        let steps: [Step; 6] = [
            (|open| open.open_all().is_ok(), |table| table.open_all().is_ok()),
            (|open| open.open_fence().is_ok(), |table| table.open_fence().is_ok()),
            (|open| open.open_start().is_ok(), |table| table.open_start().is_ok()),
            (|open| open.open_post(0).is_ok(), |table| table.open_post(0).is_ok()),
            (|open| open.open_lock(1, 0).is_ok(), |table| table.open_lock(1, 0).is_ok()),
            (|open| open.open_lock(0, 0).is_ok(), |table| table.open_lock(0, 0).is_ok()),
        ];
        for order in 0..steps.len().pow(3) {
            let (open, mut table) = (OpenEpochs::default(), Epochs::default());
            for place in [1, 6, 36] {
                let (short, long) = steps[order / place % steps.len()];
                assert_eq!(short(&open), long(&mut table), "{order}");
                assert_eq!(open.accessing(), table.accessing(), "{order}");
                assert_eq!(open.coverage(1), table.coverage(1), "{order}");
                assert_eq!(open.check_none("free").is_ok(), table.is_empty(), "{order}");
            }
            open.close_lock(0);
            open.close_lock(1);
            open.close_post();
            open.close_access();
            assert_eq!(open.alone.load(Ordering::Relaxed), NOTHING);
            open.with(|epochs| epochs.check_none("free")).unwrap();
        }
    }

    /// Threads lock targets of their own and one that they share; none is lost, and none is held twice.
    #[test]
    fn threads_meet_in_the_table() {
        let (open, holders) = (OpenEpochs::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 1..=3 {
                let (open, holders) = (&open, &holders);
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let target = if round % 2 == 0 { thread } else { 100 };
                        let opened = open.open_lock(target, 0).is_ok();
                        assert!(opened || target == 100);
                        if opened && target == 100 {
                            assert_eq!(holders.fetch_add(1, Ordering::AcqRel), 0);
                            holders.fetch_sub(1, Ordering::AcqRel);
                        }
                        if opened {
                            open.close_lock(target);
                        }
                    }
                });
            }
        });
        assert_eq!(open.alone.load(Ordering::Relaxed), NOTHING);
    }
}
