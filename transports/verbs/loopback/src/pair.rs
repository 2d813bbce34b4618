//! Queue pairs: requests are carried out where they are posted.

use std::collections::HashMap;
use std::ffi::c_int;
use std::mem::zeroed;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ibverbs_sys as sys;

use crate::queue::Queue;
use crate::receives::{Message, Receives, Shared};
use crate::{Mutex, create, destroy};

/// A queue pair.
#[repr(C)]
pub(crate) struct Pair {
    base: sys::ibv_qp,
    /// The number of its partner, once it has one.
    partner: AtomicU32,
    /// Receives that are posted to itself.
    pub own: Receives,
}

/// All queue pairs of the process, by number. Held while a message is delivered, so that its receiver does not go meanwhile.
static PAIRS: LazyLock<Mutex<HashMap<u32, Address>>> = LazyLock::new(Mutex::default);

struct Address(*mut Pair);

// SAFETY: followed under the lock of `PAIRS` only, which a queue pair leaves before it goes.
unsafe impl Send for Address {}

impl Pair {
    /// Where messages to it arrive.
    fn receives(&self) -> &Receives {
        if self.base.srq.is_null() {
            return &self.own;
        }
        // SAFETY: made by `ibv_create_srq`; a shared receive queue goes after its queue pairs (ibv_create_srq(3)).
        unsafe { &(*self.base.srq.cast::<Shared>()).receives }
    }

    /// Sends a message.
    #[cold]
    fn send(&self, request: &sys::ibv_send_wr) {
        let datagram = self.base.qp_type == sys::IBV_QPT_UD;
        let to = match datagram {
            // SAFETY: datagrams say where they go (ibv_post_send(3)).
            true => unsafe { request.wr.ud.remote_qpn },
            false => self.partner.load(Ordering::Acquire),
        };
        let mut bytes = Vec::new();
        // SAFETY: the caller's parts, which are readable (ibv_post_send(3)).
        each_part(request, |part| unsafe {
            bytes.extend_from_slice(std::slice::from_raw_parts(part.addr as *const u8, part.length as usize));
        });
        let pairs = PAIRS.lock();
        let Some(Address(receiver)) = pairs.get(&to) else { return };
        // SAFETY: in the table, and so live while that is locked.
        let receiver = unsafe { &**receiver };
        let queue = receiver.base.recv_cq.cast::<Queue>().cast_const();
        let solicited = request.send_flags & sys::IBV_SEND_SOLICITED != 0;
        let from = self.base.qp_num;
        receiver.receives().deliver(Message { bytes, to, from, datagram, solicited, queue });
    }
}

/// Calls `each` with the parts of a request.
#[inline]
fn each_part(request: &sys::ibv_send_wr, mut each: impl FnMut(&sys::ibv_sge)) {
    for index in 0..request.num_sge as usize {
        // SAFETY: a request has `num_sge` parts (ibv_post_send(3)).
        each(unsafe { &*request.sg_list.add(index) });
    }
}

/// # Safety
/// Both are valid for so many bytes, as the memory of a request is.
#[inline]
unsafe fn copy(from: u64, to: u64, len: usize) {
    let (from, to) = (from as *const u8, to as *mut u8);
    // SAFETY: the caller's promise. A word is read before it is written; more may overlap.
    unsafe {
        match len {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            _ => std::ptr::copy(from, to, len),
        }
    }
}

/// Carries a request out, and says what its completion is of.
///
/// # Safety
/// A request to a queue pair, whose addresses are all of this process.
#[inline]
unsafe fn carry_out(pair: &Pair, request: &sys::ibv_send_wr) -> (sys::ibv_wc_opcode, u32) {
    // SAFETY: which field is there follows from the opcode (ibv_post_send(3)); addresses are registered memory of this process,
    // that the requester may read or write; atomics are on aligned words, and all accesses of peers to those are atomic.
    unsafe {
        match request.opcode {
            sys::IBV_WR_RDMA_WRITE => {
                let mut at = request.wr.rdma.remote_addr;
                each_part(request, |part| {
                    copy(part.addr, at, part.length as usize);
                    at += u64::from(part.length);
                });
                (sys::IBV_WC_RDMA_WRITE, 0)
            }
            sys::IBV_WR_RDMA_READ => {
                let start = request.wr.rdma.remote_addr;
                let mut at = start;
                each_part(request, |part| {
                    copy(at, part.addr, part.length as usize);
                    at += u64::from(part.length);
                });
                (sys::IBV_WC_RDMA_READ, (at - start) as u32)
            }
            sys::IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let atomic = request.wr.atomic;
                let word = AtomicU64::from_ptr(atomic.remote_addr as *mut u64);
                let old = word.fetch_add(atomic.compare_add, Ordering::AcqRel);
                ((*request.sg_list).addr as *mut u64).write_unaligned(old);
                (sys::IBV_WC_FETCH_ADD, 8)
            }
            sys::IBV_WR_ATOMIC_CMP_AND_SWP => {
                let atomic = request.wr.atomic;
                let word = AtomicU64::from_ptr(atomic.remote_addr as *mut u64);
                let (compare, swap) = (atomic.compare_add, atomic.swap);
                let old = word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire);
                ((*request.sg_list).addr as *mut u64).write_unaligned(old.unwrap_or_else(|old| old));
                (sys::IBV_WC_COMP_SWAP, 8)
            }
            _ => {
                pair.send(request);
                (sys::IBV_WC_SEND, 0)
            }
        }
    }
}

