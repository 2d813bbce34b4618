//! Counts alone, and three participants under a model checker: two origins and a target, in every order of arrival that it
//! finds.

use shuttle::sync::atomic::AtomicU64 as Modelled;
use shuttle::sync::{Arc, Condvar, Mutex};

use super::*;
use crate::protocol::signals::count_there;

#[test]
fn calls_that_run_ahead_are_matched_in_order() {
    let (mut arrivals, consumed) = (Arrivals::default(), Consumed::<AtomicU64>::default());
    // Two starts without access end before any post arrives: the third needs the third post.
    consumed.consume(Call::Post);
    consumed.consume(Call::Post);
    for _ in 0..2 {
        arrivals.arrived(Call::Post, 7);
        assert!(!consumed.is_open(Call::Post, arrivals.count(Call::Post, 7)));
    }
    arrivals.arrived(Call::Post, 7);
    assert!(consumed.is_open(Call::Post, arrivals.count(Call::Post, 7)));
    assert_eq!((arrivals.count(Call::Post, 1), arrivals.count(Call::Complete, 7)), (0, 0));
    // An origin completes twice before the first wait: once by a word, and once by a message.
    arrivals.arrived(Call::Complete, 7);
    let arrived = arrivals.count(Call::Complete, 7) + 1;
    for _ in 0..2 {
        assert!(consumed.is_open(Call::Complete, arrived));
        consumed.consume(Call::Complete);
    }
    assert!(!consumed.is_open(Call::Complete, arrived));
}

/// The signals of one rank, and the memory that it exposes. Origin 1 signals in shared memory, origin 2 sends messages.
#[derive(Default)]
struct Rank {
    posts: [Modelled; 3],
    completes: [Modelled; 3],
    consumed: [Consumed<Modelled>; 3],
    /// The origins' own counts of what they have signalled.
    told: [Counts<Modelled>; 3],
    memory: Mutex<(Arrivals, Vec<u32>)>,
    changed: Condvar,
}

const BY_WORD: usize = 1;
const EPOCHS: u32 = 2;

impl Rank {
    fn tell(&self, call: Call, (from, to): (usize, usize)) {
        if from.max(to) == BY_WORD {
            let word = if call == Call::Post { &self.posts[from] } else { &self.completes[from] };
            count_there(word, self.told[from].of(call));
            // Under the lock, so that a waiter between its look and its sleep is not missed.
            drop(self.memory.lock().unwrap());
        } else {
            self.memory.lock().unwrap().0.arrived(call, from);
        }
        self.changed.notify_all();
    }

    fn await_and_consume(&self, call: Call, from: &[usize]) {
        let mut memory = self.memory.lock().unwrap();
        let arrived = |arrivals: &Arrivals, rank: usize| {
            let word = if call == Call::Post { &self.posts[rank] } else { &self.completes[rank] };
            word.read() + arrivals.count(call, rank)
        };
        while !from.iter().all(|rank| self.consumed[*rank].is_open(call, arrived(&memory.0, *rank))) {
            memory = self.changed.wait(memory).unwrap();
        }
        from.iter().for_each(|rank| self.consumed[*rank].consume(call));
    }
}

fn origin(ranks: &[Rank; 3], me: usize) {
    for epoch in 0..EPOCHS {
        ranks[me].await_and_consume(Call::Post, &[0]);
        ranks[0].memory.lock().unwrap().1.push(epoch);
        ranks[0].tell(Call::Complete, (me, 0));
    }
}

fn target(ranks: &[Rank; 3]) {
    for epoch in 0..EPOCHS {
        assert!(ranks[0].memory.lock().unwrap().1.is_empty(), "an access before the post");
        ranks[1].tell(Call::Post, (0, 1));
        ranks[2].tell(Call::Post, (0, 2));
        ranks[0].await_and_consume(Call::Complete, &[1, 2]);
        // Both accesses of this epoch are there, and none of the next.
        assert_eq!(std::mem::take(&mut ranks[0].memory.lock().unwrap().1), [epoch; 2]);
    }
}

#[test]
fn shuttle_accesses_stay_within_the_exposure() {
    let run = || {
        let ranks: Arc<[Rank; 3]> = Arc::default();
        let origins: Vec<_> = (1..3)
            .map(|me| {
                let ranks = ranks.clone();
                shuttle::thread::spawn(move || origin(&ranks, me))
            })
            .collect();
        target(&ranks);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
    };
    shuttle::check_random(run, 4_000);
    shuttle::check_pct(run, 4_000, 3);
}
