//! Signals alone, and three participants under a model checker.

use shuttle::sync::atomic::{AtomicU64 as Modelled, AtomicUsize, Ordering as Order};
use shuttle::sync::{Condvar, Mutex};

use super::*;
use crate::protocol::dissemination::rounds;
use crate::protocol::participants::check;

#[test]
fn flags_tell_which_round_and_kind() {
    let words = [AtomicU64::new(0), AtomicU64::new(0)];
    let words = [&words[0], &words[1]];
    assert_eq!(flagged(words, 0), None);
    flag(words, 0, 5);
    assert_eq!((flagged(words, 0), flagged(words, 1), flagged(words, 2)), (Some(Some(5)), None, None));
    flag(words, 1, 7);
    assert_eq!((flagged(words, 0), flagged(words, 1)), (Some(Some(5)), Some(Some(7))));
    // Two rounds ahead: the reader of round 0 learns that it has been, but not of what kind.
    flag(words, 2, 9);
    assert_eq!((flagged(words, 0), flagged(words, 2)), (Some(None), Some(Some(9))));
}

#[test]
fn counts_wrap_around() {
    let word = AtomicU64::new(u64::MAX);
    count(&word);
    assert_eq!(word.read(), 0);
}

impl Word for Modelled {
    fn read(&self) -> u64 {
        self.load(Order::SeqCst)
    }

    fn write(&self, value: u64) {
        self.store(value, Order::SeqCst);
    }
}

impl Sleepers for AtomicUsize {
    fn add_one(&self) {
        self.fetch_add(1, Order::SeqCst);
    }

    fn take_one(&self) {
        self.fetch_sub(1, Order::SeqCst);
    }

    fn any(&self) -> bool {
        self.load(Order::SeqCst) > 0
    }
}

const RANKS: usize = 3;

/// The signals of a rank, and its sleeping threads.
#[derive(Default)]
struct Rank {
    /// By origin.
    flags: [[Modelled; 2]; RANKS],
    counts: [Modelled; RANKS],
    asleep: AtomicUsize,
    /// Messages that ring for it.
    rung: Mutex<usize>,
    bell: Condvar,
    come: AtomicUsize,
}

impl Rank {
    fn ring_if_asleep(&self) {
        if self.asleep.any() {
            *self.rung.lock().unwrap() += 1;
            self.bell.notify_all();
        }
    }

    /// A sleep ends by a message alone: one that is missing is a deadlock, which the checker finds.
    fn await_raised(&self, ready: impl Fn() -> bool) {
        while !ready() {
            let _asleep = Asleep::new(&self.asleep);
            let mut rung = self.rung.lock().unwrap();
            if ready() {
                return;
            }
            while *rung == 0 {
                rung = self.bell.wait(rung).unwrap();
            }
            *rung = 0;
        }
    }
}

fn flags_of(rank: &Rank, origin: usize) -> [&Modelled; 2] {
    let [even, odd] = &rank.flags[origin];
    [even, odd]
}

fn fences(ranks: &[Rank; RANKS], me: usize) {
    for number in 0..3 {
        ranks[me].come.fetch_add(1, Order::SeqCst);
        for (to, from, _) in rounds((me, RANKS)) {
            flag(flags_of(&ranks[to], me), number, number as u8);
            ranks[to].ring_if_asleep();
            let own = flags_of(&ranks[me], from);
            ranks[me].await_raised(|| flagged(own, number).is_some());
            // Fences alone never run so far ahead that the kind is lost.
            assert_eq!(flagged(own, number), Some(Some(number as u8)));
        }
        for rank in ranks {
            let come = rank.come.load(Order::SeqCst) as u64;
            assert!(come > number, "a rank left before all had come");
            assert!(come <= number + 2, "a rank left the next fence, too");
        }
    }
}

#[test]
fn shuttle_nobody_leaves_a_fence_of_flags_before_all_have_come() {
    check(fences);
}

/// Two ranks count at the first, which has to see each count.
fn counting(ranks: &[Rank; RANKS], me: usize) {
    let first = &ranks[0];
    for seen in 1..=3 {
        if me > 0 {
            count(&first.counts[me]);
            first.ring_if_asleep();
        } else {
            first.await_raised(|| first.counts[1..].iter().all(|word| word.read() >= seen));
        }
    }
}

#[test]
fn shuttle_no_wake_up_is_lost() {
    check(counting);
}
