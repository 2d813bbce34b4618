//! Blocking: poll for a while, then sleep in the kernel (`backoff.rs`), with a deadline and a description of what is
//! awaited.

use std::cell::Cell;
use std::time::{Duration, Instant};

use transom_transport::{Payload, Transport};

use super::Engine;
use super::backoff::{Idle, Step};
use super::progress::Quietly;
use crate::protocol::wire::{Header, Kind};
use crate::waits::{Awaits, WaitSlot};
use crate::{Class, Error, Result};

/// How long a wait sleeps for a condition that no event announces.
pub(crate) const SHORT_SLEEP: Duration = Duration::from_micros(100);
/// Longest sleep without a check of the deadline and of failures.
pub(super) const LONG_SLEEP: Duration = Duration::from_millis(100);
/// After what time a wait for signals reports where it is.
const REPORT_AFTER: Duration = Duration::from_millis(10);
/// After what time a wait notes what it waits for, for `transom where`; and how often it says so anew.
const NOTE_AFTER: Duration = Duration::from_millis(50);
const NOTE_AGAIN: Duration = Duration::from_millis(500);
/// Polls between two readings of the clock.
const POLLS_PER_CLOCK_READ: u32 = 16;

/// Messages that are taken by one poll of who waits for one of them: receives of the others are posted, and will be waited for.
const MESSAGES_PER_POLL: usize = 16;
/// A poll takes as long as so many looks, or longer.
const LOOKS_PER_POLL: u32 = 16;

/// Polls in vain between two yields of the core.
const MISSES_PER_YIELD: u32 = 64;

thread_local! {
    /// Polls in vain since the last that found something.
    static MISSES: Cell<u32> = const { Cell::new(0) };
}

/// What has happened since a wait looked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    /// Some time has passed.
    Time,
    /// A poll has found something.
    Events,
}

/// What a wait has noted of itself, until it ends.
#[derive(Debug, Default)]
pub(crate) struct Noted<'a> {
    slot: Option<WaitSlot<'a>>,
    next: Duration,
}

impl<'a> Noted<'a> {
    /// To be called now and then with how long the wait has lasted.
    #[cold]
    #[inline(never)]
    pub fn note(
        &mut self,
        engine: &'a Engine,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        waited: Duration,
    ) {
        let Some(board) = &engine.board else { return };
        if waited < self.next.max(NOTE_AFTER) {
            return;
        }
        self.next = waited + NOTE_AGAIN;
        match &mut self.slot {
            Some(slot) => slot.update(operation, what()),
            None => self.slot = board.note(operation, what(), waited),
        }
    }
}

