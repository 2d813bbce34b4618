//! The group of an open epoch: start and post leave it for the calls that follow.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Ranks of a group that take no allocation, and no lock.
pub(super) const FEW: usize = 6;

/// There is no group.
const NONE: usize = usize::MAX;
/// It has more ranks than `few` has words for.
const MANY: usize = usize::MAX - 1;

/// A group that is kept, if there is one. A few ranks are in words of their own: an instruction that takes a lock would first wait until
/// the signals that were stored just before are visible to others, and these are awaited next.
#[derive(Debug)]
pub(super) struct KeptGroup {
    /// How many ranks it has, or one of the above.
    len: AtomicUsize,
    few: [AtomicUsize; FEW],
    many: Mutex<Vec<usize>>,
}

impl Default for KeptGroup {
    fn default() -> Self {
        Self { len: AtomicUsize::new(NONE), few: Default::default(), many: Mutex::default() }
    }
}

impl KeptGroup {
    /// Keeps `group`. One thread at a time.
    #[inline]
    pub fn keep(&self, group: &[usize]) {
        let len = group.len();
        if len > FEW {
            *self.many.lock() = group.to_vec();
            return self.len.store(MANY, Ordering::Release);
        }
        self.few.iter().zip(group).for_each(|(word, rank)| word.store(*rank, Ordering::Relaxed));
        self.len.store(len, Ordering::Release);
    }

    /// Calls `work` with the group, if there is one, which is not kept any more: of several threads one does so, unless one is `alone`.
    #[inline]
    pub fn take<R>(&self, alone: bool, work: impl FnOnce(&[usize]) -> R) -> Option<R> {
        let len = if alone {
            let len = self.len.load(Ordering::Acquire);
            self.len.store(NONE, Ordering::Relaxed);
            len
        } else {
            self.len.swap(NONE, Ordering::AcqRel)
        };
        match len {
            NONE => None,
            MANY => {
                let many = std::mem::take(&mut *self.many.lock());
                Some(work(&many))
            }
            len => {
                // Not moved from here: a wide load of what was just stored in words waits for all stores before.
                let mut few = [0; FEW];
                few.iter_mut().zip(self.few(len)).for_each(|(to, rank)| *to = rank);
                Some(work(&few[..len.min(FEW)]))
            }
        }
    }

    /// Whether `rank` is in it.
    #[inline]
    pub fn contains(&self, rank: usize) -> bool {
        match self.len.load(Ordering::Acquire) {
            NONE => false,
            MANY => self.many.lock().contains(&rank),
            len => self.few(len).any(|other| other == rank),
        }
    }

    /// Its ranks.
    pub fn ranks(&self) -> Vec<usize> {
        match self.len.load(Ordering::Acquire) {
            NONE => Vec::new(),
            MANY => self.many.lock().clone(),
            len => self.few(len).collect(),
        }
    }

    fn few(&self, len: usize) -> impl Iterator<Item = usize> + '_ {
        self.few.iter().take(len).map(|word| word.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_kept_until_it_is_taken() {
        let kept = KeptGroup::default();
        assert!(kept.take(true, |_| ()).is_none() && kept.ranks().is_empty() && !kept.contains(0));
        for len in [0, 1, FEW, FEW + 1, 40] {
            for alone in [true, false] {
                let group: Vec<usize> = (0..len).map(|rank| 2 * rank + 1).collect();
                kept.keep(&group);
                assert!((0..2 * len).all(|rank| kept.contains(rank) == (rank % 2 == 1)), "{len}");
                assert_eq!(kept.ranks(), group);
                let take = || kept.take(alone, <[usize]>::to_vec);
                assert_eq!((take(), take()), (Some(group), None));
            }
        }
    }

    #[test]
    fn one_of_several_threads_takes_it() {
        let (kept, taken) = (KeptGroup::default(), AtomicUsize::new(0));
        for round in 0..200 {
            kept.keep(&vec![round; round % 10]);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| taken.fetch_add(kept.take(false, |_| 1).unwrap_or(0), Ordering::Relaxed));
                }
            });
        }
        assert_eq!(taken.into_inner(), 200);
    }
}
