//! The counters of a window at one rank.
//!
//! What takes nanoseconds, an access to memory at hand, is counted per epoch: an epoch is mostly one thread's, so its counts
//! are loads and stores where an atomic increment would cost more than the access. What takes longer goes to counters
//! that all threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

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

/// Counts of accesses to memory at hand, by kind and by whether it is this rank's own. One epoch at a time adds to them.
#[derive(Debug, Default)]
// Two lines, which the prefetcher of x86 loads together: epochs of several threads do not slow each other down.
#[repr(align(128))]
struct Near([[Counter; 2]; Kind::ALL.len()]);

/// What epochs have counted. Nothing is added up when an epoch ends: its counters pass to the next.
#[derive(Debug, Default)]
struct Epochs {
    all: Vec<Arc<Near>>,
    /// Those that no open epoch has.
    free: Vec<Arc<Near>>,
}

/// The counters of a window.
#[derive(Debug)]
pub(crate) struct Counters {
    epochs: Mutex<Epochs>,
    /// By kind, path and reason.
    rest: Box<[Counter]>,
}

impl Counters {
    /// Counters for a window, if it is to be explained.
    pub fn new(wanted: bool) -> Option<Box<Self>> {
        let len = Kind::ALL.len() * Path::ALL.len() * Reason::ALL.len();
        let rest = || std::iter::repeat_with(Counter::default).take(len).collect();
        wanted.then(|| Box::new(Self { epochs: Mutex::default(), rest: rest() }))
    }

    /// Counters for an epoch.
    pub fn open(&self) -> AtHand<'_> {
        let mut epochs = self.epochs.lock();
        let near = epochs.free.pop().unwrap_or_else(|| {
            let near = Arc::<Near>::default();
            epochs.all.push(near.clone());
            near
        });
        AtHand { counters: self, near, shared: false }
    }

    /// One more operation.
    pub fn add(&self, kind: Kind, path: Path, reason: Reason, bytes: usize) {
        let row = (kind as usize * Path::ALL.len() + path as usize) * Reason::ALL.len() + reason as usize;
        if let Some(counter) = self.rest.get(row) {
            counter.operations.fetch_add(1, Ordering::Relaxed);
            counter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// What has been counted.
    pub fn explanation(&self) -> Explanation {
        let mut explanation = Explanation::new();
        for near in &self.epochs.lock().all {
            for (kind, counters) in Kind::ALL.iter().zip(&near.0) {
                for (reason, counter) in [Reason::Mapped, Reason::Loopback].into_iter().zip(counters) {
                    explanation.add(*kind, path_at_hand(*kind), reason, counter.count());
                }
            }
        }
        let rows = Kind::ALL.iter().flat_map(|kind| {
            Path::ALL.iter().flat_map(move |path| Reason::ALL.iter().map(move |reason| (kind, path, reason)))
        });
        for ((kind, path, reason), counter) in rows.zip(&self.rest) {
            explanation.add(*kind, *path, *reason, counter.count());
        }
        explanation
    }
}

/// The path of accesses to memory at hand.
fn path_at_hand(kind: Kind) -> Path {
    match kind {
        Kind::Put | Kind::PutNotify | Kind::Get => Path::Direct,
        Kind::Accumulate | Kind::GetAccumulate | Kind::FetchAndOp | Kind::CompareAndSwap => Path::Cpu,
    }
}

/// The counters of an open epoch.
#[derive(Debug)]
pub(crate) struct AtHand<'w> {
    counters: &'w Counters,
    near: Arc<Near>,
    /// Whether several threads add to them.
    shared: bool,
}

impl AtHand<'_> {
    /// Says that several threads will add to them.
    pub fn share(&mut self) {
        self.shared = true;
    }

    /// One more access to memory at hand.
    #[inline]
    pub fn add(&self, kind: Kind, own: bool, bytes: usize) {
        let counter = &self.near.0[kind as usize][usize::from(own)];
        let (operations, all) = (&counter.operations, &counter.bytes);
        if self.shared {
            operations.fetch_add(1, Ordering::Relaxed);
            all.fetch_add(bytes as u64, Ordering::Relaxed);
            return;
        }
        operations.store(operations.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        all.store(all.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for AtHand<'_> {
    fn drop(&mut self) {
        self.counters.epochs.lock().free.push(self.near.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Entry;

    #[test]
    fn nothing_is_lost_between_epochs_and_threads() {
        const ROUNDS: u64 = 500;
        let counters = Counters::new(true).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let epoch = counters.open();
                        epoch.add(Kind::Put, false, 8);
                        epoch.add(Kind::FetchAndOp, true, 4);
                        counters.add(Kind::Put, Path::Transport, Reason::Remote, 2);
                    }
                });
            }
        });
        let explanation = counters.explanation();
        let rows = [
            (Kind::Put, Path::Direct, Reason::Mapped, 8),
            (Kind::FetchAndOp, Path::Cpu, Reason::Loopback, 4),
            (Kind::Put, Path::Transport, Reason::Remote, 2),
        ];
        for (kind, path, reason, bytes) in rows {
            let count = Count { operations: 4 * ROUNDS, bytes: 4 * ROUNDS * bytes };
            assert_eq!(explanation.by_reason(kind, path, reason), count);
        }
        assert_eq!(explanation.total().operations, 12 * ROUNDS);
        assert!(counters.epochs.lock().all.len() <= 4, "epochs pass their counters on");
    }

    #[test]
    fn every_row_is_told_as_it_was_counted() {
        let counters = Counters::new(true).unwrap();
        for kind in Kind::ALL {
            for path in Path::ALL {
                for reason in Reason::ALL {
                    let number = 1 + *kind as usize * 10_000 + *path as usize * 100 + *reason as usize;
                    counters.add(*kind, *path, *reason, number);
                }
            }
        }
        for Entry { kind, path, reason, count } in counters.explanation().entries() {
            let number = 1 + kind as u64 * 10_000 + path as u64 * 100 + reason as u64;
            assert_eq!(count, Count { operations: 1, bytes: number });
        }
        assert_eq!(counters.explanation().entries().count(), counters.rest.len());
    }

    #[test]
    fn what_is_not_asked_for_is_not_counted() {
        assert!(Counters::new(false).is_none());
    }
}