impl Engine {
    /// Polls until `ready` gives a result. `what` describes the awaited for the error of a deadline; `longest_sleep` bounds
    /// a sleep, for conditions that no event of ours announces.
    pub fn wait_until<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        longest_sleep: Option<Duration>,
        mut ready: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        let announced = longest_sleep.is_none();
        let poll = |_| self.poll();
        self.wait(operation, what, longest_sleep.unwrap_or(LONG_SLEEP), None, poll, |news| {
            // What is announced by events is looked for when there are any.
            if announced && news == News::None { None } else { ready() }
        })
    }

    /// [`Engine::wait_until`] for a message, which may come in one that this thread `takes` when it polls.
    pub fn wait_taking<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        takes: impl Fn(&Header, Kind, Payload<'_>) -> bool,
        mut ready: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        let poll = |more| self.poll_taking(more, &takes);
        self.wait(operation, what, LONG_SLEEP, None, poll, |news| {
            // That a queue has space again is no event.
            if news == News::None && !self.tasks.has_full_queue() { None } else { ready() }
        })
    }

    /// [`Engine::wait_taking`] for a short time; none, and nothing is lost, if `ready` has no result then, or `is_otherwise`. `awaited`:
    /// how many messages there are receives for.
    #[inline]
    pub fn wait_shortly<R>(
        &self,
        awaited: impl Fn() -> usize,
        takes: impl Fn(&Header, Kind, Payload<'_>) -> bool,
        is_otherwise: impl Fn() -> bool,
        ready: impl Fn() -> Option<R>,
    ) -> Option<R> {
        let _inside = self.progress.enter_to_wait();
        let mut looks = self.progress.backoff().short_looks();
        while looks > 0 {
            if is_otherwise() {
                return None;
            }
            if self.is_idle() {
                looks -= 1;
                continue;
            }
            looks = looks.saturating_sub(LOOKS_PER_POLL);
            let polled = self.poll_for(awaited().clamp(1, MESSAGES_PER_POLL), false, &takes);
            if let Some(result) = ready() {
                self.progress.count_awaited();
                return Some(result);
            }
            polled.ok()?;
        }
        None
    }

    /// [`Engine::wait_until`] for operations of `transport`, which may have ended already: the first poll is made in place.
    #[inline]
    pub fn wait_briefly<R>(
        &self,
        operation: &'static str,
        transport: &dyn Transport,
        what: &dyn Fn() -> Awaits,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        let inside = self.progress.enter();
        // That poll may send what is answered.
        let masked = self.progress.mask();
        self.poll_one(transport)?;
        drop(inside);
        match ready() {
            Some(result) => {
                self.progress.count_awaited();
                Ok(result)
            }
            None => self.wait_on(operation, what, ready, masked),
        }
    }

    /// The rest of [`Engine::wait_briefly`].
    #[cold]
    #[inline(never)]
    fn wait_on<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        mut ready: impl FnMut() -> Option<R>,
        _masked: Option<Quietly<'_>>,
    ) -> Result<R> {
        self.wait_until(operation, what, None, || ready().map(Ok))
    }

    /// The same for signals in shared memory, which are no events: the signalling rank wakes this one if it is seen to
    /// sleep. `report` is called once if it takes long. `ready` is told whether messages may have arrived since its last
    /// call, too.
    #[inline]
    pub fn wait_signalled<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        report: impl Fn(),
        mut ready: impl FnMut(bool) -> Option<Result<R>>,
    ) -> Result<R> {
        // A check of signals costs less than a poll, and a peer that answers at once needs no poll of ours.
        let checks = self.progress.backoff().checks_per_poll();
        let mut look = |messages| {
            for _ in 1..checks {
                if let Some(result) = ready(false) {
                    return Some(result);
                }
            }
            ready(messages)
        };
        match look(false) {
            Some(result) => result,
            None => {
                let poll = |_| self.poll();
                self.wait(operation, what, LONG_SLEEP, Some(&report), poll, |news| look(news == News::Events))
            }
        }
    }

    #[inline(never)]
    fn wait<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        longest_sleep: Duration,
        mut report: Option<&dyn Fn()>,
        poll: impl Fn(bool) -> Result<usize>,
        mut ready: impl FnMut(News) -> Option<Result<R>>,
    ) -> Result<R> {
        let (inside, by_signals) = (self.progress.enter_to_wait(), report.is_some());
        // Who waits for signals looks at these.
        let looks = if by_signals { 1 } else { self.progress.backoff().looks_per_poll() };
        let mut known = None;
        let mut clock: Option<Instant> = None;
        let mut idle = Idle::default();
        let (mut polls, mut waited, mut waits) = (0u32, Duration::ZERO, false);
        let mut noted = Noted::default();
        let mut masked = None;
        loop {
            let seen = self.progress.events();
            let news = match known.replace(seen) {
                Some(known) if known == seen && !polls.is_multiple_of(POLLS_PER_CLOCK_READ) => News::None,
                Some(known) if known == seen => News::Time,
                _ => News::Events,
            };
            if let Some(result) = ready(news) {
                drop(inside);
                self.progress.count_awaited();
                self.progress.leave(waited);
                return result;
            }
            // Looked at more often than polled: what follows a poll costs more than a look.
            let mut left = looks;
            while left > 1 && self.is_idle() {
                left -= 1;
                waits = true;
            }
            let found = poll(!waits)? > 0;
            if found {
                idle = Idle::default();
            } else if masked.is_none() {
                masked = self.progress.mask();
            }
            polls += 1;
            if !polls.is_multiple_of(POLLS_PER_CLOCK_READ) {
                if !found && looks == 1 {
                    std::hint::spin_loop();
                }
                continue;
            }
            let now = Instant::now();
            waited = now - *clock.get_or_insert(now);
            // A rank that serves its peers all the time waits no longer for that.
            if let Err(error) = self.check_wait(operation, what, waited) {
                // What that poll has brought is not lost.
                return ready(News::Events).unwrap_or(Err(error));
            }
            if waited >= NOTE_AFTER {
                noted.note(self, operation, what, waited);
            }
            if found {
                continue;
            }
            let step = self.progress.backoff().next(&mut idle, now);
            if waited >= REPORT_AFTER
                && let Some(report) = report.take()
            {
                report();
            }
            if step != Step::Sleep {
                continue;
            }
            let asleep = by_signals.then(|| self.sleepers.announce_sleep());
            if by_signals && let Some(result) = ready(News::Time) {
                return result;
            }
            let longest_sleep = match asleep {
                Some(None) => SHORT_SLEEP,
                _ if report.is_some() => REPORT_AFTER,
                _ => longest_sleep,
            };
            masked = None;
            // Traffic that a provider serves by itself is no event of ours: poll on after a wake-up, too.
            if inside.sleep(self, seen, longest_sleep) {
                idle = Idle::default();
            }
        }
    }

    /// Polls for a nonblocking call. A program that calls nothing else keeps a core busy, for which the rank that must
    /// answer may be waiting: after some polls in vain it is yielded.
    pub fn try_progress(&self) -> Result<usize> {
        // As long as such calls come the progress thread need not be woken for each message.
        let _inside = self.progress.enter();
        let found = self.poll()?;
        let misses = if found > 0 { 0 } else { MISSES.get().wrapping_add(1) };
        MISSES.set(misses);
        if misses % MISSES_PER_YIELD == MISSES_PER_YIELD - 1 {
            if self.outlives {
                self.look_for_deaths();
            }
            std::thread::yield_now();
        }
        Ok(found)
    }

    /// Whether a wait that has lasted `waited` may go on.
    pub fn check_wait(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        waited: Duration,
    ) -> Result<()> {
        if let Some(error) = self.failed().or_else(|| self.look_for_life(waited)) {
            return Err(error);
        }
        if (self.outlives || self.dead.any())
            && let Some(error) = self.check_deaths(operation, what, waited)
        {
            return Err(error);
        }
        match self.settings.deadline {
            Some(deadline) if waited >= deadline => {
                let message = format!("waited {deadline:?} (TRANSOM_DEADLINE) for {}", what().text);
                Err(Error::new(Class::Timeout, operation, message).at_rank(self.rank))
            }
            _ => Ok(()),
        }
    }

    /// The next step of a wait that has polled for itself and found nothing.
    pub fn idle(&self, idle: &mut Idle) -> Step {
        self.progress.backoff().next(idle, Instant::now())
    }
}
