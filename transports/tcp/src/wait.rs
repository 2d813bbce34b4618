//! What to sleep on: all sockets, and a timer, in one epoll.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use transom_transport::{TransportError, TransportResult, WaitFd};

/// Events that are taken at once.
const EVENTS: usize = 64;

/// Whose a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The connection to this peer.
    Peer(usize),
    /// The attempt to connect to this peer.
    Dial(usize),
    Listener(usize),
    Stranger(usize),
    Timer,
}

impl Owner {
    fn number(self) -> u64 {
        let (kind, index) = match self {
            Self::Peer(index) => (0, index),
            Self::Dial(index) => (1, index),
            Self::Listener(index) => (2, index),
            Self::Stranger(index) => (3, index),
            Self::Timer => (4, 0),
        };
        kind << 32 | index as u64
    }

    fn of(number: u64) -> Self {
        let index = number as u32 as usize;
        match number >> 32 {
            0 => Self::Peer(index),
            1 => Self::Dial(index),
            2 => Self::Listener(index),
            3 => Self::Stranger(index),
            _ => Self::Timer,
        }
    }
}

/// What to watch a descriptor for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Reading,
    Writing,
    Both,
}

impl For {
    fn flags(self) -> EpollFlags {
        match self {
            Self::Reading => EpollFlags::EPOLLIN,
            Self::Writing => EpollFlags::EPOLLOUT,
            Self::Both => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// What to sleep on. Descriptors leave it when they are closed (epoll(7)).
#[derive(Debug)]
pub(crate) struct Wait {
    all: Epoll,
    timer: TimerFd,
    timed: bool,
    events: [EpollEvent; EVENTS],
}

fn failed(operation: &'static str) -> impl Fn(Errno) -> TransportError {
    move |errno| TransportError::errno(operation, errno)
}

impl Wait {
    pub fn new() -> TransportResult<Self> {
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed("timerfd_create"))?;
        let wait = Self { all, timer, timed: false, events: [EpollEvent::empty(); EVENTS] };
        wait.add(wait.timer.as_fd(), Owner::Timer, For::Reading)?;
        Ok(wait)
    }

    pub fn fd(&self) -> WaitFd {
        self.all.0.as_raw_fd()
    }

    pub fn add(&self, fd: BorrowedFd<'_>, owner: Owner, what: For) -> TransportResult<()> {
        self.all.add(fd, EpollEvent::new(what.flags(), owner.number())).map_err(failed("epoll_ctl"))
    }

    pub fn change(&self, fd: BorrowedFd<'_>, owner: Owner, what: For) -> TransportResult<()> {
        self.all.modify(fd, &mut EpollEvent::new(what.flags(), owner.number())).map_err(failed("epoll_ctl"))
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> TransportResult<()> {
        self.all.delete(fd).map_err(failed("epoll_ctl"))
    }

    /// Who has something, some of them.
    pub fn look(&mut self, found: &mut Vec<Owner>) {
        found.clear();
        // Nothing that can be done about an error here: the next look tries again.
        let count = self.all.wait(&mut self.events, EpollTimeout::ZERO).unwrap_or(0);
        found.extend(self.events.iter().take(count).map(|event| Owner::of(event.data())));
    }

    /// Makes the descriptor readable after this time, or sooner if that was asked for before.
    pub fn wake_in(&mut self, time: Duration) {
        let time = TimeSpec::from(time.max(Duration::from_nanos(1)));
        if self.timed
            && self
                .timer
                .get()
                .is_ok_and(|set| matches!(set, Some(Expiration::OneShot(left)) if left <= time))
        {
            return;
        }
        // Of valid arguments, timerfd_settime(2) refuses none.
        let _ = self.timer.set(Expiration::OneShot(time), TimerSetTimeFlags::empty());
        self.timed = true;
    }

    /// Takes that back.
    pub fn stop_timer(&mut self) {
        if self.timed {
            // Stops it, and makes it unreadable.
            let _ = self.timer.unset();
            self.timed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_come_back() {
        for owner in [
            Owner::Peer(7),
            Owner::Dial(0),
            Owner::Listener(3),
            Owner::Stranger(u32::MAX as usize),
            Owner::Timer,
        ] {
            assert_eq!(Owner::of(owner.number()), owner);
        }
    }
}
