//! librdmacm: what connects queue pairs by IP addresses, opened at run time like libibverbs.
//!
//! There is what a program needs that makes its queue pairs itself (`rdma_establish(3)`, `rdma_init_qp_attr(3)`), so
//! librdmacm 1.2 or later (rdma-core 22). Structures are those of `rdma/rdma_cma.h`; of those that only the library
//! allocates there is no more than what is looked at.

use std::ffi::{c_int, c_void};

use libc::sockaddr;

use crate::bindings::{ibv_context, ibv_qp, ibv_qp_attr};
use crate::handle::{Wanted, library};

/// Names the library file to open, in place of [`RDMACM_SONAME`].
pub const RDMACM_ENVIRONMENT_VARIABLE: &str = "TRANSOM_RDMACM";

/// What the dynamic linker is asked for when the environment names no file.
pub const RDMACM_SONAME: &str = "librdmacm.so.1";

const WANTED: Wanted = Wanted {
    name: "librdmacm",
    install: "Debian and Ubuntu: apt install librdmacm1; Fedora and RHEL: dnf install librdmacm",
    variable: RDMACM_ENVIRONMENT_VARIABLE,
    soname: RDMACM_SONAME,
};

/// `rdma_create_event_channel(3)`.
#[allow(non_camel_case_types, reason = "named as in C")]
#[derive(Debug)]
#[repr(C)]
pub struct rdma_event_channel {
    /// Readable when there is an event.
    pub fd: c_int,
}

/// `rdma_create_id(3)`: its beginning.
#[allow(non_camel_case_types, reason = "named as in C")]
#[derive(Debug)]
#[repr(C)]
pub struct rdma_cm_id {
    /// The device that it is bound to, or null; a context of the library's own.
    pub verbs: *mut ibv_context,
    /// Where its events are reported.
    pub channel: *mut rdma_event_channel,
    /// The program's.
    pub context: *mut c_void,
    /// A queue pair made by the library, or null.
    pub qp: *mut ibv_qp,
}

/// `rdma_connect(3)`.
#[allow(non_camel_case_types, reason = "named as in C")]
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct rdma_conn_param {
    /// Bytes for the peer, which are copied.
    pub private_data: *const c_void,
    /// How many.
    pub private_data_len: u8,
    /// Reads and atomics answered at a time.
    pub responder_resources: u8,
    /// Reads and atomics asked at a time.
    pub initiator_depth: u8,
    /// Of no meaning here.
    pub flow_control: u8,
    /// Tries without an answer.
    pub retry_count: u8,
    /// Tries while the peer has no receive.
    pub rnr_retry_count: u8,
    /// Whether the queue pair has a shared receive queue.
    pub srq: u8,
    /// The queue pair.
    pub qp_num: u32,
}

/// `rdma_get_cm_event(3)`: of the parameters only those of connections.
#[allow(non_camel_case_types, reason = "named as in C")]
#[derive(Debug)]
#[repr(C)]
pub struct rdma_cm_event {
    /// What it happened to; with a request, what it may be accepted with.
    pub id: *mut rdma_cm_id,
    /// With a request, what listened.
    pub listen_id: *mut rdma_cm_id,
    /// `RDMA_CM_EVENT_…`.
    pub event: c_int,
    /// Zero, a negative error number, or the transport's reason.
    pub status: c_int,
    /// What the peer said.
    pub conn: rdma_conn_param,
}

/// `RDMA_PS_TCP`: reliable connections.
pub const RDMA_PS_TCP: c_int = 0x0106;
/// `enum rdma_cm_event_type`.
pub const RDMA_CM_EVENT_ADDR_RESOLVED: c_int = 0;
/// The address cannot be resolved.
pub const RDMA_CM_EVENT_ADDR_ERROR: c_int = 1;
/// `rdma_resolve_route(3)` has succeeded.
pub const RDMA_CM_EVENT_ROUTE_RESOLVED: c_int = 2;
/// There is no route.
pub const RDMA_CM_EVENT_ROUTE_ERROR: c_int = 3;
/// A peer wants a connection.
pub const RDMA_CM_EVENT_CONNECT_REQUEST: c_int = 4;
/// The peer has accepted: see `rdma_establish(3)`.
pub const RDMA_CM_EVENT_CONNECT_RESPONSE: c_int = 5;
/// Connecting has failed.
pub const RDMA_CM_EVENT_CONNECT_ERROR: c_int = 6;
/// The peer does not answer.
pub const RDMA_CM_EVENT_UNREACHABLE: c_int = 7;
/// The peer refuses, or does not listen.
pub const RDMA_CM_EVENT_REJECTED: c_int = 8;
/// There is a connection.
pub const RDMA_CM_EVENT_ESTABLISHED: c_int = 9;
/// It has ended.
pub const RDMA_CM_EVENT_DISCONNECTED: c_int = 10;
/// The device goes.
pub const RDMA_CM_EVENT_DEVICE_REMOVAL: c_int = 11;

library! {
    /// The functions of librdmacm. Once opened it stays until the process ends.
    RdmacmLibrary: WANTED, ("rdma_create_id", "RDMACM_1.0");
    optional {}

    /// `rdma_create_event_channel(3)`.
    fn rdma_create_event_channel() -> *mut rdma_event_channel = "RDMACM_1.0";
    /// `rdma_destroy_event_channel(3)`.
    fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) = "RDMACM_1.0";
    /// `rdma_create_id(3)`.
    fn rdma_create_id(
        channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void, ps: c_int,
    ) -> c_int = "RDMACM_1.0";
    /// `rdma_destroy_id(3)`: waits until all events of it are acknowledged.
    fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int = "RDMACM_1.0";
    /// `rdma_bind_addr(3)`.
    fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int = "RDMACM_1.0";
    /// `rdma_get_src_port(3)`: in network order; 0 if it is not bound.
    fn rdma_get_src_port(id: *mut rdma_cm_id) -> u16 = "RDMACM_1.0";
    /// `rdma_listen(3)`.
    fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int = "RDMACM_1.0";
    /// `rdma_resolve_addr(3)`.
    fn rdma_resolve_addr(
        id: *mut rdma_cm_id, src_addr: *mut sockaddr, dst_addr: *mut sockaddr, timeout_ms: c_int,
    ) -> c_int = "RDMACM_1.0";
    /// `rdma_resolve_route(3)`.
    fn rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int = "RDMACM_1.0";
    /// `rdma_connect(3)`.
    fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int = "RDMACM_1.0";
    /// `rdma_establish(3)`.
    fn rdma_establish(id: *mut rdma_cm_id) -> c_int = "RDMACM_1.2";
    /// `rdma_accept(3)`.
    fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int = "RDMACM_1.0";
    /// `rdma_reject(3)`.
    fn rdma_reject(id: *mut rdma_cm_id, private_data: *const c_void, private_data_len: u8) -> c_int
        = "RDMACM_1.0";
    /// `rdma_disconnect(3)`.
    fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int = "RDMACM_1.0";
    /// `rdma_init_qp_attr(3)`.
    fn rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int
        = "RDMACM_1.2";
    /// `rdma_get_cm_event(3)`.
    fn rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int
        = "RDMACM_1.0";
    /// `rdma_ack_cm_event(3)`.
    fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int = "RDMACM_1.0";
}
