//! Progress: which thread polls, and which sleep.
//!
//! A thread that is blocked in the runtime polls for itself. The progress thread does while no caller is inside: it sleeps
//! in the kernel on all transports at once and is woken by traffic. At most one thread sleeps on the transports (the
//! *watcher*), the others wait for it to announce what it found. While callers come and go the progress thread leaves their
//! completions to them and is woken by messages alone, or sleeps for short times where a transport cannot tell these apart:
//! a call that returns need not wake it. Nor does what a caller awaits that polls while it sleeps (`mask.rs`).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use parking_lot::{Condvar, Mutex};
use transom_transport::{Armed, Transport, latency, limits};

use super::Engine;
use super::backoff::Backoff;
use super::gates::Gates;
use super::mask::{Mask, Masked};
use super::quiet::Hold;
use crate::settings::Settings;
use crate::{Class, Error, Result, waits};

/// How long the progress thread pauses while callers poll, at first and at most, and how long it waits for messages alone.
const PAUSE: Duration = Duration::from_micros(250);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// Where a call comes so often on average, it finds what comes as soon as this thread would, which would be woken on the caller's core:
/// it only looks then, after pauses that are at most so long, whether as many still come, and nothing waits.
const OFTEN: Duration = Duration::from_micros(50);
const LONGEST_PAUSE_OFTEN: Duration = Duration::from_millis(2);
const MESSAGE_SLEEP: Duration = Duration::from_millis(2);
/// How long it leaves what has woken it to a caller that came while it slept.
const MOMENT: Duration = Duration::from_micros(50);
/// Polls that find something, one behind the other, before the progress thread offers its core.
const POLLS_PER_YIELD: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watcher {
    None,
    ProgressThread,
    Caller,
}

#[derive(Debug)]
struct State {
    watcher: Watcher,
    /// Callers asleep, as watcher or waiting for one.
    sleeping: usize,
    /// The progress thread waits until a caller wakes up.
    parked: bool,
    stop: bool,
}

#[derive(Debug)]
pub(super) struct Progress {
    /// Callers inside the runtime in the lowest 16 bits, those of them that wait in the next, calls that entered it in the upper half.
    callers: AtomicU64,
    /// Operations posted, and messages sent, but for those that threads count at the same time: callers that do not enter.
    posts: AtomicU64,
    sends: AtomicU64,
    /// Of the operations, those that a caller has waited for.
    awaited: AtomicU64,
    /// A caller left that was inside for long: there may be none now for long.
    left: AtomicBool,
    /// Polls that found something.
    events: AtomicU64,
    /// Threads that wait for an announcement.
    listeners: AtomicUsize,
    state: Mutex<State>,
    /// What the watcher sleeps on.
    mask: Mask<Gates>,
    changed: Condvar,
    backoff: Backoff,
    /// Keeps the progress thread from all it does, for one thread at a time.
    pub(super) hold: Hold,
    pub(super) holding: Mutex<()>,
}

/// Nothing wakes the progress thread until this is dropped.
pub(super) type Quietly<'a> = Masked<'a, Gates>;

/// See [`Progress::calls`].
type Calls = (u64, u64, u64);

/// A caller is inside the runtime until this is dropped; and what it has added.
pub(super) struct CallGuard<'a>(&'a Progress, u64);

/// What is added for a caller that is inside, and for one that waits there.
const INSIDE: u64 = 1;
const WAITS: u64 = 1 << 16;
const ENTERED: u64 = 1 << 32;

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.callers.fetch_sub(self.1, Ordering::Release);
    }
}

