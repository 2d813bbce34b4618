//! Registered memory: what peers may read and write.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use libfabric_sys::{self as sys, fid_mr};

use crate::error::{EINVAL, check};
use crate::handle::Handle;
use crate::{Domain, Endpoint, FabricError};

/// What libfabric calls `desc`: proof that a local buffer is registered, for providers that ask for it
/// ([`crate::flags::mr::LOCAL`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor(*mut c_void);

impl Descriptor {
    /// For providers that do not ask.
    pub const NONE: Descriptor = Descriptor(null_mut());

    pub(crate) fn to_raw(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: an opaque value that is only handed back to the provider, by unsafe calls.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

/// A registration (fi_mr(3)); ends when dropped.
#[derive(Debug)]
pub struct MemoryRegion {
    handle: Handle<fid_mr>,
    domain: Arc<Domain>,
}

impl MemoryRegion {
    /// Registers memory for the kinds of access given: `READ`, `WRITE`, `REMOTE_READ`, `REMOTE_WRITE`, `SEND`, `RECV` of
    /// [`crate::flags`].
    ///
    /// Without [`crate::flags::mr::PROV_KEY`] the key is the one requested, which must not be in use in the domain.
    ///
    /// # Safety
    /// The memory stays valid, for writes too if access includes them, until the region is dropped; and until then the
    /// program expects it to be read and written from outside at any time (no reference to it may deny that).
    pub unsafe fn register(
        domain: &Arc<Domain>,
        memory: *mut u8,
        len: usize,
        access: u64,
        requested_key: u64,
    ) -> Result<MemoryRegion, FabricError> {
        let library = domain.library();
        let mut mr = null_mut();
        // SAFETY: fi_mr(3): an open domain; the caller vouches for the memory.
        let returned = unsafe {
            sys::fi_mr_reg(
                domain.as_ptr(),
                memory.cast::<c_void>(),
                len,
                access,
                0,
                requested_key,
                0,
                &mut mr,
                null_mut(),
            )
        };
        check(library, "fi_mr_reg", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "memory region", mr)? };
        Ok(MemoryRegion { handle, domain: Arc::clone(domain) })
    }

    /// Makes the region accessible through an endpoint of its domain; needed with [`crate::flags::mr::ENDPOINT`], and
    /// only then. The key is the region's only after this.
    ///
    /// # Safety
    /// Called at most once, and the region is dropped before the endpoint (`fi_mr(3)`).
    pub unsafe fn enable_on(&self, endpoint: &Endpoint) -> Result<(), FabricError> {
        if !Arc::ptr_eq(endpoint.domain(), &self.domain) {
            return Err(FabricError::refused("fi_mr_bind", EINVAL, "the endpoint belongs to another domain"));
        }
        let library = self.handle.library();
        // SAFETY: fi_mr(3): an open region that is not enabled yet (the caller's promise), and an open endpoint of its
        // domain.
        let returned = unsafe { sys::fi_mr_bind(self.handle.as_ptr(), endpoint.fid(), 0) };
        check(library, "fi_mr_bind", returned)?;
        // SAFETY: fi_mr(3): open and bound.
        let returned = unsafe { sys::fi_mr_enable(self.handle.as_ptr()) };
        check(library, "fi_mr_enable", returned).map(drop)
    }

    /// The key that a peer needs. All ones if it is longer than 64 bits ([`crate::flags::mr::RAW`]).
    pub fn key(&self) -> u64 {
        // SAFETY: the region is open.
        unsafe { sys::fi_mr_key(self.handle.as_ptr()) }
    }

    /// What to pass along with local buffers inside the region.
    pub fn descriptor(&self) -> Descriptor {
        // SAFETY: the region is open.
        Descriptor(unsafe { sys::fi_mr_desc(self.handle.as_ptr()) })
    }
}
