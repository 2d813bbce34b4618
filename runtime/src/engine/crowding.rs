//! Ranks that were put on one core while another is free: each polls until it yields to the other, so every message costs two switches
//! of threads. The kernel balances computing threads; these two give way all the time and may stay together for seconds.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use nix::sched::{sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// A yield that nobody takes is over sooner.
const ALONE: Duration = Duration::from_micros(1);
/// Yields in a row that somebody took, before this thread looks for another core: so many, and up to as many more, by chance, or both
/// threads of a core would leave it for the other's.
const PATIENCE: u32 = 32;
/// How long a thread stays where it has gone. Twice as long each time, as all cores may be taken.
const STAY: Duration = Duration::from_millis(1);
const LONGEST_STAY: Duration = Duration::from_secs(1);

/// What one thread's yields tell.
#[derive(Debug)]
pub(super) struct Crowding {
    /// Yields in a row that somebody took.
    taken: u32,
    patience: u32,
    /// The thread's switches when that row began.
    switches: i64,
    stay: Duration,
    until: Option<Instant>,
    chance: RandomState,
}

impl Default for Crowding {
    fn default() -> Self {
        Self {
            taken: 0,
            patience: PATIENCE,
            switches: 0,
            stay: STAY,
            until: None,
            chance: RandomState::new(),
        }
    }
}

impl Crowding {
    /// To be told of each yield: when it was over, and how long it took. Goes to another core if this one is shared.
    #[inline]
    pub fn yielded(&mut self, back: Instant, took: Duration) {
        if self.is_crowded(back, took, switches) && !leave_core() {
            // There is no other.
            self.stay = LONGEST_STAY;
            self.until = Some(back + self.stay);
        }
    }

    /// Whether to look for another core. `switches`: how often the thread was made to leave its core.
    fn is_crowded(&mut self, back: Instant, took: Duration, switches: impl Fn() -> i64) -> bool {
        if took < ALONE {
            self.taken = 0;
            return false;
        }
        if self.until.is_some_and(|until| back < until) {
            return false;
        }
        self.taken += 1;
        if self.taken == 1 {
            self.switches = switches();
            let chance = self.chance.hash_one(self.switches) as u32;
            self.patience = PATIENCE + chance % PATIENCE;
        }
        if self.taken < self.patience {
            return false;
        }
        // The clock alone would take a slow machine for a crowded core.
        let taken = switches() - self.switches >= i64::from(self.taken) / 2;
        self.taken = 0;
        self.until = Some(back + self.stay);
        self.stay = (2 * self.stay).min(LONGEST_STAY);
        taken
    }
}

/// How often this thread was made to leave its core: a yield that somebody takes counts as that (getrusage(2)).
fn switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

/// Takes this thread to another of the cores that it may run on. Where it may run stays as it was. False where there is no other.
fn leave_core() -> bool {
    let this_thread = Pid::from_raw(0);
    let (Ok(all), Ok(core)) = (sched_getaffinity(this_thread), sched_getcpu()) else { return false };
    let mut others = all;
    // An empty set is refused, as is one whose cores are all offline.
    let moved = others.unset(core).is_ok() && sched_setaffinity(this_thread, &others).is_ok();
    moved && sched_setaffinity(this_thread, &all).is_ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const TAKEN: Duration = Duration::from_micros(3);
    const FREE: Duration = Duration::from_nanos(300);

    /// Yields until the core is left; none if it is not in so many.
    fn yields_until_left(
        crowding: &mut Crowding,
        now: Instant,
        took: Duration,
        per_yield: i64,
    ) -> Option<u32> {
        let switches = Cell::new(100);
        (1..=1000).find(|_| {
            switches.set(switches.get() + per_yield);
            crowding.is_crowded(now, took, || switches.get())
        })
    }

    #[test]
    fn a_core_is_left_when_others_take_every_yield() {
        let yields = yields_until_left(&mut Crowding::default(), Instant::now(), TAKEN, 1);
        assert!(yields.is_some_and(|yields| (PATIENCE..2 * PATIENCE).contains(&yields)), "{yields:?}");
    }

    #[test]
    fn a_free_core_and_a_slow_one_are_kept() {
        let now = Instant::now();
        assert_eq!(yields_until_left(&mut Crowding::default(), now, FREE, 0), None);
        assert_eq!(yields_until_left(&mut Crowding::default(), now, TAKEN, 0), None);
        // Somebody comes by now and then.
        let mut crowding = Crowding::default();
        for _ in 0..100 {
            assert!((1..PATIENCE).all(|_| !crowding.is_crowded(now, TAKEN, || 0)));
            assert!(!crowding.is_crowded(now, FREE, || 0));
        }
    }

    #[test]
    fn who_finds_no_better_core_looks_less_and_less_often() {
        let (mut crowding, mut now) = (Crowding::default(), Instant::now());
        for stay in [1, 2, 4, 8] {
            assert!(yields_until_left(&mut crowding, now, TAKEN, 1).is_some());
            assert_eq!(yields_until_left(&mut crowding, now, TAKEN, 1), None, "{stay}");
            now += Duration::from_millis(stay);
        }
    }

    #[test]
    fn a_thread_that_leaves_its_core_may_run_where_it_could_before() {
        let cores = || sched_getaffinity(Pid::from_raw(0)).unwrap();
        let before = cores();
        let allowed = (0..nix::sched::CpuSet::count()).filter(|core| before.is_set(*core).unwrap()).count();
        assert_eq!(leave_core(), allowed > 1);
        assert_eq!(cores(), before);
        // Of a single core there is no other.
        let one = sched_getcpu().unwrap();
        let mut single = nix::sched::CpuSet::new();
        single.set(one).unwrap();
        sched_setaffinity(Pid::from_raw(0), &single).unwrap();
        assert!(!leave_core());
        assert_eq!(cores(), single);
    }
}
