//! Who polls and who sleeps.
//!
//! A thread that waits inside the runtime polls for itself. The progress thread stands in while nobody does: it sleeps
//! in the kernel on all transports at once and is woken by traffic. At most one thread sleeps on the transports (the
//! *watcher*), the others wait for it to announce what it found. While callers come and go the progress thread leaves the
//! ends of their operations to them and is woken by messages alone, or naps where a transport cannot tell these apart: a
//! call that leaves the runtime need not wake anybody.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use parking_lot::{Condvar, Mutex};
use transom_transport::{Armed, latency};

use super::Engine;
use super::patience::Patience;
use crate::settings::Settings;
use crate::{Class, Error, Result, memory};

/// How long the progress thread looks away while callers poll, and how long it waits for messages alone.
const NAP: Duration = Duration::from_micros(250);
const GLANCE: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watcher {
    Nobody,
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
    /// Callers inside the runtime in the lower half, calls that entered it in the upper.
    callers: AtomicU64,
    /// Polls that found something.
    events: AtomicU64,
    /// Threads that wait for an announcement.
    listeners: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
    /// Interrupts the watcher.
    poke: EventFd,
    patience: Patience,
}

/// A caller's stay in the runtime.
pub(super) struct Inside<'a>(&'a Progress);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::Release);
    }
}

impl Progress {
    pub fn new(settings: &Settings, local_ranks: usize) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let poke = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|e| Error::new(Class::System, "init", format!("eventfd: {e}")))?;
        Ok(Self {
            callers: AtomicU64::new(0),
            events: AtomicU64::new(0),
            listeners: AtomicUsize::new(0),
            state: Mutex::new(State { watcher: Watcher::Nobody, sleeping: 0, parked: false, stop: false }),
            changed: Condvar::new(),
            poke,
            patience: Patience::new(local_ranks, cores, settings.spin),
        })
    }

    #[inline]
    pub fn enter(&self) -> Inside<'_> {
        self.callers.fetch_add(1 << 32 | 1, Ordering::AcqRel);
        Inside(self)
    }

    /// Whether no caller is inside.
    fn is_left_alone(&self) -> bool {
        self.callers.load(Ordering::Acquire) as u32 == 0
    }

    pub fn events(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Something was found: whoever waits for it looks again.
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

    /// Makes every sleeper look again.
    pub fn interrupt(&self) {
        self.announce();
        let _ = self.poke.write(1);
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

impl Inside<'_> {
    /// Sleeps until something is found that `seen` does not count, or for `time`. Returns whether there was traffic.
    pub fn sleep(&self, engine: &Engine, seen: u64, time: Duration) -> bool {
        let progress = self.0;
        let time = if engine.tasks.are_full() { time.min(super::waiting::SHORT_NAP) } else { time };
        progress.listeners.fetch_add(1, Ordering::SeqCst);
        let mut state = progress.state.lock();
        state.sleeping += 1;
        if state.watcher == Watcher::ProgressThread {
            // It has seen no traffic since this caller came: take its place, so that a message wakes us directly.
            let _ = progress.poke.write(1);
        }
        let mut traffic = true;
        if progress.events() == seen {
            if state.watcher == Watcher::Nobody {
                state.watcher = Watcher::Caller;
                drop(state);
                traffic = watch(engine, Awaited::Anything, Some(time));
                state = progress.state.lock();
                state.watcher = Watcher::Nobody;
            } else {
                progress.listen(&mut state, Some(time));
                traffic = progress.events() != seen;
            }
        }
        state.sleeping -= 1;
        // The place of the watcher may be free, or the progress thread's turn.
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
    let mut ready = false;
    for transport in transports {
        armed += 1;
        let may_sleep = match awaited {
            Awaited::Anything => transport.arm().map(Some),
            Awaited::Messages => transport.arm_for_messages(),
        };
        // A transport that cannot arm is polled again, where it reports its error.
        if !matches!(may_sleep, Ok(Some(Armed::Sleep))) {
            ready = true;
            break;
        }
    }
    let time = if engine.has_errands() { Some(super::waiting::SHORT_NAP) } else { time };
    let mut fds: Vec<RawFd> = transports.iter().map(|t| t.wait_fd()).collect();
    fds.truncate(armed);
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::new(borrow(engine, *fd), PollFlags::POLLIN)).collect();
    polled.push(PollFd::new(engine.progress.poke.as_fd(), PollFlags::POLLIN));
    if !ready {
        // An interrupted sleep is as good as a wake-up.
        let _ = ppoll(&mut polled, time.map(TimeSpec::from), None);
    }
    let readable: Vec<bool> = polled.iter().map(|p| p.any().unwrap_or(false)).collect();
    for (transport, readable) in transports.iter().take(armed).zip(&readable) {
        transport.disarm(*readable);
    }
    if readable.last() == Some(&true) {
        let _ = engine.progress.poke.read();
    }
    // Callers who poke it again and again should not wake it each time.
    ready || readable[..armed].contains(&true) || (awaited == Awaited::Messages && readable[armed])
}

fn borrow(engine: &Engine, fd: RawFd) -> BorrowedFd<'_> {
    memory::borrow_fd(&engine.routes, fd)
}

