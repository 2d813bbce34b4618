//! Registered memory: what a device may read and write.

use std::ffi::c_int;
use std::ops::BitOr;
use std::sync::Arc;

use ibverbs_sys as sys;

use crate::handle::Handle;
use crate::{ProtectionDomain, VerbsError};

/// Kinds of access to memory. Reading by the own device is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access(u32);

impl Access {
    /// Reading by the own device only.
    pub const NONE: Access = Access(0);
    /// Writing by the own device: receives, results of reads and atomics.
    pub const LOCAL_WRITE: Access = Access(sys::IBV_ACCESS_LOCAL_WRITE);
    /// Reading by peers.
    pub const REMOTE_READ: Access = Access(sys::IBV_ACCESS_REMOTE_READ);
    /// Writing by peers; needs [`Access::LOCAL_WRITE`] too.
    pub const REMOTE_WRITE: Access = Access(sys::IBV_ACCESS_REMOTE_WRITE);
    /// Atomic operations of peers; needs [`Access::LOCAL_WRITE`] too.
    pub const REMOTE_ATOMIC: Access = Access(sys::IBV_ACCESS_REMOTE_ATOMIC);

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for Access {
    type Output = Access;

    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// Memory of this process in a request: the layout of `ibv_sge` (ibv_post_send(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Local {
    /// Where it begins.
    pub address: u64,
    /// How many bytes. In a request that is not inline, zero means 2³¹ on some devices: leave such a part out.
    pub len: u32,
    /// The key of its region ([`MemoryRegion::local_key`]); of no meaning in an inline request.
    pub key: u32,
}

const _: () = {
    assert!(size_of::<Local>() == size_of::<sys::ibv_sge>());
    assert!(align_of::<Local>() == align_of::<sys::ibv_sge>());
    assert!(std::mem::offset_of!(Local, address) == std::mem::offset_of!(sys::ibv_sge, addr));
    assert!(std::mem::offset_of!(Local, len) == std::mem::offset_of!(sys::ibv_sge, length));
    assert!(std::mem::offset_of!(Local, key) == std::mem::offset_of!(sys::ibv_sge, lkey));
};

/// A registration (ibv_reg_mr(3)); ends when dropped.
#[derive(Debug)]
pub struct MemoryRegion {
    handle: Handle<sys::ibv_mr>,
    _domain: Arc<ProtectionDomain>,
}

impl MemoryRegion {
    /// Registers memory, and locks it.
    ///
    /// # Errors
    /// [`VerbsError::is_exhausted`] when no more may be locked.
    ///
    /// # Safety
    /// The memory stays mapped, and writable if access includes writes, until the region is dropped; and until then the
    /// program expects it to be read and written from outside at any time (no reference to it may deny that).
    pub unsafe fn register(
        domain: &Arc<ProtectionDomain>,
        memory: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, VerbsError> {
        let library = domain.context().library();
        let access = access.bits().cast_signed() as c_int;
        // SAFETY: ibv_reg_mr(3): a live protection domain; the caller vouches for the memory.
        let region = unsafe { (library.ibv_reg_mr)(domain.as_ptr(), memory.cast(), len, access) };
        // SAFETY: just registered, and deregistered by nothing else.
        let handle = unsafe { Handle::new("ibv_reg_mr", region, library.ibv_dereg_mr)? };
        Ok(MemoryRegion { handle, _domain: Arc::clone(domain) })
    }

    /// The key for requests of this process.
    #[inline]
    pub fn local_key(&self) -> u32 {
        // SAFETY: the region is live; ibv_reg_mr(3).
        unsafe { (*self.handle.as_ptr()).lkey }
    }

    /// The key for requests of peers.
    #[inline]
    pub fn remote_key(&self) -> u32 {
        // SAFETY: the region is live; ibv_reg_mr(3).
        unsafe { (*self.handle.as_ptr()).rkey }
    }
}
