//! By which stores long data is written to memory that another process reads.
//!
//! What is written was read by the other last, often. Where both cores share a cache, its lines come soon; where they do not, as between
//! the chiplets of AMD's EPYC or two sockets, each line is fetched from the other core first: on Zen 4 16 KiB then take ten
//! times as long to write as by stores that go past all caches. Where a cache is shared, those take 1.2 times as long to write, and
//! make the reader read memory. Which it is depends on where both run, and whether the other reads at all, and may change: it is
//! measured, all the time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Data of fewer bytes is written as all else.
const LEAST: usize = 4096;
/// Picoseconds a byte that stores past caches are taken to need at the least: a few pages of them are buffered, which the reader waits for.
const LEAST_PAST_CACHES: u32 = 40;
/// One in so many is measured.
const MEASURED: u32 = 16;
/// One in so many is written the other way, and measured.
const OTHERWISE: u32 = 256;
/// Past caches if others take so many times as long: the reader is slower then.
const TIMES: u32 = 5;
const TIMES_OF: u32 = 2;

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// As all else.
    Cached,
    /// Past all caches.
    PastCaches,
}

/// Which take less time to one place.
#[derive(Debug, Default)]
pub struct Choice {
    count: AtomicU32,
    /// Picoseconds a byte, of either way; 0: not known.
    cached: AtomicU32,
    past_caches: AtomicU32,
}

/// Data is being written, and measured.
#[derive(Debug)]
pub struct Measured {
    stores: Stores,
    start: Instant,
}

impl Choice {
    /// How to write the next data, of so many bytes; and the beginning of a measurement, if it is to be measured.
    #[inline]
    pub fn next(&self, bytes: usize) -> (Stores, Option<Measured>) {
        if bytes < LEAST { (Stores::Cached, None) } else { self.next_long() }
    }

    fn next_long(&self) -> (Stores, Option<Measured>) {
        let count = self.count.load(Ordering::Relaxed);
        // Threads that count at once count one.
        self.count.store(count.wrapping_add(1), Ordering::Relaxed);
        let usual = self.usual();
        let stores = match (count % OTHERWISE == MEASURED / 2, usual) {
            (false, usual) => usual,
            (true, Stores::Cached) => Stores::PastCaches,
            (true, Stores::PastCaches) => Stores::Cached,
        };
        let measured = count.is_multiple_of(MEASURED) || stores != usual;
        (stores, measured.then(|| Measured { stores, start: Instant::now() }))
    }

    /// It is for another place from now on.
    pub fn forget(&self) {
        for known in [&self.count, &self.cached, &self.past_caches] {
            known.store(0, Ordering::Relaxed);
        }
    }

    fn usual(&self) -> Stores {
        let [cached, past] = [&self.cached, &self.past_caches].map(|taken| taken.load(Ordering::Relaxed));
        match past > 0 && u64::from(cached) * u64::from(TIMES_OF) > u64::from(past) * u64::from(TIMES) {
            true => Stores::PastCaches,
            false => Stores::Cached,
        }
    }

    /// So many bytes have been written.
    pub fn written(&self, bytes: usize, measured: &Measured) {
        self.took(measured.stores, bytes, measured.start.elapsed());
    }

    fn took(&self, stores: Stores, bytes: usize, time: Duration) {
        let now = time.as_nanos().saturating_mul(1000) / bytes.max(1) as u128;
        let now = u32::try_from(now).unwrap_or(u32::MAX).max(1);
        let (known, now) = match stores {
            Stores::Cached => (&self.cached, now),
            Stores::PastCaches => (&self.past_caches, now.max(LEAST_PAST_CACHES)),
        };
        // What took longer may have been interrupted: it counts little, unless it goes on.
        let before = known.load(Ordering::Relaxed);
        let after =
            if before == 0 || now <= before { now } else { before + ((now - before) / 4).min(before) };
        known.store(after, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 16384;

    /// Of so many pieces of data, how many are written past caches, if either way takes so many nanoseconds.
    fn past_caches(choice: &Choice, payloads: u32, cached: u64, past: u64) -> u32 {
        (0..payloads)
            .filter(|_| {
                let (stores, measured) = choice.next(BYTES);
                let time = if stores == Stores::Cached { cached } else { past };
                if let Some(measured) = measured {
                    choice.took(measured.stores, BYTES, Duration::from_nanos(time));
                }
                stores == Stores::PastCaches
            })
            .count() as u32
    }

    #[test]
    fn what_takes_less_is_used_and_the_other_tried_now_and_then() {
        let choice = Choice::default();
        assert_eq!(past_caches(&choice, 10 * OTHERWISE, 450, 600), 10);
        // The ranks have moved apart, and come together again.
        let apart = past_caches(&choice, 10 * OTHERWISE, 6500, 620);
        assert!(apart > 9 * OTHERWISE, "{apart}");
        let together = past_caches(&choice, 10 * OTHERWISE, 450, 600);
        assert!(together < 2 * OTHERWISE, "{together}");
    }

    #[test]
    fn what_buffers_hold_is_no_reason() {
        let choice = Choice::default();
        // A page each.
        choice.took(Stores::Cached, 4096, Duration::from_nanos(250));
        choice.took(Stores::PastCaches, 4096, Duration::from_nanos(75));
        assert_eq!((choice.usual(), choice.next(4095).0), (Stores::Cached, Stores::Cached));
        for _ in 0..8 {
            choice.took(Stores::Cached, 4096, Duration::from_nanos(940));
        }
        assert_eq!((choice.usual(), choice.next(4095).0), (Stores::PastCaches, Stores::Cached));
    }

    #[test]
    fn one_that_was_interrupted_changes_nothing() {
        let choice = Choice::default();
        past_caches(&choice, OTHERWISE, 450, 600);
        choice.took(Stores::Cached, BYTES, Duration::from_millis(4));
        assert_eq!(choice.usual(), Stores::Cached);
        choice.took(Stores::PastCaches, BYTES, Duration::from_secs(1 << 40));
        assert_eq!(choice.usual(), Stores::Cached);
        choice.took(Stores::Cached, 0, Duration::ZERO);
    }

    #[test]
    fn another_place_is_measured_anew() {
        let choice = Choice::default();
        past_caches(&choice, OTHERWISE, 6500, 620);
        choice.forget();
        assert_eq!(past_caches(&choice, OTHERWISE, 450, 600), 1);
    }

    #[test]
    fn the_first_touch_of_a_queue_is_no_reason() {
        let choice = Choice::default();
        assert_eq!(past_caches(&choice, OTHERWISE, 12_000, 12_500), 1);
        assert_eq!(past_caches(&choice, OTHERWISE, 450, 600), 1);
    }
}
