//! Puts and gets that a transport has under way.

use slab::Slab;
use transom_transport::{Completion, TransportError};

use super::pull::Pull;
use super::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};

/// What is outstanding between this rank and one target, in one window.
#[derive(Debug, Default)]
pub(crate) struct TargetState {
    /// Puts and gets under way.
    outstanding: AtomicU64,
    /// Accumulates and puts that were sent as messages.
    sent: AtomicU64,
    /// How many of those are known to be applied.
    confirmed: AtomicU64,
    /// The first operation that failed since the last flush.
    error: Mutex<Option<TransportError>>,
}

impl TargetState {
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) == 0
    }

    /// A message was sent that a flush has to confirm. Not to be called before it was: a flush of another thread would
    /// overtake the message, yet count it as confirmed.
    pub fn sent(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
    }

    /// How many messages have been sent, if not all are confirmed.
    pub fn unconfirmed(&self) -> Option<u64> {
        let sent = self.sent.load(Ordering::Acquire);
        (sent != self.confirmed.load(Ordering::Acquire)).then_some(sent)
    }

    /// The first so many messages are applied.
    pub fn confirm(&self, sent: u64) {
        self.confirmed.fetch_max(sent, Ordering::AcqRel);
    }

    /// Takes the first error since the last call.
    pub fn take_error(&self) -> Option<TransportError> {
        self.error.lock().take()
    }
}

/// One operation under way.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Where it is counted.
    pub target: Arc<TargetState>,
    /// The origin buffer, if the operation owns it.
    pub buffer: Option<Arc<[u8]>>,
    /// Where the operation's own end is awaited.
    pub done: Option<Arc<AtomicBool>>,
    /// What the agent does with what it gets.
    pub pull: Option<Box<Pull>>,
}

/// All operations under way; the key is the transport's context.
#[derive(Debug, Default)]
pub(crate) struct Pendings(Mutex<Slab<Pending>>);

impl Pendings {
    /// Notes an operation that is about to be posted.
    pub fn begin(&self, pending: Pending) -> u64 {
        pending.target.outstanding.fetch_add(1, Ordering::AcqRel);
        self.0.lock().insert(pending) as u64
    }

    /// The operation ended at once, or was not taken: gives it back.
    pub fn cancel(&self, context: u64) -> Option<Pending> {
        let pending = self.0.lock().try_remove(context as usize)?;
        pending.target.outstanding.fetch_sub(1, Ordering::AcqRel);
        Some(pending)
    }

    /// A transport reports the end of an operation. Returns what the agent has to do now, and whether it succeeded.
    pub fn complete(&self, completion: Completion) -> Option<(Box<Pull>, bool)> {
        let Some(pending) = self.0.lock().try_remove(completion.context as usize) else {
            tracing::warn!(context = completion.context, "a completion of no operation");
            return None;
        };
        let succeeded = completion.result.is_ok();
        if let Err(error) = completion.result {
            pending.target.error.lock().get_or_insert(error);
        }
        if let Some(done) = &pending.done {
            done.store(true, Ordering::Release);
        }
        pending.target.outstanding.fetch_sub(1, Ordering::AcqRel);
        drop(pending.buffer);
        pending.pull.map(|pull| (pull, succeeded))
    }
}
