//! The domain: an interface to the network that all other objects belong to.

use std::ptr::null_mut;
use std::sync::Arc;

use libfabric_sys::{self as sys, Library, fi_atomic_attr, fid_domain};

use crate::error::{EINVAL, check};
use crate::handle::Handle;
use crate::{AtomicKind, AtomicLimits, AtomicOp, Datatype, Fabric, FabricError, Info, Threading};

/// An open domain (fi_domain(3)).
#[derive(Debug)]
pub struct Domain {
    handle: Handle<fid_domain>,
    fabric: Arc<Fabric>,
}

impl Domain {
    /// Opens the domain of an offer whose provider takes calls from any thread ([`Threading::Safe`]).
    pub fn open(fabric: &Arc<Fabric>, info: &Info) -> Result<Arc<Domain>, FabricError> {
        if info.threading() != Threading::Safe {
            let why =
                "the provider does not take calls from any thread: ask for Threading::Safe in the hints";
            return Err(FabricError::refused("fi_domain", EINVAL, why));
        }
        // SAFETY: nothing needs to be serialised at this level (FI_THREAD_SAFE in fi_domain(3)).
        unsafe { Domain::open_serialised(fabric, info) }
    }

    /// Opens the domain of an offer at any threading level.
    ///
    /// # Safety
    /// If the level is not [`Threading::Safe`], the caller serialises as it demands (fi_domain(3)); for
    /// [`Threading::Domain`], all uses of all objects of this domain, in all threads, dropping them included.
    pub unsafe fn open_serialised(fabric: &Arc<Fabric>, info: &Info) -> Result<Arc<Domain>, FabricError> {
        let library = fabric.library();
        fabric.check_offer("fi_domain", info)?;
        let mut domain = null_mut();
        // SAFETY: fi_domain(3): an open fabric, and an info that outlives the call.
        let returned = unsafe { sys::fi_domain(fabric.as_ptr(), info.as_ptr(), &mut domain, null_mut()) };
        check(library, "fi_domain", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "domain", domain)? };
        Ok(Arc::new(Domain { handle, fabric: Arc::clone(fabric) }))
    }

    /// What the provider can do of an atomic operation (`fi_query_atomic` in fi_atomic(3)); `None` if nothing.
    pub fn query_atomic(&self, datatype: Datatype, op: AtomicOp, kind: AtomicKind) -> Option<AtomicLimits> {
        let mut limits = fi_atomic_attr { count: 0, size: 0 };
        // SAFETY: fi_atomic(3): an open domain and room for the answer.
        let returned = unsafe {
            sys::fi_query_atomic(
                self.as_ptr(),
                datatype.to_raw(),
                op.to_raw(),
                &mut limits,
                kind.to_query_flags(),
            )
        };
        (returned == 0 && limits.count > 0).then_some(AtomicLimits { count: limits.count, size: limits.size })
    }

    /// The fabric that this domain was opened on.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.handle.library()
    }

    pub(crate) fn as_ptr(&self) -> *mut fid_domain {
        self.handle.as_ptr()
    }
}
