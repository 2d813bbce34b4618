//! The progress thread sleeps while a caller polls with the mask on, and leaves: whatever comes is found by one of them, and a
//! thread that sleeps where the progress thread did is woken.

use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use super::check;
use super::mask::{Mask, Sleep};
use super::sync::{Arc, AtomicUsize, Ordering};

#[derive(Debug)]
struct State {
    /// What has come, and nobody has taken.
    waiting: usize,
    is_open: bool,
    is_called: bool,
}

/// A transport, and what to sleep on for it.
#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    /// Masks taken off.
    masks: AtomicUsize,
}

impl Gate {
    fn new() -> Self {
        let state = State { waiting: 0, is_open: true, is_called: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), masks: AtomicUsize::new(0) }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn take(&self) -> usize {
        std::mem::take(&mut self.state.lock().unwrap().waiting)
    }

    /// Returns when it is woken.
    fn sleep(&self) {
        let mut state = self.state.lock().unwrap();
        while !(state.is_called || state.is_open && state.waiting > 0) {
            state = self.changed.wait(state).unwrap();
        }
        state.is_called = false;
    }
}

impl Sleep for Gate {
    fn shut(&self) {
        self.change(|state| state.is_open = false);
    }

    fn open(&self) -> bool {
        self.change(|state| state.is_open = true);
        false
    }

    fn wake(&self) {
        self.change(|state| state.is_called = true);
    }

    fn is_often_shut(&self) -> bool {
        self.masks.fetch_add(1, Ordering::Relaxed) > 0
    }
}

const CALLERS: usize = 2;
const ARRIVALS: usize = 3;

#[test]
fn shuttle_what_comes_behind_the_mask_is_found() {
    check(|| {
        let mask = Arc::new(Mask::new(Gate::new()));
        let found = Arc::new(AtomicUsize::new(0));
        let progress = thread::spawn({
            let (mask, found) = (mask.clone(), found.clone());
            move || {
                while found.load(Ordering::SeqCst) < ARRIVALS {
                    mask.begin();
                    mask.sleep.sleep();
                    mask.end();
                    found.fetch_add(mask.sleep.take(), Ordering::SeqCst);
                }
            }
        });
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (mask, found) = (mask.clone(), found.clone());
                thread::spawn(move || {
                    let masked = mask.put_on();
                    found.fetch_add(mask.sleep.take(), Ordering::SeqCst);
                    drop(masked);
                })
            })
            .collect();
        for _ in 0..ARRIVALS {
            mask.sleep.change(|state| state.waiting += 1);
        }
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        // What callers have taken is no news to the progress thread: it looks whether it is wanted.
        while found.load(Ordering::SeqCst) < ARRIVALS {
            thread::yield_now();
        }
        mask.sleep.wake();
        progress.join().unwrap();
        // Another thread may sleep there now.
        mask.sleep.change(|state| state.waiting += 1);
        mask.sleep.sleep();
        assert_eq!(mask.sleep.take(), 1);
    });
}
