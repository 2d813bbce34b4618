//! Whether ranks have a core each: a rank that waits polls for longer where no other wants its core (`engine/backoff.rs`).

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use transom_shm::Place;

/// The processors that a process may run on, as a bit each. Empty: unknown.
pub(super) type Processors = Vec<u64>;

/// Those of this thread (sched_getaffinity(2)).
pub(super) fn allowed() -> Processors {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut words = Vec::new();
    for cpu in (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)) {
        words.resize(words.len().max(cpu / 64 + 1), 0);
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    words
}

/// How many ranks there are on how many processors, of those that rank `rank` may run on: the ranks of its machine that may run
/// there, too. `usable`: how many this process may use at once, which a quota may make fewer.
pub(super) fn shared_by(rank: usize, ranks: &[(Place, &Processors)], usable: usize) -> (usize, usize) {
    let (here, own) = &ranks[rank];
    let meets = |other: &Processors| {
        own.is_empty() || other.is_empty() || own.iter().zip(other).any(|(own, other)| own & other != 0)
    };
    let of_own =
        ranks.iter().filter(|(place, processors)| here.is_of_one_machine(place) && meets(processors));
    let allowed =
        |processors: &[u64]| processors.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    let mut all = own.to_vec();
    let mut count = 0;
    for (_, processors) in of_own {
        count += 1;
        all.resize(all.len().max(processors.len()), 0);
        all.iter_mut().zip(processors.iter()).for_each(|(all, word)| *all |= word);
    }
    let limited = own.is_empty() || usable < allowed(own);
    (count, if limited { usable } else { allowed(&all) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[&[u64]], rank: usize, usable: usize) -> (usize, usize) {
        let all: Vec<Processors> = all.iter().map(|words| words.to_vec()).collect();
        let ranks: Vec<_> = all.iter().map(|processors| (Place::here(), processors)).collect();
        shared_by(rank, &ranks, usable)
    }

    #[test]
    fn ranks_that_are_bound_have_cores_of_their_own() {
        assert_eq!(of(&[&[1], &[2]], 0, 1), (1, 1));
        assert_eq!(of(&[&[3], &[3]], 1, 2), (2, 2));
        assert_eq!(of(&[&[3], &[3], &[3]], 1, 2), (3, 2));
        assert_eq!(of(&[&[1], &[1]], 1, 1), (2, 1));
        // Sockets of two cores, each for two ranks; one of them beyond the 64th processor.
        assert_eq!(of(&[&[3], &[3], &[0, 3], &[0, 3]], 3, 2), (2, 2));
    }

    #[test]
    fn what_is_not_known_is_taken_to_be_shared() {
        assert_eq!(of(&[&[1], &[]], 0, 1), (2, 1));
        assert_eq!(of(&[&[], &[1]], 0, 4), (2, 4));
        // A quota of one processor's time.
        assert_eq!(of(&[&[3], &[3]], 0, 1), (2, 1));
    }

    #[test]
    fn this_thread_runs_somewhere() {
        assert!(allowed().iter().any(|word| *word != 0));
    }
}