/// ibv_post_send(3).
///
/// # Safety
/// A queue pair that is ready to send, and a chain of requests as there.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut sys::ibv_qp,
    mut request: *mut sys::ibv_send_wr,
    _bad: *mut *mut sys::ibv_send_wr,
) -> c_int {
    // SAFETY: made by `ibv_create_qp`, and live, by the caller's promise.
    let pair = unsafe { &*qp.cast::<Pair>() };
    while !request.is_null() {
        // SAFETY: a request of the caller's chain, which is not changed during the call.
        let wanted = unsafe { &*request };
        // SAFETY: the caller's promise.
        let (opcode, byte_len) = unsafe { carry_out(pair, wanted) };
        if wanted.send_flags & sys::IBV_SEND_SIGNALED != 0 {
            // SAFETY: numbers only, for which zero is valid.
            let mut completion: sys::ibv_wc = unsafe { std::mem::zeroed() };
            completion.wr_id = wanted.wr_id;
            completion.opcode = opcode;
            completion.byte_len = byte_len;
            completion.qp_num = pair.base.qp_num;
            // SAFETY: a completion queue goes after its queue pairs (ibv_create_qp(3)).
            unsafe { &*pair.base.send_cq.cast::<Queue>() }.push(completion, false);
        }
        request = wanted.next;
    }
    0
}

/// ibv_create_qp(3): what is asked for is granted.
///
/// # Safety
/// A protection domain, and attributes that name live queues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(
    pd: *mut sys::ibv_pd,
    attr: *mut sys::ibv_qp_init_attr,
) -> *mut sys::ibv_qp {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    // SAFETY: numbers, nullable pointers, and a mutex that nobody locks: zero is valid.
    let mut base: sys::ibv_qp = unsafe { zeroed() };
    // SAFETY: the caller's protection domain and attributes.
    let (context, attr) = unsafe { ((*pd).context, &*attr) };
    base.context = context;
    base.qp_context = attr.qp_context;
    base.pd = pd;
    (base.send_cq, base.recv_cq, base.srq) = (attr.send_cq, attr.recv_cq, attr.srq);
    base.qp_type = attr.qp_type;
    base.qp_num = NUMBER.fetch_add(1, Ordering::Relaxed);
    let number = base.qp_num;
    let pair: *mut sys::ibv_qp = create(Pair { base, partner: AtomicU32::new(0), own: Receives::default() });
    PAIRS.lock().insert(number, Address(pair.cast()));
    pair
}

/// ibv_modify_qp(3): states are not looked at.
///
/// # Safety
/// A queue pair, and attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(
    qp: *mut sys::ibv_qp,
    attr: *mut sys::ibv_qp_attr,
    mask: c_int,
) -> c_int {
    if mask as u32 & sys::IBV_QP_DEST_QPN != 0 {
        // SAFETY: made by `ibv_create_qp`, and live; the caller's attributes.
        unsafe { (*qp.cast::<Pair>()).partner.store((*attr).dest_qp_num, Ordering::Release) };
    }
    0
}

/// ibv_query_qp(3): nothing is told but zeros.
///
/// # Safety
/// Room for the attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    _qp: *mut sys::ibv_qp,
    attr: *mut sys::ibv_qp_attr,
    _mask: c_int,
    init: *mut sys::ibv_qp_init_attr,
) -> c_int {
    // SAFETY: the caller's room; numbers and nullable pointers, for which zero is valid.
    unsafe {
        attr.write(zeroed());
        init.write(zeroed());
    }
    0
}

/// ibv_create_qp(3).
///
/// # Safety
/// A queue pair, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut sys::ibv_qp) -> c_int {
    // SAFETY: made by `ibv_create_qp`, and live until the end of this function.
    let pair = unsafe { &*qp.cast::<Pair>() };
    PAIRS.lock().remove(&pair.base.qp_num);
    pair.receives().forget(pair.base.qp_num);
    // SAFETY: made by `create`, destroyed once, and found by nobody any more.
    unsafe { destroy::<Pair, _>(qp) }
}
