//! Waiting for puts that notify ([`crate::Epoch::put_notify`]).

use super::Window;
use crate::waits::{Awaits, Subject};
use crate::{Element, Result};

impl<T: Element> Window<T> {
    /// Waits for `count` notifications of `number`, and consumes them. The data of their puts is then in this rank's
    /// window, to be loaded at once.
    ///
    /// ```
    /// transom::local(3, |job| {
    ///     let window = job.allocate::<u64>(3)?;
    ///     let data = [job.rank() as u64];
    ///     if job.rank() > 0 {
    ///         window.lock_all(|epoch| epoch.put_notify(0, job.rank(), &data, 7))?;
    ///     } else {
    ///         window.wait_notifications(7, 2)?;
    ///         assert_eq!(window.local().to_vec()?, [0, 1, 2]);
    ///     }
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// They are not there, and a member of the window's group is gone; the deadline passes.
    pub fn wait_notifications(&self, number: u64, count: u64) -> Result<()> {
        const NAME: &str = "wait_notifications";
        let core = &self.core;
        // Any member may be who notifies.
        let what = || {
            let text = format!("{count} notifications of number {number}");
            Awaits::new(text, Subject::Other, []).among(&core.comm.channel().group)
        };
        let taken = || core.exposure.take_notifications(number, count).then_some(Ok(()));
        core.member.engine.wait_until(NAME, &what, None, taken).map_err(|e| core.name(e))?;
        core.refresh(NAME)
    }

    /// [`Window::wait_notifications`] if there are so many; whether there were.
    ///
    /// # Errors
    /// The job has failed. Of members that are gone while it goes on [`crate::Communicator::failed`] tells.
    pub fn test_notifications(&self, number: u64, count: u64) -> Result<bool> {
        const NAME: &str = "test_notifications";
        let core = &self.core;
        core.member.engine.try_progress()?;
        let taken = core.exposure.take_notifications(number, count);
        if taken {
            core.refresh(NAME)?;
        }
        Ok(taken)
    }
}
