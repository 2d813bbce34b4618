//! Keeps the process's signal handlers as they are while a library is opened.
//!
//! Libraries that libfabric is linked to (PSM's libinfinipath and libpsm2) install handlers in their constructors, which on
//! a SIGTERM or a crash write a backtrace file into the working directory.

/// Signals that programs may have handlers for (signal(7): 1 to 31 are the standard ones).
const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=31;

/// The handlers of this process at one time; put back by its drop.
pub(crate) struct Handlers(Vec<(libc::c_int, libc::sigaction)>);

impl Handlers {
    /// Remembers the handlers as they are.
    pub(crate) fn remember() -> Self {
        let mut handlers = Vec::new();
        for signal in SIGNALS {
            // SAFETY: a zeroed sigaction is a valid one (no handler, empty mask) to be written over.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: sigaction(2): a null new action only asks; `action` is valid for writing.
            if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } == 0 {
                handlers.push((signal, action));
            }
        }
        Self(handlers)
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: as in `remember`.
            let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: sigaction(2): only asks.
            let asked = unsafe { libc::sigaction(*signal, std::ptr::null(), &raw mut now) } == 0;
            if asked && now.sa_sigaction != before.sa_sigaction {
                // SAFETY: sigaction(2): what the kernel gave is put back; its handler is still there, since nothing was
                // unloaded. (SIGKILL and SIGSTOP never differ.)
                unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_installed_in_between_is_gone() {
        extern "C" fn handler(_: libc::c_int) {}
        let current = || {
            // SAFETY: as above.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            unsafe { libc::sigaction(libc::SIGUSR2, std::ptr::null(), &raw mut action) };
            action.sa_sigaction
        };
        let before = current();
        let handlers = Handlers::remember();
        // SAFETY: signal(2) with a handler that does nothing.
        unsafe { libc::signal(libc::SIGUSR2, handler as *const () as libc::sighandler_t) };
        assert_ne!(current(), before);
        drop(handlers);
        assert_eq!(current(), before);
    }
}
