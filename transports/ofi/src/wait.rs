//! What to sleep on.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use libfabric::{CompletionQueue, Fabric};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use transom_transport::{TransportError, TransportResult, WaitFd};

/// Sleep of a rank that has just had traffic, where no descriptor tells of more.
const SHORTEST: Duration = Duration::from_micros(50);
/// How often such a sleep is doubled while nothing comes: up to 6.4 ms.
const DOUBLINGS: u32 = 7;

/// What to sleep on.
#[derive(Debug)]
pub(crate) enum Wait {
    /// The completion queue's descriptor (`FI_WAIT_FD`).
    Queue(WaitFd),
    /// A timer, for providers without one: sleeps are short, and grow while nothing comes.
    Timer { timer: TimerFd, idle: u32 },
}

impl Wait {
    /// The queue's descriptor, or a timer.
    pub fn new(queue: &CompletionQueue) -> TransportResult<Self> {
        if let Some(fd) = queue.wait_fd() {
            return Ok(Self::Queue(fd.as_raw_fd()));
        }
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let failed = |e: Errno| TransportError::errno("timerfd_create", e);
        Ok(Self::Timer { timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed)?, idle: 0 })
    }

    pub fn fd(&self) -> WaitFd {
        match self {
            Self::Queue(fd) => *fd,
            Self::Timer { timer, .. } => timer.as_fd().as_raw_fd(),
        }
    }

    /// Something was found: the next sleep is a short one.
    pub fn found(&mut self) {
        if let Self::Timer { idle, .. } = self {
            *idle = 0;
        }
    }

    /// Whether one may sleep now; if so the descriptor becomes readable in time.
    pub fn arm(&mut self, fabric: &Fabric, queue: &Arc<CompletionQueue>) -> TransportResult<bool> {
        match self {
            Self::Queue(_) => fabric
                .try_wait(&[queue])
                .map_err(|e| TransportError::System { operation: "fi_trywait", reason: e.to_string() }),
            Self::Timer { timer, idle } => {
                let sleep = SHORTEST * 2_u32.pow(*idle);
                *idle = (*idle + 1).min(DOUBLINGS);
                timer
                    .set(Expiration::OneShot(TimeSpec::from(sleep)), TimerSetTimeFlags::empty())
                    .map_err(|e| TransportError::errno("timerfd_settime", e))?;
                Ok(true)
            }
        }
    }

    /// Ends a sleep. (A queue takes its signal back when it is next asked whether one may sleep: fi_poll(3).)
    pub fn disarm(&self) {
        if let Self::Timer { timer, .. } = self {
            // Stops it, and makes it unreadable (timerfd_settime(2)).
            let _ = timer.unset();
        }
    }
}
