//! The locks of a word under a model checker, for three threads. A lost wake-up is a deadlock, which the checker reports.

use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};

use super::{FREE, LOCKS, Stripes, Word, hold, locks, release};

/// A word with a futex's guarantee: between the look at the word and the sleep no wake-up goes by.
#[derive(Default)]
struct Futex {
    word: AtomicU32,
    bucket: Mutex<()>,
    wake: [Condvar; LOCKS],
    holders: [AtomicUsize; LOCKS],
}

impl Word for Futex {
    fn read(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn change(&self, old: u32, new: u32) -> bool {
        self.word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn clear(&self, bits: u32) -> u32 {
        self.word.fetch_and(!bits, Ordering::SeqCst)
    }

    fn sleep(&self, value: u32, lock: u32) {
        let bucket = self.bucket.lock().unwrap();
        if self.read() == value {
            drop(self.wake[lock.trailing_zeros() as usize].wait(bucket).unwrap());
        }
    }

    fn wake_one(&self, lock: u32) {
        let _bucket = self.bucket.lock().unwrap();
        self.wake[lock.trailing_zeros() as usize].notify_one();
    }
}

fn participate(word: &Futex, first: usize, last: usize) {
    for _ in 0..2 {
        hold(word, locks(first, last));
        for holders in &word.holders[first..=last] {
            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold a lock");
        }
        for holders in &word.holders[first..=last] {
            holders.fetch_sub(1, Ordering::SeqCst);
        }
        release(word, locks(first, last));
    }
}

/// Three threads, each with its locks.
fn shuttle(all: [(usize, usize); 3]) {
    let run = move || {
        let word = Arc::new(Futex::default());
        let others = [all[1], all[2]].map(|(first, last)| {
            let word = word.clone();
            shuttle::thread::spawn(move || participate(&word, first, last))
        });
        participate(&word, all[0].0, all[0].1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(word.read(), FREE);
    };
    shuttle::check_random(run, 4_000);
    shuttle::check_pct(run, 4_000, 3);
}

#[test]
fn shuttle_three_threads_exclude_each_other_and_none_sleeps_on() {
    shuttle([(0, 0), (0, 0), (0, 0)]);
}

#[test]
fn shuttle_threads_with_several_locks_exclude_each_other_and_none_sleeps_on() {
    shuttle([(0, 3), (0, 1), (1, 2)]);
    shuttle([(0, 3), (1, 1), (3, 3)]);
}

#[test]
fn locks_of_a_range_are_those_of_its_places() {
    let bits = |first, last| {
        let stripes = Stripes::private().unwrap().coarser(64).joined();
        let _held = stripes.lock_range(first, last);
        let words: Vec<u32> =
            stripes.words.iter().map(|word| word.load(std::sync::atomic::Ordering::SeqCst)).collect();
        let of = |number: usize| words[number % Stripes::COUNT * 16] & 15;
        (of(0), of(1), of(63))
    };
    assert_eq!(bits(0, 63), (1, 0, 0));
    assert_eq!(bits(0, 64), (3, 0, 0));
    assert_eq!(bits(70, 255), (14, 0, 0));
    assert_eq!(bits(200, 256), (8, 1, 0));
    let end = 64 * 4 * 64;
    assert_eq!(bits(end - 10, end + 10), (1, 0, 8));
    // Places that lie far apart share a word where they are not joined.
    let stripes = Stripes::private().unwrap();
    assert_eq!(
        [0, 15, 16, 1024, 4096].map(|place| stripes.find(place)),
        [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0)]
    );
}
