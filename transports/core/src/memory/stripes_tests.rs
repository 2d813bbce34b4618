//! The lock of a stripe under a model checker, for three threads. A lost wake-up is a deadlock, which the checker reports.

use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};

use super::{AWAITED, FREE, HELD, Word, hold, release};

/// A word with a futex's guarantee: between the look at the word and the sleep no wake-up goes by.
#[derive(Default)]
struct Futex {
    word: AtomicU32,
    bucket: Mutex<()>,
    wake: Condvar,
    holders: AtomicUsize,
}

impl Word for Futex {
    fn try_hold(&self) -> bool {
        self.word.compare_exchange(FREE, HELD, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn read(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn swap(&self, value: u32) -> u32 {
        self.word.swap(value, Ordering::SeqCst)
    }

    fn sleep(&self) {
        let bucket = self.bucket.lock().unwrap();
        if self.read() == AWAITED {
            drop(self.wake.wait(bucket).unwrap());
        }
    }

    fn wake_one(&self) {
        let _bucket = self.bucket.lock().unwrap();
        self.wake.notify_one();
    }
}

fn participate(word: &Futex) {
    for _ in 0..2 {
        hold(word);
        assert_eq!(word.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
        word.holders.fetch_sub(1, Ordering::SeqCst);
        release(word);
    }
}

#[test]
fn shuttle_three_threads_exclude_each_other_and_none_sleeps_on() {
    let run = || {
        let word = Arc::new(Futex::default());
        let others = [(); 2].map(|()| {
            let word = word.clone();
            shuttle::thread::spawn(move || participate(&word))
        });
        participate(&word);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(word.read(), FREE);
    };
    shuttle::check_random(run, 4_000);
    shuttle::check_pct(run, 4_000, 3);
}
