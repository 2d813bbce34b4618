//! Finds libibverbs and looks up the functions it exports.
//!
//! Knows nothing of devices or objects.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::bindings::*;
use crate::handle::{Wanted, library};

/// Names the library file to open, in place of [`SONAME`].
pub const ENVIRONMENT_VARIABLE: &str = "TRANSOM_IBVERBS";

/// What the dynamic linker is asked for when the environment names no file.
pub const SONAME: &str = "libibverbs.so.1";

/// What to say when it is missing.
pub const IBVERBS: Wanted = Wanted {
    name: "libibverbs",
    install: "Debian and Ubuntu: apt install libibverbs1 ibverbs-providers; Fedora and RHEL: dnf install libibverbs",
    variable: ENVIRONMENT_VARIABLE,
    soname: SONAME,
};

/// `ibv_query_gid_table(3)`, with the size of an entry.
type QueryGidTable = unsafe extern "C" fn(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
    entry_size: usize,
) -> isize;

/// `ibv_fork_init(3)`, `ibv_is_fork_initialized(3)`.
type ForkInit = unsafe extern "C" fn() -> c_int;

/// What `ibv_is_fork_initialized(3)` says where the kernel copies registered pages for a child (`IBV_FORK_UNNEEDED`).
pub const IBV_FORK_UNNEEDED: c_int = 2;

library! {
    /// The functions libibverbs exports, at the symbol versions that go with these bindings.
    ///
    /// Once opened the library stays until the process ends: its providers cannot be unloaded.
    Library: IBVERBS, ("ibv_get_device_list", "IBVERBS_1.1");

    optional {
        /// `ibv_query_gid_table(3)`, whose last argument is the size of an entry; absent before rdma-core 33.
        ibv_query_gid_table: QueryGidTable = ("_ibv_query_gid_table", "IBVERBS_1.11");
        /// `ibv_fork_init(3)`.
        ibv_fork_init: ForkInit = ("ibv_fork_init", "IBVERBS_1.1");
        /// `ibv_is_fork_initialized(3)`; absent before rdma-core 35.
        ibv_is_fork_initialized: ForkInit = ("ibv_is_fork_initialized", "IBVERBS_1.13");
    }

    /// `ibv_get_device_list(3)`.
    fn ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device = "IBVERBS_1.1";
    /// `ibv_get_device_list(3)`: frees a list.
    fn ibv_free_device_list(list: *mut *mut ibv_device) = "IBVERBS_1.1";
    /// `ibv_get_device_name(3)`.
    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char = "IBVERBS_1.1";
    /// `ibv_open_device(3)`.
    fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context = "IBVERBS_1.1";
    /// `ibv_open_device(3)`: closes it.
    fn ibv_close_device(context: *mut ibv_context) -> c_int = "IBVERBS_1.1";
    /// `ibv_get_async_event(3)`.
    fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int = "IBVERBS_1.1";
    /// `ibv_get_async_event(3)`: acknowledges an event.
    fn ibv_ack_async_event(event: *mut ibv_async_event) = "IBVERBS_1.1";
    /// `ibv_query_device(3)`.
    fn ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int = "IBVERBS_1.1";
    /// `ibv_query_port(3)`. Does not write the last fields, which are younger: pass zeroed attributes.
    fn ibv_query_port(context: *mut ibv_context, port_num: u8, attr: *mut ibv_port_attr) -> c_int = "IBVERBS_1.1";
    /// `ibv_query_gid(3)`.
    fn ibv_query_gid(context: *mut ibv_context, port_num: u8, index: c_int, gid: *mut ibv_gid) -> c_int
        = "IBVERBS_1.1";
    /// `ibv_alloc_pd(3)`.
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd = "IBVERBS_1.1";
    /// `ibv_alloc_pd(3)`: frees it.
    fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int = "IBVERBS_1.1";
    /// `ibv_reg_mr(3)`.
    fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr = "IBVERBS_1.1";
    /// `ibv_reg_mr(3)`: ends a registration.
    fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int = "IBVERBS_1.1";
    /// `ibv_create_comp_channel(3)`.
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel = "IBVERBS_1.0";
    /// `ibv_create_comp_channel(3)`: destroys it.
    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int = "IBVERBS_1.0";
    /// `ibv_create_cq(3)`.
    fn ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel,
        comp_vector: c_int,
    ) -> *mut ibv_cq = "IBVERBS_1.1";
    /// `ibv_create_cq(3)`: destroys it.
    fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int = "IBVERBS_1.1";
    /// `ibv_get_cq_event(3)`.
    fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void,
    ) -> c_int = "IBVERBS_1.1";
    /// `ibv_get_cq_event(3)`: acknowledges events.
    fn ibv_ack_cq_events(cq: *mut ibv_cq, nevents: c_uint) = "IBVERBS_1.1";
    /// `ibv_create_srq(3)`.
    fn ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq = "IBVERBS_1.1";
    /// `ibv_create_srq(3)`: destroys it.
    fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int = "IBVERBS_1.1";
    /// `ibv_create_qp(3)`.
    fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp = "IBVERBS_1.1";
    /// `ibv_modify_qp(3)`.
    fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int) -> c_int = "IBVERBS_1.1";
    /// `ibv_query_qp(3)`.
    fn ibv_query_qp(
        qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int, init_attr: *mut ibv_qp_init_attr,
    ) -> c_int = "IBVERBS_1.1";
    /// `ibv_create_qp(3)`: destroys it.
    fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int = "IBVERBS_1.1";
    /// `ibv_create_ah(3)`.
    fn ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah = "IBVERBS_1.1";
    /// `ibv_create_ah(3)`: destroys it.
    fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int = "IBVERBS_1.1";
}
