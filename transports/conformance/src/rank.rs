//! One rank: a transport with somebody who polls it.

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;
use transom_transport::{
    Armed, Event, ListTransfer, Part, Posted, Region, Remote, Span, Transfer, Transport, TransportResult,
};

/// One rank.
#[derive(Debug)]
pub struct Rank {
    /// Its transport.
    pub transport: Arc<dyn Transport>,
    /// What arrived.
    pub messages: Mutex<VecDeque<Vec<u8>>>,
    done: Mutex<HashMap<u64, TransportResult<()>>>,
    polling: Mutex<()>,
    contexts: AtomicU64,
}

/// Whether an operation was begun. `None`: it was not taken. `Some(None)`: it is done. Else its context.
pub type Begun = Option<Option<u64>>;

/// How a sleep for messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slept {
    Woken,
    InVain,
    /// The transport cannot sleep like that.
    Otherwise,
}

/// In place of a sleep that the transport cannot do.
const NAP: Duration = Duration::from_micros(250);

impl Rank {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            messages: Mutex::default(),
            done: Mutex::default(),
            polling: Mutex::default(),
            contexts: AtomicU64::new(1),
        }
    }

    /// Makes progress, unless another thread does; returns how much there was, what was done for peers included.
    pub fn poll(&self) -> usize {
        self.poll_into(&mut |message| self.messages.lock().push_back(message.to_vec())).unwrap()
    }

    /// Makes progress, and hands messages to `sink`.
    pub fn poll_into(&self, sink: &mut dyn FnMut(&[u8])) -> TransportResult<usize> {
        let Some(_polling) = self.polling.try_lock() else { return Ok(0) };
        let mut found = 0;
        let returned = self.transport.progress(&mut |event| {
            found += 1;
            match event {
                Event::Message(message) => sink(message),
                Event::Long(start, rest) => sink(&rest.behind(start)),
                Event::Complete(completion) => {
                    let before = self.done.lock().insert(completion.context, completion.result);
                    assert!(before.is_none(), "context {} completed twice", completion.context);
                }
            }
        })?;
        // What it has done for peers counts, too.
        assert!(returned >= found, "progress counts {returned} of {found}");
        Ok(returned)
    }

    /// Sends if there is room.
    pub fn try_send(&self, to: usize, header: &[u8], payload: &[u8]) -> bool {
        self.transport.message(to, header, payload).unwrap() == Posted::Complete
    }

    fn context(&self) -> u64 {
        self.contexts.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins an operation that `post` posts with a context.
    fn post(&self, post: impl FnOnce(u64) -> TransportResult<Posted>) -> TransportResult<Begun> {
        let context = self.context();
        Ok(match post(context)? {
            Posted::Complete => Some(None),
            Posted::Pending => Some(Some(context)),
            Posted::Again => None,
        })
    }

    /// Begins a put.
    ///
    /// # Safety
    /// `data` stays until the end.
    pub unsafe fn try_put(&self, remote: &Remote, offset: usize, data: &[u8]) -> TransportResult<Begun> {
        if let Some(direct) = &remote.direct {
            return direct.copy_in(offset, data).map(|()| Some(None));
        }
        let (local, len) = (data.as_ptr().cast_mut(), data.len());
        // SAFETY: the caller's promise.
        self.post(|context| unsafe { self.transport.put(&Transfer { remote, offset, local, len, context }) })
    }

    /// Begins a get.
    ///
    /// # Safety
    /// `data` stays until the end, and is not used before.
    pub unsafe fn try_get(&self, remote: &Remote, offset: usize, data: &mut [u8]) -> TransportResult<Begun> {
        if let Some(direct) = &remote.direct {
            return direct.copy_out(offset, data).map(|()| Some(None));
        }
        let (local, len) = (data.as_mut_ptr(), data.len());
        // SAFETY: the caller's promise.
        self.post(|context| unsafe { self.transport.get(&Transfer { remote, offset, local, len, context }) })
    }

    /// As [`Rank::try_put`], for parts of `data`.
    ///
    /// # Safety
    /// `data` stays until the end.
    pub unsafe fn try_put_list(
        &self,
        (remote, offset): (&Remote, usize),
        data: &[u8],
        parts: &[Part],
    ) -> TransportResult<Begun> {
        // SAFETY: the caller's promise; the callers here keep parts inside the data.
        self.post(|context| unsafe {
            let local = data.as_ptr().cast_mut();
            self.transport.put_list(&ListTransfer { remote, offset, local, parts, context })
        })
    }

    /// As [`Rank::try_get`], for parts of `data`.
    ///
    /// # Safety
    /// `data` stays until the end, and is not used before.
    pub unsafe fn try_get_list(
        &self,
        (remote, offset): (&Remote, usize),
        data: &mut [u8],
        parts: &[Part],
    ) -> TransportResult<Begun> {
        // SAFETY: as above.
        self.post(|context| unsafe {
            let local = data.as_mut_ptr();
            self.transport.get_list(&ListTransfer { remote, offset, local, parts, context })
        })
    }

    /// The result of an operation that has ended.
    pub fn ended(&self, started: Option<u64>) -> Option<TransportResult<()>> {
        match started {
            None => Some(Ok(())),
            Some(context) => self.done.lock().remove(&context),
        }
    }

    /// Zeroed memory as the transport allocates it, or of this process.
    pub fn allocate(&self, bytes: usize) -> Span {
        self.transport.allocate(bytes).unwrap().unwrap_or_else(|| Span::anonymous(bytes).unwrap())
    }

    /// Exposes memory to a peer.
    pub fn expose(&self, rank: usize, memory: &Span, to: &Rank) -> (Box<dyn Region>, Remote) {
        let region = self.transport.register(memory).unwrap();
        let remote = to.transport.attach(rank, &region.key()).unwrap();
        assert_eq!((remote.peer, remote.len), (rank, memory.len()));
        (region, remote)
    }

    /// Sleeps until something arrives or the time is over; returns whether it slept in vain.
    pub fn sleep(&self, time: Duration) -> bool {
        let armed = self.transport.arm().unwrap();
        !self.sleep_armed(armed, time)
    }

    /// As [`Rank::sleep`], for messages alone; a nap where the transport cannot tell them apart.
    pub fn sleep_for_messages(&self, time: Duration) -> Slept {
        let armed = self.transport.arm_for_messages().unwrap();
        let readable = self.sleep_armed(armed.unwrap_or(Armed::Ready), time);
        match armed {
            None => {
                std::thread::sleep(NAP);
                Slept::Otherwise
            }
            Some(_) if readable => Slept::Woken,
            Some(_) => Slept::InVain,
        }
    }

    /// Returns whether it was woken.
    fn sleep_armed(&self, armed: Armed, time: Duration) -> bool {
        let mut readable = true;
        if armed != Armed::Ready {
            // SAFETY: the transport keeps its descriptor open while it lives, and `self` holds it.
            let fd = unsafe { BorrowedFd::borrow_raw(self.transport.wait_fd()) };
            let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
            readable = poll(&mut fds, PollTimeout::try_from(time).unwrap()).unwrap() > 0;
        }
        self.transport.disarm(readable && armed != Armed::Ready);
        readable
    }
}

/// A thread that polls a rank, asleep in the kernel while there is nothing: a target that makes no other call.
#[derive(Debug)]
pub struct Sleeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    /// Starts it.
    pub fn start(rank: &Arc<Rank>) -> Self {
        let (stop, rank) = (Arc::new(AtomicBool::new(false)), rank.clone());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if rank.poll() == 0 {
                    rank.sleep(Duration::from_millis(100));
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(JoinHandle::join);
        if matches!(result, Some(Err(_))) && !std::thread::panicking() {
            panic!("the sleeping rank failed");
        }
    }
}
