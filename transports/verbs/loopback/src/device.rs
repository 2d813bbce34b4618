//! The device, its context, and what needs no queues: protection domains, registrations, address handles.

use std::ffi::{c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;

use ibverbs_sys as sys;

use crate::{create, destroy, pair, queue, receives};

const NAME: &[u8] = b"loopback0";
/// Plenty of everything.
const MANY: c_int = 1 << 16;

/// What a descriptor list is made of: one pointer and a null.
type List = [*mut sys::ibv_device; 2];

/// ibv_get_device_list(3).
///
/// # Safety
/// `count` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut sys::ibv_device {
    // SAFETY: numbers, strings and nullable functions, for all of which zero is valid.
    let mut device: sys::ibv_device = unsafe { zeroed() };
    device.node_type = sys::IBV_NODE_CA;
    device.transport_type = sys::IBV_TRANSPORT_IB;
    for (to, from) in device.name.iter_mut().zip(NAME) {
        *to = *from as c_char;
    }
    if !count.is_null() {
        // SAFETY: not null, so there is room.
        unsafe { *count = 1 };
    }
    // The device stays for as long as the process: contexts refer to it after the list has gone.
    create::<List, _>([create(device), null_mut()])
}

/// ibv_get_device_list(3).
///
/// # Safety
/// A list of [`ibv_get_device_list`], once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut sys::ibv_device) {
    // SAFETY: made by `create` as such a list, and freed once, by the caller's promise.
    unsafe { destroy::<List, _>(list) };
}

/// ibv_get_device_name(3).
///
/// # Safety
/// A device of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut sys::ibv_device) -> *const c_char {
    // SAFETY: the caller's device, which stays for as long as the process.
    unsafe { (&raw const (*device).name).cast() }
}

/// ibv_open_device(3).
///
/// # Safety
/// A device of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut sys::ibv_device) -> *mut sys::ibv_context {
    // SAFETY: numbers, nullable pointers and functions, and a mutex that nobody locks: zero is valid.
    let mut context: sys::ibv_context = unsafe { zeroed() };
    context.device = device;
    context.async_fd = event_fd();
    context.ops.post_send = Some(pair::post_send);
    context.ops.post_recv = Some(receives::post_recv);
    context.ops.post_srq_recv = Some(receives::post_srq_recv);
    context.ops.poll_cq = Some(queue::poll_cq);
    context.ops.req_notify_cq = Some(queue::req_notify_cq);
    create(context)
}

/// ibv_open_device(3).
///
/// # Safety
/// An open context, whose objects are gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: *mut sys::ibv_context) -> c_int {
    // SAFETY: the context is open until here, with the descriptor that was made with it; then made by `create`, and used by nobody.
    unsafe {
        libc::close((*context).async_fd);
        destroy::<sys::ibv_context, _>(context)
    }
}

/// A descriptor that becomes readable when something is written to it.
pub(crate) fn event_fd() -> c_int {
    // SAFETY: eventfd(2) with no pointers.
    unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }
}

/// ibv_get_async_event(3): there never is any.
///
/// # Safety
/// An open context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(
    context: *mut sys::ibv_context,
    _event: *mut sys::ibv_async_event,
) -> c_int {
    let mut number = 0u64;
    // SAFETY: read(2) of eight bytes, for which there is room, from the context's descriptor: nobody writes to it, so this sets
    // EAGAIN, or waits as the caller has chosen.
    unsafe { libc::read((*context).async_fd, (&raw mut number).cast(), size_of::<u64>()) };
    -1
}

/// ibv_get_async_event(3).
#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_async_event(_event: *mut sys::ibv_async_event) {}

