//! The address vector: peers by number.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use libfabric_sys::{self as sys, fi_addr_t, fi_av_attr, fid_av};

use crate::error::{EINVAL, check};
use crate::handle::Handle;
use crate::{Domain, FabricError, Info};

/// A peer, as endpoints on one address vector know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(fi_addr_t);

impl Address {
    /// Any peer, as the source of a receive (`FI_ADDR_UNSPEC`).
    pub const ANY: Address = Address(sys::FI_ADDR_UNSPEC);

    pub(crate) fn to_raw(self) -> fi_addr_t {
        self.0
    }
}

/// Room for the longest address of any provider; shorter ones are padded with zeros.
const ROOM: usize = 512;

/// Bytes aligned as a provider may expect of a structure.
#[repr(C, align(16))]
struct Room([u8; ROOM]);

/// An open address vector (fi_av(3)).
#[derive(Debug)]
pub struct AddressVector {
    handle: Handle<fid_av>,
    domain: Arc<Domain>,
}

impl AddressVector {
    /// Opens a vector for about `count` peers.
    pub fn open(domain: &Arc<Domain>, info: &Info, count: usize) -> Result<Arc<AddressVector>, FabricError> {
        let library = domain.library();
        let mut attr = fi_av_attr {
            type_: info.av_type(),
            rx_ctx_bits: 0,
            count,
            ep_per_node: 0,
            name: null_mut(),
            map_addr: null_mut(),
            flags: 0,
        };
        let mut av = null_mut();
        // SAFETY: fi_av(3): an open domain and attributes that outlive the call.
        let returned = unsafe { sys::fi_av_open(domain.as_ptr(), &mut attr, &mut av, null_mut()) };
        check(library, "fi_av_open", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "address vector", av)? };
        Ok(Arc::new(AddressVector { handle, domain: Arc::clone(domain) }))
    }

    /// Adds a peer by the bytes of its [`crate::Endpoint::name`].
    pub fn insert(&self, name: &[u8]) -> Result<Address, FabricError> {
        // The provider takes no length: it reads as much as its format has. Zeros after the end keep it from reading
        // past what was given.
        let mut room = Room([0; ROOM]);
        match room.0.get_mut(..name.len()) {
            Some(space) if !name.is_empty() && name.len() < ROOM => space.copy_from_slice(name),
            _ => return Err(FabricError::refused("fi_av_insert", EINVAL, "not an address: wrong length")),
        }
        let mut address: fi_addr_t = sys::FI_ADDR_NOTAVAIL;
        // SAFETY: fi_av(3): an open vector, one address, padded to more than any format's size, and room for one result.
        // No event queue is bound, so the call is synchronous.
        let returned = unsafe {
            sys::fi_av_insert(self.as_ptr(), room.0.as_ptr().cast(), 1, &mut address, 0, null_mut())
        };
        match check(self.handle.library(), "fi_av_insert", returned)? {
            1 if address != sys::FI_ADDR_NOTAVAIL => Ok(Address(address)),
            _ => Err(FabricError::refused("fi_av_insert", EINVAL, "not an address of this provider")),
        }
    }

    /// Removes a peer. Its number may be given to another.
    ///
    /// # Safety
    /// The address came from this vector, has not been removed, and no operation to it is under way.
    pub unsafe fn remove(&self, address: Address) -> Result<(), FabricError> {
        let mut raw = address.to_raw();
        // SAFETY: fi_av(3): an open vector and one address; the rest is the caller's promise.
        let returned: c_int = unsafe { sys::fi_av_remove(self.as_ptr(), &mut raw, 1, 0) };
        check(self.handle.library(), "fi_av_remove", returned).map(drop)
    }

    /// The domain that this vector belongs to.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(crate) fn as_ptr(&self) -> *mut fid_av {
        self.handle.as_ptr()
    }

    pub(crate) fn fid(&self) -> *mut sys::fid {
        self.handle.fid()
    }
}