pub(super) fn spawn(engine: Arc<Engine>) -> Result<JoinHandle<()>> {
    let rank = engine.rank;
    std::thread::Builder::new()
        .name(format!("transom-{rank}"))
        .spawn(move || run(&engine))
        .map_err(|e| Error::new(Class::System, "init", format!("progress thread: {e}")).at_rank(rank))
}

/// Polls as long as there is traffic, and no longer: it may be taking the core from a computation. Leaves the field to
/// callers when they come.
fn serve(engine: &Engine) {
    // An error is kept by the engine, where every caller meets it.
    while engine.progress.is_left_alone() && matches!(engine.poll(), Ok(found) if found > 0) {}
}

fn run(engine: &Engine) {
    let progress = &engine.progress;
    latency::prefer_latency();
    let mut before = 0;
    let mut nap = true;
    let mut looked = Instant::now();
    loop {
        // Whoever awaits a request looks at failures and deadlines as often as a blocked caller does.
        let time = engine.tasks.are_awaited().then_some(super::waiting::LONG_NAP);
        if time.is_some() && looked.elapsed() >= super::waiting::LONG_NAP {
            engine.tasks.wake_all();
            looked = Instant::now();
        }
        let mut state = progress.state.lock();
        if state.stop {
            return;
        }
        let callers = progress.callers.load(Ordering::Acquire);
        let settled = callers == before;
        before = callers;
        if state.sleeping > 0 || state.watcher != Watcher::Nobody {
            // Callers who sleep for a moment, call after call, need not wake it each time.
            state.parked = settled;
            progress.listen(&mut state, if settled { time } else { Some(NAP) });
            state.parked = false;
            nap = settled;
            continue;
        }
        let active = !progress.is_left_alone() || !settled;
        if active && (nap || engine.wants_ends()) {
            progress.listen(&mut state, Some(NAP));
            nap = false;
            continue;
        }
        state.watcher = Watcher::ProgressThread;
        drop(state);
        let traffic = match active {
            true => watch(engine, Awaited::Messages, Some(GLANCE)),
            false => watch(engine, Awaited::Anything, time),
        };
        // Callers who find what there is are left to it for a while.
        nap = active && traffic;
        let mut state = progress.state.lock();
        state.watcher = Watcher::Nobody;
        drop(state);
        progress.changed.notify_all();
        if progress.is_left_alone() {
            serve(engine);
            if engine.failed().is_some() {
                let mut state = progress.state.lock();
                if !state.stop {
                    progress.listen(&mut state, Some(NAP));
                }
            }
        }
    }
}