/// ibv_query_device(3).
///
/// # Safety
/// `attr` has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_device(
    _context: *mut sys::ibv_context,
    attr: *mut sys::ibv_device_attr,
) -> c_int {
    // SAFETY: numbers only, for which zero is valid.
    let mut answer: sys::ibv_device_attr = unsafe { zeroed() };
    answer.max_mr_size = u64::MAX;
    answer.phys_port_cnt = 1;
    answer.atomic_cap = sys::IBV_ATOMIC_HCA;
    for number in [
        &mut answer.max_qp,
        &mut answer.max_qp_wr,
        &mut answer.max_cq,
        &mut answer.max_cqe,
        &mut answer.max_mr,
        &mut answer.max_pd,
        &mut answer.max_ah,
        &mut answer.max_srq,
        &mut answer.max_srq_wr,
    ] {
        *number = MANY;
    }
    for number in [
        &mut answer.max_sge,
        &mut answer.max_sge_rd,
        &mut answer.max_srq_sge,
        &mut answer.max_qp_rd_atom,
        &mut answer.max_qp_init_rd_atom,
    ] {
        *number = 16;
    }
    // SAFETY: the caller's room.
    unsafe { attr.write(answer) };
    0
}

/// ibv_query_port(3).
///
/// # Safety
/// `attr` has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(
    _context: *mut sys::ibv_context,
    _port: u8,
    attr: *mut sys::ibv_port_attr,
) -> c_int {
    // SAFETY: numbers only, for which zero is valid.
    let mut answer: sys::ibv_port_attr = unsafe { zeroed() };
    answer.state = sys::IBV_PORT_ACTIVE;
    answer.max_mtu = sys::IBV_MTU_4096;
    answer.active_mtu = sys::IBV_MTU_4096;
    answer.gid_tbl_len = 1;
    answer.max_msg_sz = 1 << 30;
    answer.lid = 1;
    answer.link_layer = sys::IBV_LINK_LAYER_INFINIBAND;
    // SAFETY: the caller's room.
    unsafe { attr.write(answer) };
    0
}

/// ibv_query_gid(3).
///
/// # Safety
/// `gid` has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(
    _context: *mut sys::ibv_context,
    _port: u8,
    _index: c_int,
    gid: *mut sys::ibv_gid,
) -> c_int {
    // SAFETY: the caller's room.
    unsafe { gid.write(sys::ibv_gid { raw: [1; 16] }) };
    0
}

/// ibv_alloc_pd(3).
#[unsafe(no_mangle)]
pub extern "C" fn ibv_alloc_pd(context: *mut sys::ibv_context) -> *mut sys::ibv_pd {
    create(sys::ibv_pd { context, handle: 0 })
}

/// ibv_alloc_pd(3).
///
/// # Safety
/// A protection domain, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dealloc_pd(pd: *mut sys::ibv_pd) -> c_int {
    // SAFETY: made by `create`, and freed once, by the caller's promise.
    unsafe { destroy::<sys::ibv_pd, _>(pd) }
}

/// ibv_reg_mr(3): nothing to do, since keys are not looked at.
///
/// # Safety
/// A protection domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(
    pd: *mut sys::ibv_pd,
    addr: *mut c_void,
    length: usize,
    _access: c_int,
) -> *mut sys::ibv_mr {
    // SAFETY: the caller's protection domain.
    let context = unsafe { (*pd).context };
    create(sys::ibv_mr { context, pd, addr, length, handle: 0, lkey: 1, rkey: 1 })
}

/// ibv_reg_mr(3).
///
/// # Safety
/// A registration, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dereg_mr(mr: *mut sys::ibv_mr) -> c_int {
    // SAFETY: made by `create`, and ended once, by the caller's promise.
    unsafe { destroy::<sys::ibv_mr, _>(mr) }
}

/// ibv_create_ah(3): every datagram goes to this device.
///
/// # Safety
/// A protection domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah(
    pd: *mut sys::ibv_pd,
    _attr: *mut sys::ibv_ah_attr,
) -> *mut sys::ibv_ah {
    // SAFETY: the caller's protection domain.
    let context = unsafe { (*pd).context };
    create(sys::ibv_ah { context, pd, handle: 0 })
}

/// ibv_create_ah(3).
///
/// # Safety
/// An address handle, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_ah(ah: *mut sys::ibv_ah) -> c_int {
    // SAFETY: made by `create`, and destroyed once, by the caller's promise.
    unsafe { destroy::<sys::ibv_ah, _>(ah) }
}
