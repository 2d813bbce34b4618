//! The functions that C programs get inline from the headers: calls through the tables that hang on the objects.
//!
//! A table or an entry that is absent gives `-FI_ENOSYS` where C would jump to null.

#![allow(clippy::too_many_arguments, reason = "the signatures are libfabric's")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;

use crate::bindings::*;

macro_rules! inline_calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($object:ident: *mut $kind:ty $(, $argument:ident: $type:ty)* $(,)?) -> $result:ty
            = $($table:ident).+ => $entry:ident ( $($pass:expr),* );
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As in C: the object is open and of its kind, and every other pointer is valid for what the manual page says
        /// is done with it.
        #[inline]
        pub unsafe fn $name($object: *mut $kind $(, $argument: $type)*) -> $result {
            // SAFETY: the caller vouches that the object is open, so its table pointer is null or leads to a table that has
            // this entry (fabric.h: of the minimal size for the operations supported, so no reference to all of it is
            // made); the arguments are passed on as they are.
            unsafe {
                let table = (*$object).$($table).+;
                if table.is_null() {
                    return -(FI_ENOSYS as $result);
                }
                match (&raw const (*table).$entry).read() {
                    Some(call) => call($($pass),*),
                    None => -(FI_ENOSYS as $result),
                }
            }
        }
    )*};
}

