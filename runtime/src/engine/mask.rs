//! Keeps the progress thread asleep while a caller polls: what the caller awaits would wake that thread too, often on the
//! caller's own core and before it. A network driver masks interrupts while it polls for the same reason.

use super::sync::{AtomicU8, Ordering};

/// What the progress thread sleeps on.
pub(super) trait Sleep {
    /// Nothing that comes wakes it, but [`Sleep::wake`].
    fn shut(&self);

    /// What comes wakes it, and what has come since. Returns whether it has to be woken to look.
    fn open(&self) -> bool;

    fn wake(&self);

    /// Whether callers come so often that the progress thread had better leave them alone for a while. Asked once each time.
    fn is_often_shut(&self) -> bool;
}

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const MASKED: u8 = 2;
/// Masked, and woken.
const CALLED: u8 = 3;

/// What the progress thread does. No lock: who wakes it on his own core would have it wait for him.
#[derive(Debug)]
pub(super) struct Mask<S> {
    state: AtomicU8,
    pub sleep: S,
}

impl<S: Sleep> Mask<S> {
    pub fn new(sleep: S) -> Self {
        Self { state: AtomicU8::new(AWAKE), sleep }
    }

    /// The progress thread is about to sleep until anything comes.
    pub fn begin(&self) {
        self.state.store(ASLEEP, Ordering::Release);
    }

    /// It is awake: who sleeps next is woken by everything.
    pub fn end(&self) {
        if matches!(self.state.swap(AWAKE, Ordering::AcqRel), MASKED | CALLED) {
            self.sleep.open();
        }
    }

    /// For a caller that sends what is answered, before that, and then polls; or that has polled in vain. To be dropped when it
    /// polls no more.
    #[inline]
    pub fn put_on(&self) -> Option<Masked<'_, S>> {
        if self.state.load(Ordering::Relaxed) == ASLEEP { self.put_on_now() } else { None }
    }

    #[cold]
    fn put_on_now(&self) -> Option<Masked<'_, S>> {
        if !self.change(ASLEEP, MASKED) {
            return None;
        }
        self.sleep.shut();
        let masked = Masked(self);
        // If it has woken meanwhile, another thread may be about to sleep where it did.
        (self.state.load(Ordering::Acquire) == MASKED).then_some(masked)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// Nothing that comes wakes the progress thread until this is dropped.
pub(super) struct Masked<'a, S: Sleep>(&'a Mask<S>);

impl<S: Sleep> Drop for Masked<'_, S> {
    fn drop(&mut self) {
        let Mask { sleep, .. } = self.0;
        if sleep.is_often_shut() && self.0.change(MASKED, CALLED) {
            sleep.wake();
            return;
        }
        let look = sleep.open();
        if self.0.change(MASKED, ASLEEP) && look {
            sleep.wake();
        }
    }
}
