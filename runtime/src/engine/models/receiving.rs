//! Receives in slots end while their requests wait, or are dropped: each is told of its own, a task that watches is woken, and no slot is
//! lost.

use std::task::{Wake, Waker};

use shuttle::thread;

use super::check;
use super::receive_slots::{ReceiveSlots, SLOTS};
use super::sync::{Arc, AtomicBool, Mutex, Ordering};

const RECEIVES: usize = 3;

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Of the receives one is dropped, one is waited for, and one is watched.
#[test]
fn shuttle_receives_in_slots_are_told_of_their_own_message() {
    check(|| {
        let slots = Arc::new(ReceiveSlots::default());
        // As receives are posted by one thread at a time.
        let posted = Arc::new(Mutex::new(()));
        let receives: Vec<_> = (0..RECEIVES)
            .map(|number| {
                let (slots, posted) = (slots.clone(), posted.clone());
                thread::spawn(move || {
                    let slot = {
                        let _lock = posted.lock();
                        slots.take(number).unwrap()
                    };
                    let message = (number as i32, 10 * number, Ok(()));
                    let ending = thread::spawn({
                        let slots = slots.clone();
                        move || slots.end(slot, message).map_or((), Waker::wake)
                    });
                    assert_eq!(slots.source(slot), Some(number));
                    if number == 0 {
                        slots.leave(slot);
                        return ending.join().unwrap();
                    }
                    let woken = std::sync::Arc::new(Woken::default());
                    let watched = number == 2 && slots.watch(slot, &Waker::from(woken.clone()));
                    while !(slots.has_ended(slot) || watched && woken.0.load(Ordering::SeqCst)) {
                        thread::yield_now();
                    }
                    let (tag, bytes, result) = slots.came(slot).unwrap();
                    assert_eq!((tag as usize, bytes, result.is_ok()), (number, 10 * number, true));
                    ending.join().unwrap();
                    assert_eq!(woken.0.load(Ordering::SeqCst), watched);
                    slots.free(slot);
                })
            })
            .collect();
        receives.into_iter().for_each(|receive| receive.join().unwrap());
        let all: std::collections::BTreeSet<_> = std::iter::from_fn(|| slots.take(0)).collect();
        assert_eq!(all.len(), SLOTS);
    });
}
