//! Bits for capabilities, modes, operations, completions and memory registration, under libfabric's names without `FI_`.

pub use libfabric_sys::{
    // What an interface can do (fi_getinfo(3)), and what a completion was about (fi_cq(3)).
    FI_ATOMIC as ATOMIC,
    // Operations and bindings (fi_endpoint(3)).
    FI_COMPLETION as COMPLETION,
    // Modes: what the provider asks of its user (fi_getinfo(3)).
    FI_CONTEXT as CONTEXT,
    FI_CONTEXT2 as CONTEXT2,
    FI_DELIVERY_COMPLETE as DELIVERY_COMPLETE,
    FI_DIRECTED_RECV as DIRECTED_RECV,
    FI_FENCE as FENCE,
    FI_INJECT as INJECT,
    FI_INJECT_COMPLETE as INJECT_COMPLETE,
    FI_LOCAL_COMM as LOCAL_COMM,
    FI_MORE as MORE,
    FI_MSG as MSG,
    FI_MULTI_RECV as MULTI_RECV,
    // Orders (fi_endpoint(3)).
    FI_ORDER_ATOMIC_RAR as ORDER_ATOMIC_RAR,
    FI_ORDER_ATOMIC_RAW as ORDER_ATOMIC_RAW,
    FI_ORDER_ATOMIC_WAR as ORDER_ATOMIC_WAR,
    FI_ORDER_ATOMIC_WAW as ORDER_ATOMIC_WAW,
    FI_ORDER_RAR as ORDER_RAR,
    FI_ORDER_RAS as ORDER_RAS,
    FI_ORDER_RAW as ORDER_RAW,
    FI_ORDER_RMA_RAR as ORDER_RMA_RAR,
    FI_ORDER_RMA_RAW as ORDER_RMA_RAW,
    FI_ORDER_RMA_WAR as ORDER_RMA_WAR,
    FI_ORDER_RMA_WAW as ORDER_RMA_WAW,
    FI_ORDER_SAR as ORDER_SAR,
    FI_ORDER_SAS as ORDER_SAS,
    FI_ORDER_SAW as ORDER_SAW,
    FI_ORDER_WAR as ORDER_WAR,
    FI_ORDER_WAS as ORDER_WAS,
    FI_ORDER_WAW as ORDER_WAW,
    FI_READ as READ,
    FI_RECV as RECV,
    FI_REMOTE_COMM as REMOTE_COMM,
    FI_REMOTE_CQ_DATA as REMOTE_CQ_DATA,
    FI_REMOTE_READ as REMOTE_READ,
    FI_REMOTE_WRITE as REMOTE_WRITE,
    FI_RMA as RMA,
    FI_RMA_EVENT as RMA_EVENT,
    FI_SELECTIVE_COMPLETION as SELECTIVE_COMPLETION,
    FI_SEND as SEND,
    // To fi_getinfo(3): the node and service named are this side's.
    FI_SOURCE as SOURCE,
    FI_TRANSMIT as TRANSMIT,
    FI_TRANSMIT_COMPLETE as TRANSMIT_COMPLETE,
    FI_WRITE as WRITE,
};

/// Bits of `mr_mode` (fi_mr(3)): what registration asks of its user. Bits of an `i32`, as in `fi_domain_attr`.
pub mod mr {
    /// Local buffers must be registered too and their descriptors passed along.
    pub const LOCAL: i32 = libfabric_sys::FI_MR_LOCAL as i32;
    /// A key may be longer than 64 bits.
    pub const RAW: i32 = libfabric_sys::FI_MR_RAW as i32;
    /// A peer names memory by virtual address, not by offset into the region.
    pub const VIRT_ADDR: i32 = libfabric_sys::FI_MR_VIRT_ADDR as i32;
    /// Only memory that is backed by pages can be registered.
    pub const ALLOCATED: i32 = libfabric_sys::FI_MR_ALLOCATED as i32;
    /// The provider chooses the keys.
    pub const PROV_KEY: i32 = libfabric_sys::FI_MR_PROV_KEY as i32;
    /// Changes of page mappings must be reported.
    pub const MMU_NOTIFY: i32 = libfabric_sys::FI_MR_MMU_NOTIFY as i32;
    /// Regions for which remote events are wanted must be enabled.
    pub const RMA_EVENT: i32 = libfabric_sys::FI_MR_RMA_EVENT as i32;
    /// Regions must be bound to an endpoint: [`crate::MemoryRegion::enable_on`].
    pub const ENDPOINT: i32 = libfabric_sys::FI_MR_ENDPOINT as i32;
    /// All but [`RAW`], [`MMU_NOTIFY`] and [`RMA_EVENT`].
    pub const COMMON: i32 = LOCAL | VIRT_ADDR | ALLOCATED | PROV_KEY | ENDPOINT;
}
