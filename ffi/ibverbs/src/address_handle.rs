//! The address handle: where a datagram goes.

use std::sync::Arc;

use ibverbs_sys as sys;

use crate::handle::Handle;
use crate::{ProtectionDomain, VerbsError};

/// Hops that a packet may take between networks.
const HOPS: u8 = 64;

/// A way through the network to a peer's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The peer's port in an InfiniBand subnet; zero on Ethernet.
    pub lid: u16,
    /// The peer's address; used if `global`.
    pub gid: [u8; 16],
    /// This side's address, by its place ([`crate::Gid::index`]); used if `global`.
    pub gid_index: u8,
    /// Whether packets carry both addresses: always on Ethernet, and between InfiniBand subnets.
    pub global: bool,
    /// This side's port.
    pub port: u8,
}

impl Route {
    pub(crate) fn to_raw(self) -> sys::ibv_ah_attr {
        sys::ibv_ah_attr {
            grh: sys::ibv_global_route {
                dgid: sys::ibv_gid { raw: self.gid },
                flow_label: 0,
                sgid_index: self.gid_index,
                hop_limit: HOPS,
                traffic_class: 0,
            },
            dlid: self.lid,
            sl: 0,
            src_path_bits: 0,
            static_rate: 0,
            is_global: self.global.into(),
            port_num: self.port,
        }
    }
}

/// An address handle (ibv_create_ah(3)).
#[derive(Debug)]
pub struct AddressHandle {
    handle: Handle<sys::ibv_ah>,
    _domain: Arc<ProtectionDomain>,
}

impl AddressHandle {
    /// Makes one. On Ethernet the kernel resolves the peer's address on the way, which can take a while.
    pub fn new(domain: &Arc<ProtectionDomain>, route: &Route) -> Result<AddressHandle, VerbsError> {
        let library = domain.context().library();
        let mut attr = route.to_raw();
        // SAFETY: ibv_create_ah(3): a live protection domain, and attributes that outlive the call.
        let address = unsafe { (library.ibv_create_ah)(domain.as_ptr(), &mut attr) };
        // SAFETY: just made, and destroyed by nothing else.
        let handle = unsafe { Handle::new("ibv_create_ah", address, library.ibv_destroy_ah)? };
        Ok(AddressHandle { handle, _domain: Arc::clone(domain) })
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_ah {
        self.handle.as_ptr()
    }
}
