//! Post, start, complete, wait: which matching calls have arrived, counted per rank (MPI-4.1 §12.5.2).
//!
//! A post is consumed by one start of the rank that it names, a complete by one wait. Calls may run ahead: counts keep
//! them apart. Memory and work grow with the groups, not with the job. Pure state, without threads or messages.

use std::collections::HashMap;

/// What has arrived at one rank, for one window. Ranks are those of the job.
#[derive(Debug, Default)]
pub struct Matching {
    /// Posts that arrived and were not consumed; below zero: consumed before they arrived.
    posts: HashMap<usize, i64>,
    /// Completes that arrived and were not consumed; below zero: of an exposure that was given up.
    completes: HashMap<usize, i64>,
}

fn add(counts: &mut HashMap<usize, i64>, rank: usize, change: i64) {
    let count = counts.entry(rank).or_insert(0);
    *count += change;
    if *count == 0 {
        counts.remove(&rank);
    }
}

impl Matching {
    /// `target` has posted its window to this rank.
    pub fn posted(&mut self, target: usize) {
        add(&mut self.posts, target, 1);
    }

    /// Whether the post of `target` that the current start waits for has arrived.
    pub fn is_posted(&self, target: usize) -> bool {
        self.posts.get(&target).is_some_and(|count| *count > 0)
    }

    /// The start that is matched by the next post of `target` has ended, whether or not that post has arrived.
    pub fn consume_post(&mut self, target: usize) {
        add(&mut self.posts, target, -1);
    }

    /// `origin` has completed an access epoch to this rank.
    pub fn completed(&mut self, origin: usize) {
        add(&mut self.completes, origin, 1);
    }

    /// The first of `origins` that has not completed.
    pub fn not_completed(&self, origins: &[usize]) -> Option<usize> {
        origins.iter().copied().find(|origin| self.completes.get(origin).is_none_or(|count| *count <= 0))
    }

    /// The wait for `origins` has ended, or will not be.
    pub fn consume_completes(&mut self, origins: &[usize]) {
        origins.iter().for_each(|origin| add(&mut self.completes, *origin, -1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_run_ahead_are_matched_in_order() {
        let mut matching = Matching::default();
        // Two starts without access end before any post arrives: the third needs the third post.
        matching.consume_post(7);
        matching.consume_post(7);
        for _ in 0..2 {
            matching.posted(7);
            assert!(!matching.is_posted(7));
        }
        matching.posted(7);
        assert!(matching.is_posted(7));
        matching.consume_post(7);
        assert!(matching.posts.is_empty());
        // An origin completes twice before the first wait.
        matching.completed(1);
        matching.completed(1);
        matching.completed(2);
        for _ in 0..2 {
            assert_eq!(matching.not_completed(&[1]), None);
            matching.consume_completes(&[1]);
        }
        assert_eq!(matching.not_completed(&[1, 2]), Some(1));
        assert_eq!(matching.not_completed(&[]), None);
    }
}

/// Three participants under a model checker: two origins and a target, in every order of arrival that it finds.
#[cfg(test)]
mod shuttle_tests {
    use shuttle::sync::{Arc, Condvar, Mutex};

    use super::*;

    /// What one rank has received, and the memory that it exposes.
    #[derive(Default)]
    struct Rank {
        matching: Mutex<(Matching, Vec<u32>)>,
        changed: Condvar,
    }

    impl Rank {
        fn tell(&self, what: impl FnOnce(&mut Matching)) {
            what(&mut self.matching.lock().unwrap().0);
            self.changed.notify_all();
        }

        fn await_then(&self, ready: impl Fn(&Matching) -> bool, then: impl FnOnce(&mut Matching)) {
            let mut state = self.matching.lock().unwrap();
            while !ready(&state.0) {
                state = self.changed.wait(state).unwrap();
            }
            then(&mut state.0);
        }
    }

    const EPOCHS: u32 = 2;

    fn origin(ranks: &[Rank; 3], me: usize) {
        for epoch in 0..EPOCHS {
            ranks[me].await_then(|m| m.is_posted(0), |m| m.consume_post(0));
            ranks[0].matching.lock().unwrap().1.push(epoch);
            ranks[0].tell(|m| m.completed(me));
        }
    }

    fn target(ranks: &[Rank; 3]) {
        for epoch in 0..EPOCHS {
            assert!(ranks[0].matching.lock().unwrap().1.is_empty(), "an access before the post");
            ranks[1].tell(|m| m.posted(0));
            ranks[2].tell(|m| m.posted(0));
            ranks[0].await_then(|m| m.not_completed(&[1, 2]).is_none(), |m| m.consume_completes(&[1, 2]));
            // Both accesses of this epoch are there, and none of the next.
            assert_eq!(std::mem::take(&mut ranks[0].matching.lock().unwrap().1), [epoch; 2]);
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
}
