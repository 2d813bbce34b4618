//! Puts and gets that a transport has under way.

use std::cell::Cell;

use slab::Slab;
use transom_transport::{Completion, TransportError, TransportResult};

use super::Engine;
use super::awaited::{Slot, Slots};
use super::pull::Pull;
use super::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering};
use super::target_state::{ONE_COPIED, TargetState};
use super::targets::{Target, Targets};
use crate::memory::BufferOwner;

/// The callback of an operation's completion: with the engine, and the first error if there was one.
pub(crate) type OnFinish = Box<dyn FnOnce(&Engine, Option<TransportError>) + Send>;

/// The completion of all parts of an operation, with its callback.
pub(crate) struct Finished {
    then: OnFinish,
    error: Option<TransportError>,
}

impl Finished {
    /// Runs the callback.
    pub fn run(self, engine: &Engine) {
        (self.then)(engine, self.error);
    }
}

/// The parts of an operation that are still under way.
pub(crate) struct Countdown {
    left: AtomicUsize,
    /// What an atomic fetched that is the only part.
    value: AtomicU64,
    error: Mutex<Option<TransportError>>,
    then: Mutex<Option<OnFinish>>,
}

impl std::fmt::Debug for Countdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Countdown").field("left", &self.left).finish_non_exhaustive()
    }
}

thread_local! {
    /// Reused by the blocking operations of this thread.
    static REUSED: Cell<Option<Arc<Countdown>>> = const { Cell::new(None) };
}

impl Countdown {
    /// From a number of parts.
    pub fn new(parts: usize, then: Option<OnFinish>) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(parts),
            value: AtomicU64::new(0),
            error: Mutex::default(),
            then: Mutex::new(then),
        })
    }

    /// Of one part, for a blocking call. To be given back ([`Countdown::give_back`]).
    pub fn reusable() -> Arc<Self> {
        // A thread that ends has none any more.
        let spare = REUSED.try_with(Cell::take).ok().flatten();
        let reusable = spare.unwrap_or_else(|| Self::new(1, None));
        // The thread that completed the last use may still hold it.
        if Arc::strong_count(&reusable) > 1 {
            return Self::new(1, None);
        }
        reusable.left.store(1, Ordering::Release);
        reusable
    }

    /// The caller has seen the completion: its thread reuses the countdown.
    pub fn give_back(this: Arc<Self>) {
        if this.is_finished() {
            // Failures are reported by the target's state.
            drop(this.error.lock().take());
            let _ = REUSED.try_with(|reusable| reusable.set(Some(this)));
        }
    }

    /// What was fetched, if this is complete, and was of one atomic.
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Whether all parts have ended.
    pub fn is_finished(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// So many more parts.
    pub fn add(&self, parts: usize) {
        self.left.fetch_add(parts, Ordering::AcqRel);
    }

    /// One part has completed. After the last, returns the callback to be run.
    #[must_use]
    pub fn count_down(&self, error: Option<TransportError>) -> Option<Finished> {
        if let Some(error) = error {
            self.error.lock().get_or_insert(error);
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let (then, error) = (self.then.lock().take()?, self.error.lock().take());
        Some(Finished { then, error })
    }
}

/// One operation under way.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Where it is counted.
    pub target: Arc<TargetState>,
    /// The buffer, if the operation owns it.
    pub buffer: Option<BufferOwner>,
    /// Where the operation's own end is counted.
    pub done: Option<Arc<Countdown>>,
    /// The accumulate whose operands the agent gets.
    pub pull: Option<Box<Pull>>,
    /// Where the value that one of several atomics fetches goes; that of a single one goes to `done`.
    pub value: Option<(Arc<[AtomicU64]>, usize)>,
}

/// Set in the contexts of plain operations, below which is their target's number, and in those of operations that a caller waits
/// for alone, below which is their slot. Others have an entry of the context's number.
const PLAIN: u64 = 1 << 63;
const AWAITED: u64 = 1 << 62;
/// Set in those of plain puts that were copied, besides: no flush waits for their buffers.
const COPIED_SHIFT: u32 = 61;

/// What the operation of a plain context adds to [`TargetState::outstanding`].
#[inline(always)]
fn weight(context: u64) -> u64 {
    1 << ((context >> COPIED_SHIFT & 1) * 32)
}

/// The slot of an operation that a caller waits for alone.
#[inline(always)]
fn slot_of(context: u64) -> Option<u32> {
    (context & (PLAIN | AWAITED) == AWAITED).then_some(context as u32)
}

/// All operations under way.
#[derive(Debug, Default)]
pub(crate) struct Pendings {
    entries: Mutex<Slab<Pending>>,
    targets: Arc<Targets>,
    slots: Slots,
}

/// An operation that its caller waits for alone.
pub(crate) struct Awaited<'a> {
    slots: &'a Slots,
    slot: u32,
    place: &'a Slot,
    /// The transport's context for it.
    pub context: u64,
}

impl Awaited<'_> {
    /// What it has found, if it has ended.
    #[inline(always)]
    pub fn outcome(&self) -> Option<TransportResult<u64>> {
        self.place.outcome()
    }
}

impl Drop for Awaited<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slots.leave(self.slot, self.place);
    }
}

