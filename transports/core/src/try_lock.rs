//! A lock that nobody waits for: who does not get it does something else.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A value for one thread at a time. Taking it is one atomic instruction, giving it back a store: half of what a lock costs that
/// others may sleep for.
#[derive(Debug, Default)]
pub struct TryLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: a reference to the value is given to one thread at a time (`TryLock::try_lock`), as by a mutex (std::sync::Mutex).
unsafe impl<T: Send> Sync for TryLock<T> {}

/// The value, for the thread that has it.
#[derive(Debug)]
pub struct Taken<'a, T>(&'a TryLock<T>);

impl<T> TryLock<T> {
    /// A lock of a value.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, unless another thread has it. What that did with it before is seen.
    #[inline]
    pub fn try_lock(&self) -> Option<Taken<'_, T>> {
        // Looked at first: a look takes the cache line from nobody.
        let free = !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire);
        // Made only if it is free: what is dropped gives the value back.
        if free { Some(Taken(self)) } else { None }
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Taken` until it is dropped, so there is no other reference but those that borrow it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this one is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_has_it_at_a_time() {
        let lock = TryLock::new(0u64);
        let first = lock.try_lock().unwrap();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none(), "who did not get it does not give it back");
        drop(first);
        let counted: u64 = std::thread::scope(|scope| {
            let count =
                || (0..100_000).filter(|_| lock.try_lock().map(|mut value| *value += 1).is_some()).count();
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap() as u64).sum()
        });
        assert_eq!(*lock.try_lock().unwrap(), counted);
    }
}
