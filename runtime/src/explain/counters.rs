//! The counters of a window at one rank. A window that counts has no short cut, so that every operation comes by here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Count, Explanation, Kind, Path, Reason};

/// One row.
#[derive(Debug, Default)]
struct Counter {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    fn count(&self) -> Count {
        Count {
            operations: self.operations.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// Shared memory, and the network.
const WAYS: usize = 2;

/// The counters of a window.
#[derive(Debug)]
pub(crate) struct Counters {
    /// By kind, path and reason, and whether that was over the network.
    rows: Box<[Counter]>,
}

impl Default for Counters {
    fn default() -> Self {
        let len = Kind::ALL.len() * Path::ALL.len() * Reason::ALL.len() * WAYS;
        Self { rows: std::iter::repeat_with(Counter::default).take(len).collect() }
    }
}

impl Counters {
    /// Counters for a window, if it is to be explained.
    pub fn new(wanted: bool) -> Option<Arc<Self>> {
        wanted.then(Arc::default)
    }

    /// One more operation; with the path, whether it was over the network.
    pub fn add(&self, kind: Kind, (path, network): (Path, bool), reason: Reason, bytes: usize) {
        let row = (kind as usize * Path::ALL.len() + path as usize) * Reason::ALL.len() + reason as usize;
        if let Some(counter) = self.rows.get(row * WAYS + usize::from(network)) {
            counter.operations.fetch_add(1, Ordering::Relaxed);
            counter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// What has been counted.
    pub fn explanation(&self) -> Explanation {
        let mut explanation = Explanation::new();
        let rows = Kind::ALL.iter().flat_map(|kind| {
            Path::ALL.iter().flat_map(move |path| Reason::ALL.iter().map(move |reason| (kind, path, reason)))
        });
        for ((kind, path, reason), counters) in rows.zip(self.rows.chunks(WAYS)) {
            counters.iter().for_each(|counter| explanation.add(*kind, *path, *reason, counter.count()));
        }
        explanation
    }

    /// Adds what another window has counted.
    pub fn add_all(&self, other: &Self) {
        for (sum, counter) in self.rows.iter().zip(&other.rows) {
            let Count { operations, bytes } = counter.count();
            sum.operations.fetch_add(operations, Ordering::Relaxed);
            sum.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What took a path, over the network or not.
    pub fn by_way(&self, path: Path, network: bool) -> Count {
        let of_path = |row: &usize| row / Reason::ALL.len() % Path::ALL.len() == path as usize;
        let rows = self.rows.chunks(WAYS).enumerate().filter(|(row, _)| of_path(row));
        let counts = rows.filter_map(|(_, ways)| ways.get(usize::from(network))).map(Counter::count);
        counts.fold(Count::default(), |mut sum, count| {
            sum.add(count);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Entry;

    #[test]
    fn nothing_is_lost_between_threads() {
        const ROUNDS: u64 = 500;
        let counters = Counters::new(true).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        counters.add(Kind::Put, (Path::Direct, false), Reason::Mapped, 8);
                        counters.add(Kind::Put, (Path::Transport, true), Reason::Remote, 2);
                    }
                });
            }
        });
        let explanation = counters.explanation();
        for (path, reason, bytes) in [(Path::Direct, Reason::Mapped, 8), (Path::Transport, Reason::Remote, 2)]
        {
            let count = Count { operations: 4 * ROUNDS, bytes: 4 * ROUNDS * bytes };
            assert_eq!(explanation.by_reason(Kind::Put, path, reason), count);
        }
        assert_eq!(explanation.total().operations, 8 * ROUNDS);
    }

    #[test]
    fn every_row_is_told_as_it_was_counted() {
        let counters = Counters::new(true).unwrap();
        for kind in Kind::ALL {
            for path in Path::ALL {
                for reason in Reason::ALL {
                    let number = 1 + *kind as usize * 10_000 + *path as usize * 100 + *reason as usize;
                    counters.add(*kind, (*path, number.is_multiple_of(2)), *reason, number);
                }
            }
        }
        for Entry { kind, path, reason, count } in counters.explanation().entries() {
            let number = 1 + kind as u64 * 10_000 + path as u64 * 100 + reason as u64;
            assert_eq!(count, Count { operations: 1, bytes: number });
        }
        assert_eq!(counters.explanation().entries().count() * WAYS, counters.rows.len());
    }

    #[test]
    fn what_is_not_asked_for_is_not_counted() {
        assert!(Counters::new(false).is_none());
    }
}
