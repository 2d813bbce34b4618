//! The rounds of a barrier: dissemination, after D. Hensgen, R. Finkel and U. Manber, 1988.

/// The rounds of one rank of `size`: the rank to signal, the rank to wait for, and the round's number. A rank that has
/// completed them knows that all have entered the barrier.
///
/// After the round of distance d a rank knows of the 2d - 1 ranks before it: in log2(size) rounds of all.
pub fn rounds((rank, size): (usize, usize)) -> impl Iterator<Item = (usize, usize, usize)> {
    std::iter::successors(Some(1usize), |distance| distance.checked_mul(2))
        .take_while(move |distance| *distance < size)
        .map(move |distance| ((rank + distance) % size, (rank + size - distance) % size, distance))
}

/// Three participants under a model checker, with the table of messages that ranks use.
#[cfg(test)]
mod shuttle_tests {
    use shuttle::sync::atomic::{AtomicUsize, Ordering};
    use shuttle::sync::{Condvar, Mutex};

    use super::*;
    use crate::protocol::matching::{Key, Matching};
    use crate::protocol::participants::check;

    const RANKS: usize = 3;
    const FENCES: usize = 3;
    const FENCE: u8 = 5;

    #[derive(Default)]
    struct Rank {
        matching: Mutex<Matching>,
        arrived: Condvar,
        /// Fences that the rank has entered.
        come: AtomicUsize,
    }

    fn key(source: usize, sequence: usize, round: usize) -> Key {
        Key { source, context: 0, sequence: sequence as u64, round: round as u64 }
    }

    fn fence(ranks: &[Rank; RANKS], me: usize, number: usize) {
        for (to, from, round) in rounds((me, RANKS)) {
            let own = key(me, number, round);
            assert!(ranks[to].matching.lock().unwrap().arrived(own, FENCE, 0, 0, b"".into()));
            ranks[to].arrived.notify_all();
            let mut matching = ranks[me].matching.lock().unwrap();
            while matching.take(key(from, number, round), FENCE).unwrap().is_none() {
                matching = ranks[me].arrived.wait(matching).unwrap();
            }
        }
        ranks[me].matching.lock().unwrap().finish(0, number as u64);
    }

    fn participate(ranks: &[Rank; RANKS], me: usize) {
        for number in 0..FENCES {
            ranks[me].come.fetch_add(1, Ordering::SeqCst);
            fence(ranks, me, number);
            for rank in ranks {
                let come = rank.come.load(Ordering::SeqCst);
                assert!(come > number, "a rank left before all had come");
                assert!(come <= number + 2, "a rank left the next fence, too");
            }
        }
    }

    #[test]
    fn shuttle_nobody_leaves_a_fence_before_all_have_come() {
        check(participate);
    }
}
