//! Bounded time for tests.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{Ranks, Subject};

/// Longest time of one test, on a machine that is busy with others.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs one test on three connected ranks; fails it if it takes too long.
pub fn run(name: &'static str, subject: Subject, test: fn(&Subject, &Ranks)) {
    within(LIMIT, name, move || {
        if let Some(ranks) = Ranks::open(&subject, 3) {
            test(&subject, &ranks);
        }
    });
}

/// Runs `body`; panics if it takes longer than `limit`, leaving its thread behind.
pub fn within(limit: Duration, name: &'static str, body: impl FnOnce() + Send + 'static) {
    let (finished, wait) = mpsc::channel();
    let thread = thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            body();
            let _ = finished.send(());
        })
        .expect("a thread for the test");
    match wait.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name} hangs: no end within {limit:?}"),
        _ => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
