//! What to sleep on: the completion channel, the device's own events, and a timer for connections that are asked for.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ibverbs::{AsyncEvent, AsyncKind, CompletionChannel, CompletionQueue, Context, VerbsError};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use transom_transport::{TransportError, TransportResult, WaitFd};

/// What to sleep on.
#[derive(Debug)]
pub(crate) struct Wait {
    all: Epoll,
    timer: TimerFd,
    channel: Arc<CompletionChannel>,
    device: Arc<Context>,
}

fn failed(operation: &'static str) -> impl Fn(Errno) -> TransportError {
    move |errno| TransportError::errno(operation, errno)
}

fn refused(error: VerbsError) -> TransportError {
    TransportError::System { operation: "ibv_req_notify_cq", reason: error.to_string() }
}

impl Wait {
    pub fn new(device: &Arc<Context>, channel: Arc<CompletionChannel>) -> TransportResult<Self> {
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed("timerfd_create"))?;
        let wait = Self { all, timer, channel, device: device.clone() };
        for fd in [wait.channel.as_fd(), device.async_fd(), wait.timer.as_fd()] {
            wait.add(fd)?;
        }
        Ok(wait)
    }

    /// One more descriptor: it wakes who sleeps, and does so again until somebody has read from it.
    pub fn add(&self, fd: BorrowedFd<'_>) -> TransportResult<()> {
        self.all.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(failed("epoll_ctl"))
    }

    pub fn fd(&self) -> WaitFd {
        self.all.0.as_raw_fd()
    }

    /// Asks for an event with the next completion.
    pub fn arm(&self, queue: &CompletionQueue) -> TransportResult<()> {
        queue.request_notification().map_err(refused)
    }

    /// Asks for an event with the next message: all of them are sent as solicited.
    pub fn arm_for_messages(&self, queue: &CompletionQueue) -> TransportResult<()> {
        queue.request_solicited_notification().map_err(refused)
    }

    /// Asks for a wake-up at a time.
    pub fn wake_at(&self, time: Instant) -> TransportResult<()> {
        let sleep = time.saturating_duration_since(Instant::now()).max(Duration::from_micros(100));
        self.timer
            .set(Expiration::OneShot(TimeSpec::from(sleep)), TimerSetTimeFlags::empty())
            .map_err(failed("timerfd_settime"))
    }

    /// Makes the descriptor unreadable again.
    pub fn disarm(&self) {
        // Stops it, and makes it unreadable (timerfd_settime(2)).
        let _ = self.timer.unset();
        self.channel.take_events();
    }

    /// Whether the device is gone.
    pub fn take_device_events(&self) -> Option<AsyncEvent> {
        while let Ok(Some(event)) = self.device.async_event() {
            tracing::debug!(event = event.text(), queue_pair = ?event.queue_pair, "the device tells");
            if event.kind == AsyncKind::DeviceFatal {
                return Some(event);
            }
        }
        None
    }
}
