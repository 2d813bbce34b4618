//! What a thread does that waits and has found nothing: polls on, offers its core, or sleeps in the kernel.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a wait polls before it sleeps, where ranks have a core each, and where they share.
const SPIN: Duration = Duration::from_millis(5);
const SPIN_SHARED: Duration = Duration::from_micros(50);
/// How long a wait keeps a core of its own before it offers it to others, now and then. Where ranks share cores, whoever must
/// answer is likely to wait for this one: it is offered at every look.
const KEEP: Duration = Duration::from_micros(2);
/// Looks at words between two polls, where a wait keeps its core: as long as a signal takes, most often.
const LOOKS: u32 = 32;
/// A core that comes back later than this went to somebody who computes: a thread that yields waits for the end of such a
/// time slice, one that sleeps is woken in front of it.
const SLICE: Duration = Duration::from_micros(500);
/// How long nobody yields after that.
const CROWDED: Duration = Duration::from_millis(100);

thread_local! {
    /// Until when this thread's core is taken for one that others compute on.
    static CROWDED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Poll,
    Yield,
    Sleep,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    spin: Duration,
    keep: Duration,
}

/// A wait, since it last found something.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    since: Option<Instant>,
    yielded: Option<Instant>,
}

impl Patience {
    /// `spin`: the user's wish, which is followed.
    pub fn new(ranks: usize, cores: usize, spin: Option<Duration>) -> Self {
        let (default, keep) = if ranks > cores { (SPIN_SHARED, Duration::ZERO) } else { (SPIN, KEEP) };
        Self { spin: spin.unwrap_or(default), keep }
    }

    /// How often a wait looks at what it waits for between two polls of all else.
    pub fn looks(&self) -> u32 {
        if self.keep.is_zero() { 1 } else { LOOKS }
    }

    /// The next step of a wait that has looked at `now` and found nothing. Yields here, and says so; whoever is to sleep
    /// does that.
    pub fn next(&self, idle: &mut Idle, now: Instant) -> Step {
        let crowded = CROWDED_UNTIL.get().is_some_and(|until| now < until);
        let step = self.step(idle, now, crowded);
        if step == Step::Yield {
            std::thread::yield_now();
            let back = Instant::now();
            if back - now >= SLICE {
                CROWDED_UNTIL.set(Some(back + CROWDED));
            }
        }
        step
    }

    fn step(&self, idle: &mut Idle, now: Instant, crowded: bool) -> Step {
        let since = *idle.since.get_or_insert(now);
        if crowded || now - since >= self.spin {
            return Step::Sleep;
        }
        if now - idle.yielded.unwrap_or(since) < self.keep {
            return Step::Poll;
        }
        idle.yielded = Some(now);
        Step::Yield
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a wait that looks every microsecond, as often as `looks` says.
    fn steps(patience: Patience, crowded: bool, looks: u64) -> Vec<Step> {
        let (mut idle, start) = (Idle::default(), Instant::now());
        let at = |look| start + Duration::from_micros(look);
        (0..looks).map(|look| patience.step(&mut idle, at(look), crowded)).collect()
    }

    #[test]
    fn a_shared_core_is_offered_at_every_look_before_anybody_sleeps() {
        let steps = steps(Patience::new(3, 2, None), false, 52);
        assert!(steps[..50].iter().all(|step| *step == Step::Yield), "{steps:?}");
        assert_eq!(steps[50..], [Step::Sleep; 2]);
    }

    #[test]
    fn a_core_of_its_own_is_kept_for_a_moment_and_then_offered_now_and_then() {
        use Step::{Poll, Yield};
        assert_eq!(steps(Patience::new(2, 2, None), false, 7), [Poll, Poll, Yield, Poll, Yield, Poll, Yield]);
    }

    #[test]
    fn nobody_offers_a_core_to_those_who_compute() {
        for ranks in [2, 3] {
            assert_eq!(steps(Patience::new(ranks, 2, None), true, 3), [Step::Sleep; 3]);
        }
    }

    #[test]
    fn the_time_that_the_user_gives_counts() {
        let wish = Some(Duration::from_micros(3));
        for ranks in [2, 3] {
            let steps = steps(Patience::new(ranks, 2, wish), false, 5);
            assert!(!steps[..3].contains(&Step::Sleep), "{steps:?}");
            assert_eq!(steps[3..], [Step::Sleep; 2]);
        }
        assert_eq!(steps(Patience::new(1, 2, Some(Duration::ZERO)), false, 2), [Step::Sleep; 2]);
    }

    #[test]
    fn a_wait_that_finds_something_begins_anew() {
        let (patience, now) = (Patience::new(3, 2, None), Instant::now());
        let mut idle = Idle::default();
        assert_eq!(patience.step(&mut idle, now, false), Step::Yield);
        let later = now + Duration::from_secs(1);
        assert_eq!(patience.step(&mut idle, later, false), Step::Sleep);
        assert_eq!(patience.step(&mut Idle::default(), later, false), Step::Yield);
    }
}
