//! Agreements by the launcher of ranks of which some may die. A thread listens for them while any is under way: no transport announces
//! them, and the program computes meanwhile, or asks the launcher for something else.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;
use transom_pmi::{Agreement, Contribution};
use transom_transport::limits;

use super::Member;
use crate::bootstrap::{Bootstrap, not_agreed};
use crate::engine::{Engine, Promise};
use crate::{Class, Error, Request, Result};

const NAME: &str = "agree";
/// Milliseconds after which the thread looks whether another has read what it waits for.
const LOOK: u16 = 50;

impl Member {
    /// Contributes to an agreement of some ranks of the job.
    pub fn start_agreement(self: &Arc<Self>, own: Contribution<'_>) -> Request<Agreement> {
        let promise = Promise::new();
        let started = self.engine.explain_losses().and_then(|()| self.ask(own, &promise));
        match started {
            Ok(()) => Request::of(self, NAME, promise),
            Err(error) => Request::done(self, NAME, Err(error.at_rank(self.engine.rank))),
        }
    }

    fn ask(&self, own: Contribution<'_>, promise: &Arc<Promise<Agreement>>) -> Result<()> {
        let (engine, promise) = (Arc::downgrade(&self.engine), promise.clone());
        let answered = Box::new(move |agreement: std::result::Result<_, _>| {
            if let Some(engine) = engine.upgrade() {
                promise.complete(&engine, agreement.map_err(|e| not_agreed(e).at_rank(engine.rank)));
            }
        });
        let mut bootstrap = self.bootstrap.lock();
        if !self.listened_for.load(Ordering::Relaxed) {
            let answers = bootstrap.answers()?;
            let (all, listened_for) = (self.bootstrap.clone(), self.listened_for.clone());
            let engine = self.engine.clone();
            let listener = std::thread::Builder::new().name(format!("agree-{}", self.engine.rank));
            // It waits for the bootstrap first, which this thread has.
            let spawned = listener.spawn(move || listen(&engine, &answers, &all, &listened_for));
            let refused = |e| Error::new(Class::System, NAME, limits::no_process(&e, 1));
            spawned.map_err(refused)?;
            self.listened_for.store(true, Ordering::Relaxed);
        }
        bootstrap.start_agreement(own, answered)
    }
}

/// Hears of agreements until none is under way.
fn listen(
    engine: &Engine,
    answers: &OwnedFd,
    bootstrap: &Mutex<Box<dyn Bootstrap>>,
    listened_for: &AtomicBool,
) {
    loop {
        let mut bootstrap = bootstrap.lock();
        let more = bootstrap.take_agreements();
        if !more {
            listened_for.store(false, Ordering::Relaxed);
        }
        drop(bootstrap);
        engine.drive_and_wake();
        if !more {
            return;
        }
        // An interrupted sleep is as good as a wake-up.
        let _ = poll(&mut [PollFd::new(answers.as_fd(), PollFlags::POLLIN)], PollTimeout::from(LOOK));
    }
}
