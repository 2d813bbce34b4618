//! Receives of a queue pair, or of several that share them, and messages that wait for one.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr::null_mut;

use ibverbs_sys as sys;

use crate::pair::Pair;
use crate::queue::Queue;
use crate::{Mutex, create, destroy};

/// Bytes before a datagram (ibv_post_recv(3)).
const ROUTING_HEADER: usize = 40;

/// A message on its way.
pub(crate) struct Message {
    pub bytes: Vec<u8>,
    /// The queue pair that it is for, and the one that it comes from.
    pub to: u32,
    pub from: u32,
    /// Whether it is a datagram: has a routing header before it, and is lost where no receive is.
    pub datagram: bool,
    pub solicited: bool,
    /// Where its receive completes.
    pub queue: *const Queue,
}

/// A receive: its number, and the memory.
struct Receive(u64, sys::ibv_sge);

#[derive(Default)]
struct State {
    posted: VecDeque<Receive>,
    waiting: VecDeque<Message>,
}

/// Receives, in the order in which they were posted.
#[derive(Default)]
pub(crate) struct Receives(Mutex<State>);

// SAFETY: the addresses in it are used under the lock, by whoever delivers or posts: receives' memory is the device's until they
// complete (ibv_post_recv(3)), and a queue goes after the queue pairs whose messages name it.
unsafe impl Send for Receives {}
// SAFETY: as above.
unsafe impl Sync for Receives {}

/// A shared receive queue.
#[repr(C)]
pub(crate) struct Shared {
    base: sys::ibv_srq,
    pub receives: Receives,
}

impl Receives {
    /// A message has come.
    pub fn deliver(&self, message: Message) {
        let mut state = self.0.lock();
        match state.posted.pop_front() {
            Some(receive) => fill(&receive, &message),
            None if message.datagram => {}
            None => state.waiting.push_back(message),
        }
    }

    /// Messages for a queue pair that goes are lost.
    pub fn forget(&self, pair: u32) {
        self.0.lock().waiting.retain(|message| message.to != pair);
    }

    /// # Safety
    /// A chain of requests, whose memory is the device's until they complete.
    unsafe fn post(&self, mut request: *mut sys::ibv_recv_wr) -> c_int {
        let mut state = self.0.lock();
        while !request.is_null() {
            // SAFETY: a request of the caller's chain, with one part.
            let (receive, next) =
                unsafe { (Receive((*request).wr_id, *(*request).sg_list), (*request).next) };
            match state.waiting.pop_front() {
                Some(message) => fill(&receive, &message),
                None => state.posted.push_back(receive),
            }
            request = next;
        }
        0
    }
}

/// Writes a message to where it is received, and completes the receive.
fn fill(receive: &Receive, message: &Message) {
    let header = if message.datagram { ROUTING_HEADER } else { 0 };
    let Receive(number, part) = receive;
    let len = header + message.bytes.len();
    // SAFETY: numbers only, for which zero is valid.
    let mut completion: sys::ibv_wc = unsafe { zeroed() };
    completion.wr_id = *number;
    completion.opcode = sys::IBV_WC_RECV;
    completion.byte_len = len as u32;
    completion.qp_num = message.to;
    completion.src_qp = message.from;
    if len > part.length as usize {
        completion.status = sys::IBV_WC_LOC_LEN_ERR;
    } else {
        let to = (part.addr as *mut u8).wrapping_add(header);
        // SAFETY: the receive's memory is long enough, as just checked, and the device's until it completes, which is below.
        unsafe { std::ptr::copy_nonoverlapping(message.bytes.as_ptr(), to, message.bytes.len()) };
    }
    // SAFETY: the queue of a live queue pair: those that go take their messages along (`forget`).
    unsafe { &*message.queue }.push(completion, message.solicited);
}

/// ibv_post_recv(3).
///
/// # Safety
/// A queue pair without a shared receive queue, and a chain of requests of one part each.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut sys::ibv_qp,
    request: *mut sys::ibv_recv_wr,
    _bad: *mut *mut sys::ibv_recv_wr,
) -> c_int {
    // SAFETY: made by `ibv_create_qp`, and live; the caller vouches for the requests.
    unsafe { (*qp.cast::<Pair>()).own.post(request) }
}

/// ibv_post_srq_recv(3).
///
/// # Safety
/// A shared receive queue, and a chain of requests of one part each.
pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut sys::ibv_srq,
    request: *mut sys::ibv_recv_wr,
    _bad: *mut *mut sys::ibv_recv_wr,
) -> c_int {
    // SAFETY: made by `ibv_create_srq`, and live; the caller vouches for the requests.
    unsafe { (*srq.cast::<Shared>()).receives.post(request) }
}

/// ibv_create_srq(3).
///
/// # Safety
/// A protection domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(
    pd: *mut sys::ibv_pd,
    _attr: *mut sys::ibv_srq_init_attr,
) -> *mut sys::ibv_srq {
    // SAFETY: numbers, nullable pointers, and a mutex that nobody locks: zero is valid; and the caller's protection domain.
    let mut base: sys::ibv_srq = unsafe { zeroed() };
    // SAFETY: the caller's protection domain.
    base.context = unsafe { (*pd).context };
    base.srq_context = null_mut();
    base.pd = pd;
    create(Shared { base, receives: Receives::default() })
}

/// ibv_create_srq(3).
///
/// # Safety
/// A shared receive queue that no queue pair uses, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut sys::ibv_srq) -> c_int {
    // SAFETY: made by `create`, and destroyed once, by the caller's promise.
    unsafe { destroy::<Shared, _>(srq) }
}
