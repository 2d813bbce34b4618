//! Waiting for memory to change (OpenSHMEM 1.5 §9.11).

use super::Shmem;
use crate::Result;
use crate::engine::SHORT_SLEEP;

impl Shmem {
    /// Waits until `ready` says so: a look at this PE's own memory, which others change. What others ask of this PE is served
    /// meanwhile. `what` describes what is awaited, for the error of a deadline.
    ///
    /// # Errors
    /// That of `ready`; a peer is gone; the deadline passes.
    pub fn await_that(
        &self,
        call: &'static str,
        what: &dyn Fn() -> String,
        mut ready: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        // Other ranks of this node store without an event here.
        self.engine().wait_until(call, &|| what().into(), Some(SHORT_SLEEP), || match ready() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })
    }

    /// Serves what others ask of this PE: for calls that test, and do not wait.
    ///
    /// # Errors
    /// A peer is gone.
    pub fn progress(&self) -> Result<()> {
        self.engine().try_progress().map(drop)
    }
}