impl Progress {
    pub fn new(
        settings: &Settings,
        (ranks, cores): (usize, usize),
        transports: &[Arc<dyn Transport>],
        wakeup: Option<OwnedFd>,
    ) -> Result<Self> {
        let own = || {
            EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(|e| {
                Error::new(Class::System, "init", format!("eventfd: {}", limits::named(&e.into())))
            })
        };
        let wakeup = match wakeup {
            Some(wakeup) => wakeup,
            None => own()?.into(),
        };
        Ok(Self {
            callers: AtomicU64::new(0),
            posts: AtomicU64::new(0),
            sends: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
            left: AtomicBool::new(false),
            events: AtomicU64::new(0),
            listeners: AtomicUsize::new(0),
            state: Mutex::new(State { watcher: Watcher::None, sleeping: 0, parked: false, stop: false }),
            mask: Mask::new(Gates::new(transports, wakeup)),
            changed: Condvar::new(),
            backoff: Backoff::new(ranks, cores, settings.spin),
            hold: Hold::default(),
            holding: Mutex::new(()),
        })
    }

    #[inline]
    pub fn enter(&self) -> CallGuard<'_> {
        self.enter_as(INSIDE)
    }

    /// The same of a caller that stays until what it waits for is there.
    #[inline]
    pub fn enter_to_wait(&self) -> CallGuard<'_> {
        self.enter_as(INSIDE | WAITS)
    }

    #[inline]
    fn enter_as(&self, caller: u64) -> CallGuard<'_> {
        self.callers.fetch_add(ENTERED | caller, Ordering::AcqRel);
        CallGuard(self, caller)
    }

    /// A caller posts an operation.
    #[inline(always)]
    pub fn count_post(&self) {
        Self::count(&self.posts);
    }

    /// A caller sends a message.
    #[inline(always)]
    pub fn count_send(&self) {
        Self::count(&self.sends);
    }

    #[inline(always)]
    fn count(calls: &AtomicU64) {
        calls.store(calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// A caller has waited for something: for what was posted before, most often.
    #[inline]
    pub fn count_awaited(&self) {
        self.awaited.store(self.posts.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Callers inside and how often any came, operations, messages.
    fn calls(&self) -> Calls {
        (
            self.callers.load(Ordering::Acquire),
            self.posts.load(Ordering::Relaxed),
            self.sends.load(Ordering::Relaxed),
        )
    }

    /// Whether an operation was posted since these calls that nobody has waited for.
    fn has_posted(&self, (_, posts, _): Calls) -> bool {
        let now = self.posts.load(Ordering::Relaxed);
        now != posts && now != self.awaited.load(Ordering::Relaxed)
    }

    /// Whether no caller is inside.
    fn has_no_callers(&self) -> bool {
        self.callers.load(Ordering::Acquire) as u32 == 0
    }

    /// Whether a caller waits.
    pub fn has_waiting_caller(&self) -> bool {
        self.callers.load(Ordering::Acquire) as u32 >= WAITS as u32
    }

    pub fn events(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Something was found: waiting threads check again.
    #[inline]
    pub fn announce(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        if self.listeners.load(Ordering::SeqCst) > 0 {
            self.call();
        }
    }

    /// Makes those who wait for an announcement look.
    #[cold]
    fn call(&self) {
        // Under the lock, so that a listener between its look at `events` and its wait is not missed.
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// A caller that was inside for so long has left: the progress thread looks at once whether it is wanted.
    #[inline]
    pub fn leave(&self, waited: Duration) {
        if waited >= PAUSE {
            self.left.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Makes every sleeping thread check again.
    pub fn interrupt(&self) {
        self.announce();
        self.wake_watcher();
    }

    /// As [`Progress::interrupt`], of the progress thread wherever it waits.
    pub fn interrupt_sleepers(&self) {
        let _state = self.state.lock();
        self.wake_watcher();
        self.changed.notify_all();
    }

    fn wake_watcher(&self) {
        self.mask.sleep.wake();
    }

    /// For a caller that sends what is answered, before that, and then polls; or that has polled in vain: the progress thread is
    /// not woken until this is dropped, before the caller sleeps itself.
    #[inline]
    pub fn mask(&self) -> Option<Quietly<'_>> {
        self.mask.put_on()
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.interrupt();
        self.changed.notify_all();
    }

    fn listen(&self, state: &mut parking_lot::MutexGuard<'_, State>, time: Option<Duration>) {
        match time {
            Some(time) => drop(self.changed.wait_for(state, time)),
            None => self.changed.wait(state),
        }
    }
}

impl CallGuard<'_> {
    /// Sleeps until something is found that `seen` does not count, or for `time`. Returns whether there was traffic.
    pub fn sleep(&self, engine: &Engine, seen: u64, time: Duration) -> bool {
        let progress = self.0;
        let time = if engine.tasks.has_full_queue() { time.min(super::waiting::SHORT_SLEEP) } else { time };
        progress.listeners.fetch_add(1, Ordering::SeqCst);
        let mut state = progress.state.lock();
        state.sleeping += 1;
        if state.watcher == Watcher::ProgressThread {
            // It has seen no traffic since this caller came: take its place, so that a message wakes us directly.
            progress.wake_watcher();
        }
        let mut traffic = true;
        if progress.events() == seen {
            if state.watcher == Watcher::None {
                state.watcher = Watcher::Caller;
                drop(state);
                traffic = watch(engine, Awaited::Anything, Some(time));
                state = progress.state.lock();
                state.watcher = Watcher::None;
            } else {
                progress.listen(&mut state, Some(time));
                traffic = progress.events() != seen;
            }
        }
        state.sleeping -= 1;
        // There may be no watcher, or the progress thread may go on.
        let awaited = state.parked || state.sleeping > 0;
        drop(state);
        progress.listeners.fetch_sub(1, Ordering::SeqCst);
        if awaited {
            progress.changed.notify_all();
        }
        traffic
    }
}

/// What ends a sleep on the transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Anything,
    Messages,
}

/// Sleeps on every transport at once. To be followed by a poll. Returns whether a transport woke it, or kept it from
/// sleeping; for messages alone, whether anything did.
fn watch(engine: &Engine, awaited: Awaited, time: Option<Duration>) -> bool {
    let transports = engine.routes.transports();
    let mut armed = 0;
    let (mut ready, mut briefly) = (false, false);
    for transport in transports {
        armed += 1;
        let may_sleep = match awaited {
            Awaited::Anything => transport.arm().map(Some),
            Awaited::Messages => transport.arm_for_messages(),
        };
        // A transport that cannot arm is polled again, where it reports its error.
        match may_sleep {
            Ok(Some(Armed::Sleep)) => {}
            Ok(Some(Armed::Briefly)) => briefly = true,
            _ => {
                ready = true;
                break;
            }
        }
    }
    let time = if briefly || engine.has_deferred() { Some(super::waiting::SHORT_SLEEP) } else { time };
    let fds = engine.progress.mask.sleep.fds(armed);
    let mut polled: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    if !ready {
        // An interrupted sleep is as good as a wake-up.
        let _ = ppoll(&mut polled, time.map(TimeSpec::from), None);
    }
    let readable: Vec<bool> = polled.iter().map(|p| p.any().unwrap_or(false)).collect();
    for (transport, readable) in transports.iter().take(armed).zip(&readable) {
        transport.disarm(*readable);
    }
    if readable.last() == Some(&true)
        && engine.progress.mask.sleep.clear_wakeup() >= waits::ASK
        && let Some(board) = &engine.board
    {
        board.write_notes();
        engine.look_for_deaths();
    }
    // Callers that interrupt it again and again should not wake it each time.
    ready || readable[..armed].contains(&true) || (awaited == Awaited::Messages && readable[armed])
}

pub(super) fn spawn(engine: Arc<Engine>) -> Result<JoinHandle<()>> {
    let rank = engine.rank;
    std::thread::Builder::new().name(format!("transom-{rank}")).spawn(move || run(&engine)).map_err(|e| {
        let reason = limits::no_process(&e, 1);
        Error::new(Class::System, "init", format!("cannot start the progress thread: {reason}")).at_rank(rank)
    })
}

/// Polls as long as there is traffic, and no longer: it may be taking the core from a computation. Stops when a caller
/// comes, and after one poll where callers come and go: they would wait for each other.
fn serve(engine: &Engine, active: bool) {
    let mut polls = 0u32;
    // An error is kept by the engine, where every caller meets it.
    while engine.progress.has_no_callers() && matches!(engine.poll(), Ok(found) if found > 0) && !active {
        polls += 1;
        if polls.is_multiple_of(POLLS_PER_YIELD) {
            // So much comes that the program may be about to take it, and have no other core for that.
            std::thread::yield_now();
        }
    }
}

/// Whether callers have come often since these calls, in this time.
fn comes_often(now: Calls, before: Calls, time: Duration) -> bool {
    let came = (now.0 >> 32).wrapping_sub(before.0 >> 32) as u32;
    time >= PAUSE && OFTEN.saturating_mul(came) >= time
}

fn run(engine: &Engine) {
    let progress = &engine.progress;
    latency::prefer_latency();
    let mut before = Calls::default();
    let (mut pause, mut pause_for) = (true, PAUSE);
    let (mut looked, mut passed, mut found) = (Instant::now(), Instant::now(), progress.events());
    loop {
        progress.hold.pass();
        // Awaited requests are checked for failures and deadlines as often as blocked calls are.
        let time = engine.tasks.are_awaited().then_some(super::waiting::LONG_SLEEP);
        if time.is_some() && looked.elapsed() >= super::waiting::LONG_SLEEP {
            engine.tasks.wake_all();
            looked = Instant::now();
        }
        let mut state = progress.state.lock();
        if state.stop {
            return;
        }
        let calls = progress.calls();
        let settled = calls == before || progress.left.swap(false, Ordering::Relaxed);
        // Calls that find what they want at once take nothing that has come: only where some do take what comes will they take
        // what is there now.
        let events = progress.events();
        let takes = events != found;
        let often = !settled && comes_often(calls, before, passed.elapsed()) && (takes || engine.is_idle());
        (before, passed, found) = (calls, Instant::now(), events);
        if state.sleeping > 0 || state.watcher != Watcher::None {
            // Callers that sleep for a moment, call after call, need not wake it each time.
            state.parked = settled;
            progress.listen(&mut state, if settled { time } else { Some(PAUSE) });
            state.parked = false;
            pause = settled;
            continue;
        }
        let active = !progress.has_no_callers() || !settled;
        if active && (pause || often || engine.wants_ends()) {
            progress.listen(&mut state, Some(pause_for));
            pause_for = (2 * pause_for).min(if often { LONGEST_PAUSE_OFTEN } else { LONGEST_PAUSE });
            pause = false;
            continue;
        }
        state.watcher = Watcher::ProgressThread;
        drop(state);
        let traffic = if active {
            watch(engine, Awaited::Messages, Some(MESSAGE_SLEEP))
        } else {
            progress.mask.begin();
            let traffic = watch(engine, Awaited::Anything, time);
            progress.mask.end();
            traffic
        };
        // Callers that find traffic are left to handle it for a while.
        pause = active && traffic;
        if !active {
            pause_for = PAUSE;
        }
        let mut state = progress.state.lock();
        state.watcher = Watcher::None;
        let calls = progress.calls();
        let undisturbed = !active && state.sleeping == 0 && !state.stop;
        if undisturbed && calls != before && (!traffic || progress.has_posted(before)) {
            // What has woken it may be an answer, and the caller still at the transport: on one core each would wait for the
            // other. Or callers have it woken because they come and go.
            (before, pause) = (calls, true);
            progress.listen(&mut state, Some(if traffic { MOMENT } else { PAUSE }));
            continue;
        }
        drop(state);
        progress.changed.notify_all();
        if progress.has_no_callers() {
            serve(engine, active);
            found = progress.events();
            if engine.failed().is_some() {
                let mut state = progress.state.lock();
                if !state.stop {
                    progress.listen(&mut state, Some(PAUSE));
                }
            }
        }
    }
}