impl Pendings {
    /// What will be outstanding at another target.
    pub fn target(&self) -> Target {
        Targets::open(&self.targets)
    }

    /// Notes an operation that is about to be posted; gives the transport's context for it.
    pub fn begin(&self, pending: Pending) -> u64 {
        pending.target.begin();
        self.entries.lock().insert(pending) as u64
    }

    /// Notes a plain operation: nothing is to be done at its end but to count it.
    #[inline]
    pub fn begin_plain(&self, target: &Target) -> u64 {
        match target.number() {
            Some(number) => {
                target.begin();
                PLAIN | u64::from(number)
            }
            None => {
                let target = target.share();
                self.begin(Pending { target, buffer: None, done: None, pull: None, value: None })
            }
        }
    }

    /// The same for a put that is copied.
    #[inline]
    pub fn begin_copied(&self, target: &Target) -> u64 {
        match target.number() {
            Some(number) => {
                target.begin_of(ONE_COPIED);
                PLAIN | 1 << COPIED_SHIFT | u64::from(number)
            }
            None => self.begin_plain(target),
        }
    }

    /// Notes an operation whose caller waits for it, and needs nothing else. None if too many do. It is not counted at its
    /// target, since no flush need wait for it: its caller does, and keeps its buffer.
    #[inline]
    pub fn begin_awaited(&self) -> Option<Awaited<'_>> {
        let (slot, place) = self.slots.take()?;
        Some(Awaited { slots: &self.slots, slot, place, context: AWAITED | u64::from(slot) })
    }

    /// The operation ended at once, or was not taken: gives it back, if it has a table entry.
    pub fn cancel(&self, context: u64) -> Option<Pending> {
        if let Some(slot) = slot_of(context) {
            self.slots.succeed(slot, 0);
            return None;
        }
        if let Some(target) = self.plain(context) {
            target.end_of(weight(context));
            return None;
        }
        let pending = self.entries.lock().try_remove(context as usize)?;
        pending.target.end();
        Some(pending)
    }

    /// The target of that number has applied the messages up to `sent`, or has refused the last of them. False if it cannot have.
    pub fn confirmed(&self, target: u32, sent: u64, refused: Option<TransportError>) -> bool {
        let Some(target) = self.targets.get(target) else { return false };
        // Before a flush learns that the messages are over.
        if let Some(refused) = refused.filter(|_| !target.messages.is_confirmed(sent)) {
            target.fail(refused);
        }
        target.messages.confirm(sent)
    }

    /// The target of a plain operation.
    #[inline(always)]
    fn plain(&self, context: u64) -> Option<&TargetState> {
        if context & PLAIN == 0 { None } else { self.targets.get(context as u32) }
    }

    /// A transport reports the success of an operation. Whether it had no table entry: then nothing is left to be done.
    #[must_use]
    #[inline(always)]
    pub fn succeed(&self, context: u64, value: u64) -> bool {
        if let Some(target) = self.plain(context) {
            target.end_of(weight(context));
            return true;
        }
        match slot_of(context) {
            Some(slot) => {
                self.slots.succeed(slot, value);
                true
            }
            None => false,
        }
    }

    /// A transport reports a completion. Returns what is to be done now.
    #[must_use]
    pub fn complete(&self, completion: Completion) -> Ended {
        let error = match completion.result {
            Ok(()) if self.succeed(completion.context, completion.value) => return Ended::default(),
            Ok(()) => return self.complete_entry(completion),
            Err(error) => error,
        };
        if let Some(target) = self.plain(completion.context) {
            target.fail(error);
            target.end_of(weight(completion.context));
        } else if let Some(slot) = slot_of(completion.context) {
            self.slots.fail(slot, error);
        } else {
            return self.complete_entry(Completion { result: Err(error), ..completion });
        }
        Ended::default()
    }

    fn complete_entry(&self, completion: Completion) -> Ended {
        let Some(pending) = self.entries.lock().try_remove(completion.context as usize) else {
            tracing::warn!(context = completion.context, "a completion of no operation");
            return Ended::default();
        };
        let error = completion.result.err();
        let succeeded = error.is_none();
        if let Some(error) = &error {
            pending.target.fail(error.clone());
        }
        if let Some(value) = pending.value.as_ref().and_then(|(values, at)| values.get(*at)) {
            value.store(completion.value, Ordering::Release);
        }
        drop(pending.buffer);
        let finished = pending.done.and_then(|done| {
            done.value.store(completion.value, Ordering::Release);
            done.count_down(error)
        });
        let pull = pending.pull.map(|pull| (pull, succeeded));
        Ended { finished, pull, counted: Some(Counted(pending.target)) }
    }
}

/// An operation that is still counted at its target.
pub(crate) struct Counted(Arc<TargetState>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What a completion brings. A flush waits until it is dropped: by then its requests are to be complete.
#[derive(Default)]
pub(crate) struct Ended {
    /// The last part of something that is counted has ended.
    pub finished: Option<Finished>,
    /// What the agent does with what it got, and whether it got it.
    pub pull: Option<(Box<Pull>, bool)>,
    /// The last field, and so dropped last.
    #[expect(dead_code, reason = "what matters is when it is dropped")]
    counted: Option<Counted>,
}
