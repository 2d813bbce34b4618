//! The target, attended: a thread that makes progress for it, as a rank's progress thread does.

use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;

use parking_lot::Mutex;
use transom_transport::TransportError;

use crate::pair::Pair;
use crate::side::Trouble;

/// Polls without a find after which the thread leaves its core to others: where nothing needs it, it is not in the way.
const PATIENT: u32 = 200;
const NAP: Duration = Duration::from_micros(50);

/// Stops the threads of a scope when it goes, also by a panic, which would else wait for them for ever.
pub(crate) struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Progress at the target.
pub(crate) struct Attended;

impl Attended {
    /// Does something while the target makes progress; its messages go to `sink`.
    pub fn run<T>(
        pair: &Pair,
        sink: &(impl Fn(&[u8]) + Sync),
        body: impl FnOnce() -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let stop = AtomicBool::new(false);
        let failed: Mutex<Option<TransportError>> = Mutex::new(None);
        let result = std::thread::scope(|scope| {
            let stop_at_end = Stop(&stop);
            scope.spawn(|| {
                let mut idle = 0;
                while !stop.load(Ordering::Acquire) {
                    match pair.target.poll_into(&mut |message| sink(message)) {
                        Ok(0) if idle > PATIENT => std::thread::sleep(NAP),
                        Ok(0) => {
                            idle += 1;
                            std::thread::yield_now();
                        }
                        Ok(_) => idle = 0,
                        Err(error) => {
                            *failed.lock() = Some(error);
                            return;
                        }
                    }
                }
            });
            let result = body();
            drop(stop_at_end);
            result
        });
        match failed.into_inner() {
            Some(error) => Err(error.into()),
            None => result,
        }
    }
}
