//! Back-off of a blocked thread that has found nothing: polls on, yields its core, or sleeps in the kernel.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a wait polls before it sleeps, where ranks have a core each, and where they share.
const SPIN: Duration = Duration::from_millis(5);
const SPIN_SHARED: Duration = Duration::from_micros(50);
/// How long a wait polls on a core of its own between two yields. Where cores are oversubscribed, the rank that must answer
/// is likely to wait for this one: it is yielded at every check.
const YIELD_INTERVAL: Duration = Duration::from_micros(2);
/// Checks of signals between two polls, on a core of its own: as long as a signal takes, most often.
const CHECKS: u32 = 32;
/// Looks whether there is anything to poll for between two polls, on a core of its own.
const LOOKS: u32 = 8;
/// A yield that lasts longer gave the core to a computing thread: a thread that yields waits for the end of that thread's
/// time slice, one that sleeps preempts it when woken.
const SLICE: Duration = Duration::from_millis(1);
/// How long no thread yields after that.
const OVERSUBSCRIBED_FOR: Duration = Duration::from_millis(100);

thread_local! {
    /// Until when this thread's core counts as oversubscribed.
    static OVERSUBSCRIBED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Poll,
    Yield,
    Sleep,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    spin: Duration,
    yield_interval: Duration,
}

/// The state of a wait since it last found something.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    since: Option<Instant>,
    yielded: Option<Instant>,
}

impl Backoff {
    /// `spin`: the user's setting, which overrides the default.
    pub fn new(ranks: usize, cores: usize, spin: Option<Duration>) -> Self {
        let (default, yield_interval) =
            if ranks > cores { (SPIN_SHARED, Duration::ZERO) } else { (SPIN, YIELD_INTERVAL) };
        Self { spin: spin.unwrap_or(default), yield_interval }
    }

    /// How often a wait checks its condition between two polls of the transports.
    pub fn checks_per_poll(&self) -> u32 {
        if self.yield_interval.is_zero() { 1 } else { CHECKS }
    }

    /// How often a wait looks whether there is anything to poll for, before it does.
    pub fn looks_per_poll(&self) -> u32 {
        if self.yield_interval.is_zero() { 1 } else { LOOKS }
    }

    /// The next step of a wait that has found nothing at `now`. Yields here, and says so; sleeping is the caller's part.
    pub fn next(&self, idle: &mut Idle, now: Instant) -> Step {
        let oversubscribed = OVERSUBSCRIBED_UNTIL.get().is_some_and(|until| now < until);
        let step = self.step(idle, now, oversubscribed);
        if step == Step::Yield {
            std::thread::yield_now();
            let back = Instant::now();
            if back - now >= SLICE {
                OVERSUBSCRIBED_UNTIL.set(Some(back + OVERSUBSCRIBED_FOR));
            }
        }
        step
    }

    fn step(&self, idle: &mut Idle, now: Instant, oversubscribed: bool) -> Step {
        let since = *idle.since.get_or_insert(now);
        if oversubscribed || now - since >= self.spin {
            return Step::Sleep;
        }
        if now - idle.yielded.unwrap_or(since) < self.yield_interval {
            return Step::Poll;
        }
        idle.yielded = Some(now);
        Step::Yield
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a wait that checks every microsecond, `checks` times.
    fn steps(backoff: Backoff, oversubscribed: bool, checks: u64) -> Vec<Step> {
        let (mut idle, start) = (Idle::default(), Instant::now());
        let at = |check| start + Duration::from_micros(check);
        (0..checks).map(|check| backoff.step(&mut idle, at(check), oversubscribed)).collect()
    }

    #[test]
    fn a_shared_core_is_offered_at_every_look_before_anybody_sleeps() {
        let steps = steps(Backoff::new(3, 2, None), false, 52);
        assert!(steps[..50].iter().all(|step| *step == Step::Yield), "{steps:?}");
        assert_eq!(steps[50..], [Step::Sleep; 2]);
    }

    #[test]
    fn a_core_of_its_own_is_kept_for_a_moment_and_then_offered_now_and_then() {
        use Step::{Poll, Yield};
        assert_eq!(steps(Backoff::new(2, 2, None), false, 7), [Poll, Poll, Yield, Poll, Yield, Poll, Yield]);
    }

    #[test]
    fn nobody_offers_a_core_to_those_who_compute() {
        for ranks in [2, 3] {
            assert_eq!(steps(Backoff::new(ranks, 2, None), true, 3), [Step::Sleep; 3]);
        }
    }

    #[test]
    fn the_time_that_the_user_gives_counts() {
        let wish = Some(Duration::from_micros(3));
        for ranks in [2, 3] {
            let steps = steps(Backoff::new(ranks, 2, wish), false, 5);
            assert!(!steps[..3].contains(&Step::Sleep), "{steps:?}");
            assert_eq!(steps[3..], [Step::Sleep; 2]);
        }
        assert_eq!(steps(Backoff::new(1, 2, Some(Duration::ZERO)), false, 2), [Step::Sleep; 2]);
    }

    #[test]
    fn a_wait_that_finds_something_begins_anew() {
        let (backoff, now) = (Backoff::new(3, 2, None), Instant::now());
        let mut idle = Idle::default();
        assert_eq!(backoff.step(&mut idle, now, false), Step::Yield);
        let later = now + Duration::from_secs(1);
        assert_eq!(backoff.step(&mut idle, later, false), Step::Sleep);
        assert_eq!(backoff.step(&mut Idle::default(), later, false), Step::Yield);
    }
}
