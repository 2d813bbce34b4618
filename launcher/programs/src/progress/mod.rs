//! Progress: ranks add to a counter in rank 0's memory; rank 0 shows it on its standard error, which under a launcher is a
//! pipe to a terminal.

mod bar;
mod pipe;

use std::cell::Cell;
use std::sync::mpsc::{self, RecvTimeoutError};

use transom::{Job, Result, Window};

pub use bar::Progress;

/// How much all ranks have done, counted by one-sided operations in a window of rank 0.
#[derive(Debug)]
pub struct Counter {
    window: Window<u64>,
    /// What rank 0 knows that this rank has done.
    reported: Reported,
}

/// What was reported, and how much more is worth an operation.
#[derive(Debug)]
struct Reported {
    done: Cell<u64>,
    step: u64,
}

impl Counter {
    /// A counter at 0, to which each rank adds when it has done `step` more. Collective.
    ///
    /// # Errors
    /// No memory.
    pub fn new(job: &Job, step: u64) -> Result<Self> {
        let window = job.allocate(usize::from(job.rank() == 0))?;
        Ok(Self { window, reported: Reported { done: Cell::new(0), step } })
    }

    /// Adds what this rank has done since its last report, if that is much, or if it was the `last`.
    ///
    /// # Errors
    /// Those of the operation.
    #[inline]
    pub fn report(&self, done: u64, last: bool) -> Result<()> {
        let more = done - self.reported.done.get();
        if more < self.reported.step && !(last && more > 0) {
            return Ok(());
        }
        self.reported.done.set(done);
        self.window.lock_all(|epoch| epoch.fetch_add(0, 0, more).map(drop))
    }

    /// Runs `body`, while a thread shows the counter's value: at rank 0 only, where it is local memory.
    pub fn shown_by<R>(&self, progress: Option<Progress>, body: impl FnOnce() -> R) -> R {
        let Some(mut progress) = progress.filter(|progress| !progress.is_hidden()) else { return body() };
        let counter = self.window.local();
        let (alive, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(bar::INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    progress.show(counter.get(0).unwrap_or(0));
                }
            });
            let result = body();
            drop(alive);
            result
        })
    }

    /// Frees the window. Collective.
    ///
    /// # Errors
    /// As [`Window::free`].
    pub fn free(self) -> Result<()> {
        self.window.free()
    }
}