inline_calls! {
    /// `fi_close(3)`.
    fn fi_close(object: *mut fid) -> c_int = ops => close(object);
    /// `fi_control(3)`.
    fn fi_control(object: *mut fid, command: c_int, arg: *mut c_void) -> c_int
        = ops => control(object, command, arg);

    /// `fi_domain(3)`.
    fn fi_domain(
        fabric: *mut fid_fabric, info: *mut fi_info, domain: *mut *mut fid_domain, context: *mut c_void,
    ) -> c_int = ops => domain(fabric, info, domain, context);
    /// `fi_poll(3)`: whether it is safe to block on the wait objects.
    fn fi_trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int
        = ops => trywait(fabric, fids, count);

    /// `fi_cq(3)`.
    fn fi_cq_open(
        domain: *mut fid_domain, attr: *mut fi_cq_attr, cq: *mut *mut fid_cq, context: *mut c_void,
    ) -> c_int = ops => cq_open(domain, attr, cq, context);
    /// `fi_av(3)`.
    fn fi_av_open(
        domain: *mut fid_domain, attr: *mut fi_av_attr, av: *mut *mut fid_av, context: *mut c_void,
    ) -> c_int = ops => av_open(domain, attr, av, context);
    /// `fi_endpoint(3)`.
    fn fi_endpoint(
        domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep, context: *mut c_void,
    ) -> c_int = ops => endpoint(domain, info, ep, context);
    /// `fi_mr(3)`.
    fn fi_mr_reg(
        domain: *mut fid_domain, buf: *const c_void, len: usize, access: u64, offset: u64, requested_key: u64,
        flags: u64, mr: *mut *mut fid_mr, context: *mut c_void,
    ) -> c_int = mr => reg(&raw mut (*domain).fid, buf, len, access, offset, requested_key, flags, mr, context);
    /// `fi_mr(3)`.
    fn fi_mr_regattr(domain: *mut fid_domain, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int
        = mr => regattr(&raw mut (*domain).fid, attr, flags, mr);
    /// `fi_mr(3)`: makes a local key of a raw key longer than 64 bits.
    fn fi_mr_map_raw_control(domain: *mut fid_domain, map: *mut fi_mr_map_raw) -> c_int
        = fid.ops => control(&raw mut (*domain).fid, FI_MAP_RAW_MR as c_int, map.cast());
    /// `fi_mr(3)`: gives back a key made by `FI_MAP_RAW_MR`.
    fn fi_mr_unmap_key(domain: *mut fid_domain, key: *mut u64) -> c_int
        = fid.ops => control(&raw mut (*domain).fid, FI_UNMAP_KEY as c_int, key.cast());
    /// `fi_mr(3)`: the raw key, described by `attr`.
    fn fi_mr_raw_attr_control(mr: *mut fid_mr, attr: *mut fi_mr_raw_attr) -> c_int
        = fid.ops => control(&raw mut (*mr).fid, FI_GET_RAW_MR as c_int, attr.cast());
    /// `fi_mr(3)`.
    fn fi_mr_bind(mr: *mut fid_mr, object: *mut fid, flags: u64) -> c_int
        = fid.ops => bind(&raw mut (*mr).fid, object, flags);
    /// `fi_mr(3)`.
    fn fi_mr_enable(mr: *mut fid_mr) -> c_int
        = fid.ops => control(&raw mut (*mr).fid, FI_ENABLE as c_int, null_mut());

    /// `fi_av(3)`.
    fn fi_av_insert(
        av: *mut fid_av, addr: *const c_void, count: usize, fi_addr: *mut fi_addr_t, flags: u64, context: *mut c_void,
    ) -> c_int = ops => insert(av, addr, count, fi_addr, flags, context);
    /// `fi_av(3)`.
    fn fi_av_remove(av: *mut fid_av, fi_addr: *mut fi_addr_t, count: usize, flags: u64) -> c_int
        = ops => remove(av, fi_addr, count, flags);
    /// `fi_av(3)`.
    fn fi_av_lookup(av: *mut fid_av, fi_addr: fi_addr_t, addr: *mut c_void, addrlen: *mut usize) -> c_int
        = ops => lookup(av, fi_addr, addr, addrlen);

    /// `fi_cq(3)`.
    fn fi_cq_read(cq: *mut fid_cq, buf: *mut c_void, count: usize) -> isize = ops => read(cq, buf, count);
    /// `fi_cq(3)`.
    fn fi_cq_readfrom(cq: *mut fid_cq, buf: *mut c_void, count: usize, src_addr: *mut fi_addr_t) -> isize
        = ops => readfrom(cq, buf, count, src_addr);
    /// `fi_cq(3)`.
    fn fi_cq_readerr(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, flags: u64) -> isize
        = ops => readerr(cq, buf, flags);
    /// `fi_cq(3)`.
    fn fi_cq_sread(cq: *mut fid_cq, buf: *mut c_void, count: usize, cond: *const c_void, timeout: c_int) -> isize
        = ops => sread(cq, buf, count, cond, timeout);
    /// `fi_cq(3)`.
    fn fi_cq_signal(cq: *mut fid_cq) -> c_int = ops => signal(cq);

    /// `fi_endpoint(3)`.
    fn fi_ep_bind(ep: *mut fid_ep, object: *mut fid, flags: u64) -> c_int
        = fid.ops => bind(&raw mut (*ep).fid, object, flags);
    /// `fi_endpoint(3)`.
    fn fi_enable(ep: *mut fid_ep) -> c_int
        = fid.ops => control(&raw mut (*ep).fid, FI_ENABLE as c_int, null_mut());
    /// `fi_endpoint(3)`: cancels an operation by its context.
    fn fi_cancel(ep: *mut fid_ep, context: *mut c_void) -> isize = ops => cancel(&raw mut (*ep).fid, context);
    /// `fi_endpoint(3)`.
    fn fi_setopt(ep: *mut fid_ep, level: c_int, optname: c_int, optval: *const c_void, optlen: usize) -> c_int
        = ops => setopt(&raw mut (*ep).fid, level, optname, optval, optlen);
    /// `fi_endpoint(3)`.
    fn fi_getopt(ep: *mut fid_ep, level: c_int, optname: c_int, optval: *mut c_void, optlen: *mut usize) -> c_int
        = ops => getopt(&raw mut (*ep).fid, level, optname, optval, optlen);
    /// `fi_cm(3)`.
    fn fi_getname(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut usize) -> c_int
        = cm => getname(&raw mut (*ep).fid, addr, addrlen);

    /// `fi_msg(3)`.
    fn fi_send(
        ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, dest_addr: fi_addr_t, context: *mut c_void,
    ) -> isize = msg => send(ep, buf, len, desc, dest_addr, context);
    /// `fi_msg(3)`.
    fn fi_sendmsg(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize = msg => sendmsg(ep, message, flags);
    /// `fi_msg(3)`.
    fn fi_inject(ep: *mut fid_ep, buf: *const c_void, len: usize, dest_addr: fi_addr_t) -> isize
        = msg => inject(ep, buf, len, dest_addr);
    /// `fi_msg(3)`.
    fn fi_recv(
        ep: *mut fid_ep, buf: *mut c_void, len: usize, desc: *mut c_void, src_addr: fi_addr_t, context: *mut c_void,
    ) -> isize = msg => recv(ep, buf, len, desc, src_addr, context);
    /// `fi_msg(3)`.
    fn fi_recvmsg(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize = msg => recvmsg(ep, message, flags);

    /// `fi_rma(3)`.
    fn fi_read(
        ep: *mut fid_ep, buf: *mut c_void, len: usize, desc: *mut c_void, src_addr: fi_addr_t, addr: u64, key: u64,
        context: *mut c_void,
    ) -> isize = rma => read(ep, buf, len, desc, src_addr, addr, key, context);
    /// `fi_rma(3)`.
    fn fi_readmsg(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize
        = rma => readmsg(ep, message, flags);
    /// `fi_rma(3)`.
    fn fi_write(
        ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64,
        context: *mut c_void,
    ) -> isize = rma => write(ep, buf, len, desc, dest_addr, addr, key, context);
    /// `fi_rma(3)`.
    fn fi_writemsg(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize
        = rma => writemsg(ep, message, flags);
    /// `fi_rma(3)`.
    fn fi_inject_write(
        ep: *mut fid_ep, buf: *const c_void, len: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
    ) -> isize = rma => inject(ep, buf, len, dest_addr, addr, key);

    /// `fi_atomic(3)`.
    fn fi_atomicmsg(ep: *mut fid_ep, message: *const fi_msg_atomic, flags: u64) -> isize
        = atomic => writemsg(ep, message, flags);
    /// `fi_atomic(3)`.
    fn fi_inject_atomic(
        ep: *mut fid_ep, buf: *const c_void, count: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
        datatype: fi_datatype, op: fi_op,
    ) -> isize = atomic => inject(ep, buf, count, dest_addr, addr, key, datatype, op);
    /// `fi_atomic(3)`.
    fn fi_fetch_atomicmsg(
        ep: *mut fid_ep, message: *const fi_msg_atomic, resultv: *mut fi_ioc, result_desc: *mut *mut c_void,
        result_count: usize, flags: u64,
    ) -> isize = atomic => readwritemsg(ep, message, resultv, result_desc, result_count, flags);
    /// `fi_atomic(3)`.
    fn fi_compare_atomicmsg(
        ep: *mut fid_ep, message: *const fi_msg_atomic, comparev: *const fi_ioc, compare_desc: *mut *mut c_void,
        compare_count: usize, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: usize, flags: u64,
    ) -> isize = atomic => compwritemsg(
        ep, message, comparev, compare_desc, compare_count, resultv, result_desc, result_count, flags
    );
    /// `fi_atomic(3)`.
    fn fi_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int
        = atomic => writevalid(ep, datatype, op, count);
    /// `fi_atomic(3)`.
    fn fi_fetch_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int
        = atomic => readwritevalid(ep, datatype, op, count);
    /// `fi_atomic(3)`.
    fn fi_compare_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int
        = atomic => compwritevalid(ep, datatype, op, count);
}

/// `fi_cq(3)`: text for a provider's error number; null if there is none.
///
/// # Safety
/// As in C: the queue is open, `err_data` is what `fi_cq_readerr` gave, and `buf` has room for `len` bytes.
pub unsafe fn fi_cq_strerror(
    cq: *mut fid_cq,
    prov_errno: c_int,
    err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: the caller vouches that the queue is open, so its table pointer is valid or null (fabric.h).
    unsafe {
        let table = (*cq).ops;
        if table.is_null() {
            return null_mut();
        }
        match (&raw const (*table).strerror).read() {
            Some(call) => call(cq, prov_errno, err_data, buf, len),
            None => null_mut(),
        }
    }
}

/// `fi_mr(3)`: what to pass as `desc` for a local buffer inside the region.
///
/// # Safety
/// The region is open.
pub unsafe fn fi_mr_desc(mr: *mut fid_mr) -> *mut c_void {
    // SAFETY: the caller vouches for the region.
    unsafe { (*mr).mem_desc }
}

/// `fi_mr(3)`: the key a peer needs.
///
/// # Safety
/// The region is open.
pub unsafe fn fi_mr_key(mr: *mut fid_mr) -> u64 {
    // SAFETY: the caller vouches for the region.
    unsafe { (*mr).key }
}

/// `fi_atomic(3)`: what the provider can do of an operation, for all endpoints of a domain.
///
/// # Safety
/// As in C: the domain is open and `attr` valid.
pub unsafe fn fi_query_atomic(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    // SAFETY: the caller vouches that the domain is open, so its table pointer is valid or null; the entry is read only
    // if the table says it is long enough to have one (FI_CHECK_OP in fabric.h).
    unsafe {
        let table = (*domain).ops;
        if table.is_null() || (*table).size <= offset_of!(fi_ops_domain, query_atomic) {
            return -(FI_ENOSYS as c_int);
        }
        match (&raw const (*table).query_atomic).read() {
            Some(call) => call(domain, datatype, op, attr, flags),
            None => -(FI_ENOSYS as c_int),
        }
    }
}
