//! What is outstanding between this rank and one target.

use transom_transport::TransportError;

use super::sent::Sent;
use super::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// What is outstanding between this rank and one target, in one window.
#[derive(Debug, Default)]
pub(crate) struct TargetState {
    /// Puts and gets under way: those that have buffers of the program's in the lower half, puts that were copied in the upper.
    outstanding: AtomicU64,
    /// Accumulates and puts that were sent as messages.
    pub messages: Sent,
    /// The first operation that failed since the last flush.
    error: Mutex<Option<TransportError>>,
    /// Whether one has.
    failed: AtomicBool,
    /// Whether an epoch has ended with operations that are not known to be done.
    unsettled: AtomicBool,
}

/// What a put that was copied adds to [`TargetState::outstanding`], as others add 1.
pub(super) const ONE_COPIED: u64 = 1 << 32;

impl TargetState {
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) == 0
    }

    /// An operation by messages is under way: a request whose reply ends it.
    pub fn begin(&self) {
        self.begin_of(1);
    }

    /// An operation begins that adds so much.
    #[inline(always)]
    pub(super) fn begin_of(&self, weight: u64) {
        self.outstanding.fetch_add(weight, Ordering::AcqRel);
    }

    /// How many are under way, and have buffers of the program's.
    pub fn under_way(&self) -> u64 {
        self.outstanding.load(Ordering::Acquire) % ONE_COPIED
    }

    /// An epoch has ended. What it has left under way is done before anything that the target is sent by a message now, but
    /// perhaps not before a put or a get.
    pub fn leave_unsettled(&self) {
        if !self.is_idle() || self.messages.unconfirmed().is_some() {
            self.unsettled.store(true, Ordering::Release);
        }
    }

    /// Whether that is so.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire)
    }

    /// What such epochs have left is done.
    pub fn settle(&self) {
        self.unsettled.store(false, Ordering::Release);
    }

    /// One has failed: the next flush says so.
    pub fn fail(&self, error: TransportError) {
        self.error.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// It has ended.
    pub fn end(&self) {
        self.end_of(1);
    }

    /// An operation has ended that has added so much.
    #[inline(always)]
    pub(super) fn end_of(&self, weight: u64) {
        self.outstanding.fetch_sub(weight, Ordering::AcqRel);
    }

    /// Takes the first error since the last call.
    #[inline]
    pub fn take_error(&self) -> Option<TransportError> {
        if self.failed.load(Ordering::Acquire) { self.take_first_error() } else { None }
    }

    #[cold]
    fn take_first_error(&self) -> Option<TransportError> {
        let mut error = self.error.lock();
        self.failed.store(false, Ordering::Relaxed);
        error.take()
    }

    /// Reset for another target.
    pub(super) fn forget(&self) {
        self.messages.confirm(self.messages.all());
        self.settle();
        drop(self.take_error());
    }
}
