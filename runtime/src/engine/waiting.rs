//! Blocking: poll for a while, then sleep in the kernel (`patience.rs`), with a deadline and a description of what is awaited.

use std::cell::Cell;
use std::time::{Duration, Instant};

use transom_transport::Transport;

use super::Engine;
use super::patience::{Idle, Step};
use crate::{Class, Error, Result};

/// How long a wait sleeps whose end nobody announces.
pub(super) const SHORT_NAP: Duration = Duration::from_micros(100);
/// Longest sleep without a look at the deadline and at failures.
pub(super) const LONG_NAP: Duration = Duration::from_millis(100);
/// How long a wait for words is silent.
const LINGER: Duration = Duration::from_millis(10);
/// Polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 16;

/// Looks that find nothing between two offers of the core.
const LOOKS_PER_YIELD: u32 = 64;

thread_local! {
    /// Looks in vain since the last that found something.
    static MISSES: Cell<u32> = const { Cell::new(0) };
}

impl Engine {
    /// Polls until `ready` gives a result. `what` describes the awaited for the error of a deadline; `nap` is the
    /// longest sleep, for conditions that no event of ours announces.
    pub fn wait_until<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> String,
        nap: Option<Duration>,
        mut ready: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        self.wait(operation, what, nap.unwrap_or(LONG_NAP), None, |_| ready())
    }

    /// [`Engine::wait_until`] for operations of `transport`, which may have ended already: the first poll is made in place.
    #[inline]
    pub fn wait_briefly<R>(
        &self,
        operation: &'static str,
        transport: &dyn Transport,
        what: &dyn Fn() -> String,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        let inside = self.progress.enter();
        self.poll_one(transport)?;
        drop(inside);
        match ready() {
            Some(result) => Ok(result),
            None => self.wait_on(operation, what, ready),
        }
    }

    /// The rest of [`Engine::wait_briefly`].
    #[cold]
    #[inline(never)]
    fn wait_on<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> String,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        self.wait_until(operation, what, None, || ready().map(Ok))
    }

    /// The same for words that ranks of this node raise, which are no events: who raises one rings if this rank is seen to
    /// sleep. `linger` is called once if it takes long. `ready` is told whether messages may have come since it last was, too.
    #[inline]
    pub fn wait_raised<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> String,
        linger: impl Fn(),
        mut ready: impl FnMut(bool) -> Option<Result<R>>,
    ) -> Result<R> {
        // A look at words costs less than a poll, and who answers at once needs no poll of ours.
        let looks = self.progress.patience().looks();
        let mut look = |messages| {
            for _ in 1..looks {
                if let Some(result) = ready(false) {
                    return Some(result);
                }
            }
            ready(messages)
        };
        match look(false) {
            Some(result) => result,
            None => self.wait(operation, what, LONG_NAP, Some(&linger), look),
        }
    }

    #[inline(never)]
    fn wait<R>(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> String,
        nap: Duration,
        mut raised: Option<&dyn Fn()>,
        mut ready: impl FnMut(bool) -> Option<Result<R>>,
    ) -> Result<R> {
        let (inside, by_words) = (self.progress.enter(), raised.is_some());
        let mut known = None;
        let mut clock: Option<Instant> = None;
        let mut idle = Idle::default();
        let mut polls = 0u32;
        loop {
            let seen = self.progress.events();
            if let Some(result) = ready(known.replace(seen) != Some(seen)) {
                return result;
            }
            if self.poll()? > 0 {
                idle = Idle::default();
                continue;
            }
            polls += 1;
            if !polls.is_multiple_of(POLLS_PER_LOOK) {
                std::hint::spin_loop();
                continue;
            }
            let now = Instant::now();
            let waited = now - *clock.get_or_insert(now);
            self.check_wait(operation, what, waited)?;
            let step = self.progress.patience().next(&mut idle, now);
            if waited >= LINGER
                && let Some(linger) = raised.take()
            {
                linger();
            }
            if step != Step::Sleep {
                continue;
            }
            let asleep = by_words.then(|| self.sleepers.fall_asleep());
            if by_words && let Some(result) = ready(false) {
                return result;
            }
            let nap = match asleep {
                Some(None) => SHORT_NAP,
                _ if raised.is_some() => LINGER,
                _ => nap,
            };
            // Traffic that a provider serves by itself is no event of ours: poll on after a wake-up, too.
            if inside.sleep(self, seen, nap) {
                idle = Idle::default();
            }
        }
    }

    /// Polls for a call that does not block. A program that calls nothing else keeps a core busy, which whoever must answer may
    /// be waiting for: after some that find nothing it is offered to others.
    pub fn look(&self) -> Result<usize> {
        // As long as such calls come the progress thread need not be woken for each message.
        let _inside = self.progress.enter();
        let found = self.poll()?;
        let misses = if found > 0 { 0 } else { MISSES.get().wrapping_add(1) };
        MISSES.set(misses);
        if misses % LOOKS_PER_YIELD == LOOKS_PER_YIELD - 1 {
            std::thread::yield_now();
        }
        Ok(found)
    }

    /// Whether a wait that has lasted `waited` may go on.
    pub fn check_wait(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> String,
        waited: Duration,
    ) -> Result<()> {
        if let Some(error) = self.failed() {
            return Err(error);
        }
        match self.settings.deadline {
            Some(deadline) if waited >= deadline => {
                let message = format!("waited {deadline:?} (TRANSOM_DEADLINE) for {}", what());
                Err(Error::new(Class::Timeout, operation, message).at_rank(self.rank))
            }
            _ => Ok(()),
        }
    }

    /// The next step of a wait that has polled for itself and found nothing.
    pub fn idle(&self, idle: &mut Idle) -> Step {
        self.progress.patience().next(idle, Instant::now())
    }
}
