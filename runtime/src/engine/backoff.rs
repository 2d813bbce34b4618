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
/// Looks in a row for what may come soon, on a core of its own: about two microseconds.
const SHORT_LOOKS: u32 = 256;
/// A yield that lasts longer gave the core to a computing thread: a thread that yields waits for the end of that thread's
/// time slice, one that sleeps preempts it when woken.
const SLICE: Duration = Duration::from_millis(1);
/// How long no thread yields after that: at first, since it may have been a daemon that has what it wanted; and at most, where it
/// happens again and again.
const OVERSUBSCRIBED_FOR: Duration = Duration::from_millis(2);
const OVERSUBSCRIBED_LONGEST: Duration = Duration::from_millis(100);

/// A time in which a core counts as oversubscribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Oversubscribed {
    until: Instant,
    length: Duration,
}

impl Oversubscribed {
    /// The next, from `now` on, behind the `last`.
    fn next(last: Option<Self>, now: Instant) -> Self {
        let again = last.filter(|last| now.saturating_duration_since(last.until) < OVERSUBSCRIBED_LONGEST);
        let length = again.map_or(OVERSUBSCRIBED_FOR, |last| (2 * last.length).min(OVERSUBSCRIBED_LONGEST));
        Self { until: now + length, length }
    }
}

thread_local! {
    /// When this thread's core counted as oversubscribed last, or does.
    static OVERSUBSCRIBED: Cell<Option<Oversubscribed>> = const { Cell::new(None) };
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

    /// Whether each rank has a core of its own.
    pub fn has_cores(&self) -> bool {
        !self.yield_interval.is_zero()
    }

    /// How often a wait checks its condition between two polls of the transports.
    pub fn checks_per_poll(&self) -> u32 {
        if self.has_cores() { CHECKS } else { 1 }
    }

    /// How often a wait looks whether there is anything to poll for, before it does.
    pub fn looks_per_poll(&self) -> u32 {
        if self.has_cores() { LOOKS } else { 1 }
    }

    /// How often a wait looks in a row for what may come soon, before it does anything else.
    pub fn short_looks(&self) -> u32 {
        if self.has_cores() { SHORT_LOOKS } else { 1 }
    }

    /// The next step of a wait that has found nothing at `now`. Yields here, and says so; sleeping is the caller's part.
    pub fn next(&self, idle: &mut Idle, now: Instant) -> Step {
        let last = OVERSUBSCRIBED.get();
        let oversubscribed = last.is_some_and(|last| now < last.until);
        let step = self.step(idle, now, oversubscribed);
        if step == Step::Yield {
            std::thread::yield_now();
            let back = Instant::now();
            if back - now >= SLICE {
                OVERSUBSCRIBED.set(Some(Oversubscribed::next(last, back)));
            }
        }
        step
    }

    fn step(&self, idle: &mut Idle, now: Instant, oversubscribed: bool) -> Step {
        let since = *idle.since.get_or_insert(now);
        let spin = match (oversubscribed, self.yield_interval.is_zero()) {
            (false, _) => self.spin,
            // A rank of the job may wait for this core.
            (true, true) => Duration::ZERO,
            // Who is awaited has a core, or takes this one when woken: an answer comes soon, and finds this core awake.
            (true, false) => self.spin.min(SPIN_SHARED),
        };
        if now - since >= spin {
            return Step::Sleep;
        }
        if oversubscribed {
            return Step::Poll;
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
        assert_eq!(steps(Backoff::new(3, 2, None), true, 3), [Step::Sleep; 3]);
        let steps = steps(Backoff::new(2, 2, None), true, 52);
        assert_eq!((&steps[..50], &steps[50..]), (&[Step::Poll; 50][..], &[Step::Sleep; 2][..]));
    }

    #[test]
    fn who_computes_all_the_time_is_left_alone_for_longer_and_longer() {
        let mut now = Instant::now();
        let mut last = None;
        let mut lengths = Vec::new();
        for _ in 0..8 {
            let next = Oversubscribed::next(last, now);
            assert_eq!(next.until, now + next.length);
            lengths.push(next.length.as_millis());
            (last, now) = (Some(next), next.until + SLICE);
        }
        assert_eq!(lengths, [2, 4, 8, 16, 32, 64, 100, 100]);
        let later = now + 2 * OVERSUBSCRIBED_LONGEST;
        assert_eq!(Oversubscribed::next(last, later).length, OVERSUBSCRIBED_FOR);
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
