//! What a thread sleeps on: the descriptors of all transports, which are kept from waking it while they are shut, and one that
//! always wakes it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use parking_lot::Mutex;
use transom_transport::{Armed, Transport};

use super::mask::Sleep;
use crate::memory;

/// Waits that follow each other this soon are many.
const SOON: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Gates {
    gates: Vec<Gate>,
    /// The launcher's event descriptor, if it has given one.
    wakeup: OwnedFd,
    /// When callers let it be woken again last.
    opened: Mutex<Option<Instant>>,
}

impl Gates {
    pub fn new(transports: &[Arc<dyn Transport>], wakeup: OwnedFd) -> Self {
        Self { gates: transports.iter().cloned().map(Gate::new).collect(), wakeup, opened: Mutex::default() }
    }

    /// The descriptors of the first `count` transports, and that of [`Gates::wake`].
    pub fn fds(&self, count: usize) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.gates.iter().take(count).map(Gate::fd).chain([self.wakeup.as_fd()])
    }

    pub fn wake(&self) {
        let _ = nix::unistd::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    /// What was written to the event descriptor since the last time.
    pub fn clear_wakeup(&self) -> u64 {
        let mut sum = [0; size_of::<u64>()];
        let _ = nix::unistd::read(&self.wakeup, &mut sum);
        u64::from_ne_bytes(sum)
    }
}

impl Sleep for Gates {
    fn shut(&self) {
        self.gates.iter().for_each(Gate::shut);
    }

    fn open(&self) -> bool {
        self.gates.iter().filter(|gate| gate.open()).count() > 0
    }

    fn wake(&self) {
        self.wake();
    }

    fn is_often_shut(&self) -> bool {
        let now = Instant::now();
        self.opened.lock().replace(now).is_some_and(|last| now - last < SOON)
    }
}

#[derive(Debug)]
struct Gate {
    transport: Arc<dyn Transport>,
    /// With the transport's descriptor in it. None where peers wake only who has armed, or where it goes into none.
    epoll: Option<Epoll>,
}

impl Gate {
    fn new(transport: Arc<dyn Transport>) -> Self {
        let around = |fd| {
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).ok()?;
            Some(epoll)
        };
        let epoll = if transport.wakes_if_armed() { None } else { around(memory::wait_fd(&*transport)) };
        Self { transport, epoll }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_ref().map_or_else(|| memory::wait_fd(&*self.transport), |epoll| epoll.0.as_fd())
    }

    /// Of a descriptor that is in it, an epoll refuses nothing (epoll_ctl(2)).
    fn watch(&self, epoll: &Epoll, flags: EpollFlags) {
        let _ = epoll.modify(memory::wait_fd(&*self.transport), &mut EpollEvent::new(flags, 0));
    }

    fn shut(&self) {
        match &self.epoll {
            Some(epoll) => self.watch(epoll, EpollFlags::empty()),
            None if self.transport.wakes_if_armed() => self.transport.disarm(false),
            None => {}
        }
    }

    fn open(&self) -> bool {
        match &self.epoll {
            // What has come meanwhile wakes the sleeper now.
            Some(epoll) => self.watch(epoll, EpollFlags::EPOLLIN),
            None if self.transport.wakes_if_armed() => {
                return !matches!(self.transport.arm(), Ok(Armed::Sleep));
            }
            None => {}
        }
        false
    }
}
