//! Keeps the progress thread from writing memory, while pages of this process are replaced.

use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use transom_shm::Quiet;
use transom_transport::futex::{self, Among};

use super::Engine;

/// How long the progress thread may take to become quiet.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the progress thread is asked for. The word may be in a page that is replaced meanwhile.
#[derive(Debug, Default)]
pub(super) struct Hold(AtomicU32);

const GO: u32 = 0;
const ASKED: u32 = 1;
const HELD: u32 = 2;

impl Hold {
    /// Stays here while somebody asks for it. Called by the progress thread between two things that it does; from its answer on
    /// it writes nothing but its own stack.
    pub fn pass(&self) {
        if self.0.compare_exchange(ASKED, HELD, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        while self.0.load(Ordering::Acquire) == HELD {
            futex::sleep_on(&self.0, HELD, PATIENCE, Among::Threads);
        }
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire) == ASKED
    }

    /// Has the progress thread go on.
    fn end(&self) {
        self.0.store(GO, Ordering::Release);
        futex::wake_all(&self.0, Among::Threads);
    }
}

impl Engine {
    /// Calls `body` while the progress thread is held. False if it does something else for too long.
    fn hold_progress(&self, body: &mut dyn FnMut()) -> bool {
        let progress = &self.progress;
        let _inside = progress.enter();
        let _one = progress.holding.lock();
        progress.hold.0.store(ASKED, Ordering::Release);
        let start = Instant::now();
        while progress.hold.is_asked() && start.elapsed() < PATIENCE {
            progress.interrupt_sleepers();
            std::thread::yield_now();
        }
        let held = progress.hold.0.load(Ordering::Acquire) == HELD;
        if held {
            body();
        }
        progress.hold.end();
        held
    }

    /// The progress thread, to be kept quiet as long as there is one.
    pub(crate) fn quiet(self: &std::sync::Arc<Self>) -> QuietProgress {
        QuietProgress(std::sync::Arc::downgrade(self))
    }
}

/// The progress thread of an engine, if that is still there.
pub(crate) struct QuietProgress(Weak<Engine>);

impl Quiet for QuietProgress {
    fn threads(&self) -> usize {
        usize::from(self.0.upgrade().is_some())
    }

    fn keep(&self, body: &mut dyn FnMut()) -> bool {
        match self.0.upgrade() {
            Some(engine) => engine.hold_progress(body),
            None => {
                body();
                true
            }
        }
    }
}
