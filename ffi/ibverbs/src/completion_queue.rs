//! The completion queue: where the ends of requests are read.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::error::check;
use crate::handle::Handle;
use crate::{CompletionChannel, Context, VerbsError, WorkCompletion};

/// A completion queue (ibv_create_cq(3)).
#[derive(Debug)]
pub struct CompletionQueue {
    handle: Handle<sys::ibv_cq>,
    context: Arc<Context>,
    _channel: Option<Arc<CompletionChannel>>,
}

impl CompletionQueue {
    /// Makes a queue for at least so many completions; one that arrives when it is full breaks it. With a channel it can
    /// wake a sleeper.
    pub fn new(
        context: &Arc<Context>,
        entries: u32,
        channel: Option<&Arc<CompletionChannel>>,
    ) -> Result<Arc<CompletionQueue>, VerbsError> {
        if channel.is_some_and(|channel| !Arc::ptr_eq(channel.context(), context)) {
            return Err(VerbsError::refused("ibv_create_cq", "the channel belongs to another context"));
        }
        let library = context.library();
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        let raw_channel = channel.map_or(null_mut(), |channel| channel.as_ptr());
        // SAFETY: ibv_create_cq(3): an open device, and a live channel of it or none. Completion vector 0 always exists.
        let queue = unsafe { (library.ibv_create_cq)(context.as_ptr(), entries, null_mut(), raw_channel, 0) };
        // SAFETY: just made, and destroyed by nothing else.
        let handle = unsafe { Handle::new("ibv_create_cq", queue, library.ibv_destroy_cq)? };
        Ok(Arc::new(CompletionQueue { handle, context: Arc::clone(context), _channel: channel.cloned() }))
    }

    /// How many completions it holds; at least what was asked for.
    pub fn capacity(&self) -> u32 {
        // SAFETY: the queue is live, and `cqe` changes only by ibv_resize_cq, which nothing here calls.
        u32::try_from(unsafe { (*self.as_ptr()).cqe }).unwrap_or(0)
    }

    /// Takes completions without blocking. Returns how many; zero if there are none.
    #[inline]
    pub fn poll(&self, completions: &mut [WorkCompletion]) -> Result<usize, VerbsError> {
        let room = c_int::try_from(completions.len()).unwrap_or(c_int::MAX);
        // SAFETY: ibv_poll_cq(3): a live queue, and room for so many entries, of which `WorkCompletion` has the layout.
        let count = unsafe { sys::ibv_poll_cq(self.as_ptr(), room, completions.as_mut_ptr().cast()) };
        // The manual defines no number for a failure other than that it is negative.
        usize::try_from(count).map_err(|_| VerbsError::new("ibv_poll_cq", Errno::EIO))
    }

    /// Asks that the next completion to arrive makes the channel readable, once (ibv_req_notify_cq(3)).
    ///
    /// Completions that are in the queue already do not: poll after asking, before sleeping.
    pub fn request_notification(&self) -> Result<(), VerbsError> {
        self.ask(0)
    }

    /// As [`CompletionQueue::request_notification`], but only for arrivals that their senders posted as
    /// [`crate::Request::solicited`], and for failures.
    pub fn request_solicited_notification(&self) -> Result<(), VerbsError> {
        self.ask(1)
    }

    fn ask(&self, solicited_only: c_int) -> Result<(), VerbsError> {
        // SAFETY: ibv_req_notify_cq(3): a live queue.
        check("ibv_req_notify_cq", unsafe { sys::ibv_req_notify_cq(self.as_ptr(), solicited_only) })
    }

    /// The device that it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_cq {
        self.handle.as_ptr()
    }
}
