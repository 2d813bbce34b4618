//! Completion queues, and the channels that wake who sleeps on them.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ibverbs_sys as sys;

use crate::device::event_fd;
use crate::{Mutex, create, destroy};

/// A completion channel, of one queue.
#[repr(C)]
struct Channel {
    base: sys::ibv_comp_channel,
    queue: AtomicPtr<sys::ibv_cq>,
}

/// Which completions wake a sleeper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Armed {
    No,
    Solicited,
    Any,
}

/// A completion queue.
#[repr(C)]
pub(crate) struct Queue {
    base: sys::ibv_cq,
    /// How many there are, for a look without the lock.
    count: AtomicUsize,
    state: Mutex<(VecDeque<sys::ibv_wc>, Armed)>,
}

impl Queue {
    /// Adds a completion, and wakes who sleeps if that was asked for.
    #[inline]
    pub fn push(&self, completion: sys::ibv_wc, solicited: bool) {
        let mut state = self.state.lock();
        state.0.push_back(completion);
        self.count.store(state.0.len(), Ordering::Release);
        if state.1 == Armed::Any || (solicited && state.1 == Armed::Solicited) {
            state.1 = Armed::No;
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        if !self.base.channel.is_null() {
            let one = 1u64;
            // SAFETY: write(2) of eight bytes to the channel's descriptor; a channel goes after its queues.
            unsafe { libc::write((*self.base.channel).fd, (&raw const one).cast(), size_of::<u64>()) };
        }
    }
}

/// ibv_poll_cq(3).
///
/// # Safety
/// A completion queue, and room for so many completions.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut sys::ibv_cq, room: c_int, to: *mut sys::ibv_wc) -> c_int {
    // SAFETY: made by `ibv_create_cq`, and live, by the caller's promise.
    let queue = unsafe { &*cq.cast::<Queue>() };
    if queue.count.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let mut state = queue.state.lock();
    let mut taken = 0;
    while taken < room
        && let Some(completion) = state.0.pop_front()
    {
        // SAFETY: `taken` is below the caller's room.
        unsafe { to.add(taken as usize).write(completion) };
        taken += 1;
    }
    queue.count.store(state.0.len(), Ordering::Release);
    taken
}

/// ibv_req_notify_cq(3).
///
/// # Safety
/// A completion queue.
pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut sys::ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: made by `ibv_create_cq`, and live, by the caller's promise.
    let queue = unsafe { &*cq.cast::<Queue>() };
    let mut state = queue.state.lock();
    // A request for all is not taken back by one for some.
    state.1 = state.1.max(if solicited_only == 0 { Armed::Any } else { Armed::Solicited });
    0
}

/// ibv_create_cq(3).
///
/// # Safety
/// An open context, and a channel of it or none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut sys::ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut sys::ibv_comp_channel,
    _vector: c_int,
) -> *mut sys::ibv_cq {
    // SAFETY: numbers, nullable pointers, and a mutex that nobody locks: zero is valid.
    let mut base: sys::ibv_cq = unsafe { zeroed() };
    base.context = context;
    base.channel = channel;
    base.cq_context = cq_context;
    base.cqe = cqe;
    let state = Mutex::new((VecDeque::with_capacity(64), Armed::No));
    let queue = create(Queue { base, count: AtomicUsize::new(0), state });
    if !channel.is_null() {
        // SAFETY: made by `ibv_create_comp_channel`, and live, by the caller's promise.
        unsafe { &*channel.cast::<Channel>() }.queue.store(queue, Ordering::Release);
    }
    queue
}

/// ibv_create_cq(3).
///
/// # Safety
/// A completion queue that no queue pair uses, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut sys::ibv_cq) -> c_int {
    // SAFETY: made by `create`, and destroyed once, by the caller's promise.
    unsafe { destroy::<Queue, _>(cq) }
}

/// ibv_create_comp_channel(3).
#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_comp_channel(context: *mut sys::ibv_context) -> *mut sys::ibv_comp_channel {
    let base = sys::ibv_comp_channel { context, fd: event_fd(), refcnt: 0 };
    create(Channel { base, queue: AtomicPtr::new(null_mut()) })
}

/// ibv_create_comp_channel(3).
///
/// # Safety
/// A channel whose queues are gone, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut sys::ibv_comp_channel) -> c_int {
    // SAFETY: live until here, with the descriptor that was made with it; then made by `create`, and destroyed once.
    unsafe {
        libc::close((*channel).fd);
        destroy::<Channel, _>(channel)
    }
}

/// ibv_get_cq_event(3): notifications that came since the last are one.
///
/// # Safety
/// A channel, and room for both answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut sys::ibv_comp_channel,
    cq: *mut *mut sys::ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let mut number = 0u64;
    // SAFETY: read(2) of eight bytes, for which there is room, from the channel's descriptor; only queues write to it, so that
    // after a success there is one, which is live; the caller has room for the answers.
    unsafe {
        if libc::read((*channel).fd, (&raw mut number).cast(), size_of::<u64>()) < 0 {
            return -1;
        }
        let queue = (*channel.cast::<Channel>()).queue.load(Ordering::Acquire);
        *cq = queue;
        *cq_context = (*queue).cq_context;
    }
    0
}

/// ibv_get_cq_event(3).
#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_cq_events(_cq: *mut sys::ibv_cq, _events: c_uint) {}
