//! The completion channel: a descriptor to sleep on.

use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::Arc;

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::context::set_nonblocking;
use crate::handle::Handle;
use crate::{Context, VerbsError};

/// A completion channel (ibv_create_comp_channel(3)): readable after a completion arrived in a queue of its that had asked
/// ([`crate::CompletionQueue::request_notification`]).
///
/// To sleep without missing a completion: ask, poll the queue once more, and only then sleep. After waking,
/// [`CompletionChannel::take_events`].
#[derive(Debug)]
pub struct CompletionChannel {
    handle: Handle<sys::ibv_comp_channel>,
    context: Arc<Context>,
}

impl CompletionChannel {
    /// Makes one, whose descriptor does not block.
    pub fn new(context: &Arc<Context>) -> Result<Arc<CompletionChannel>, VerbsError> {
        let library = context.library();
        // SAFETY: ibv_create_comp_channel(3): an open device.
        let channel = unsafe { (library.ibv_create_comp_channel)(context.as_ptr()) };
        // SAFETY: just made, and destroyed by nothing else.
        let handle =
            unsafe { Handle::new("ibv_create_comp_channel", channel, library.ibv_destroy_comp_channel)? };
        let channel = CompletionChannel { handle, context: Arc::clone(context) };
        set_nonblocking(channel.as_fd())?;
        Ok(Arc::new(channel))
    }

    /// Takes and acknowledges the notifications that are there, so that the descriptor is no longer readable. Returns how
    /// many. Does not block.
    pub fn take_events(&self) -> usize {
        let library = self.context.library();
        let mut taken = 0;
        loop {
            let (mut queue, mut user) = (null_mut(), null_mut());
            // SAFETY: ibv_get_cq_event(3): a live channel and room for both answers.
            let returned = unsafe { (library.ibv_get_cq_event)(self.as_ptr(), &mut queue, &mut user) };
            if returned != 0 {
                match Errno::last() {
                    Errno::EAGAIN => {}
                    Errno::EINTR => continue,
                    error => tracing::warn!(%error, "completion channel cannot be read"),
                }
                return taken;
            }
            // SAFETY: ibv_get_cq_event(3): the queue whose event this is, acknowledged once. It is live: ibv_destroy_cq
            // waits for events that were got and are not acknowledged.
            unsafe { (library.ibv_ack_cq_events)(queue, 1) };
            taken += 1;
        }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_comp_channel {
        self.handle.as_ptr()
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: ibv_create_comp_channel(3): open for as long as the channel; the borrow ends before that.
        unsafe { BorrowedFd::borrow_raw((*self.as_ptr()).fd) }
    }
}
