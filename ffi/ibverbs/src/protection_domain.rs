//! The protection domain: what may be used together.

use std::sync::Arc;

use ibverbs_sys as sys;

use crate::handle::Handle;
use crate::{Context, VerbsError};

/// A protection domain (ibv_alloc_pd(3)): queue pairs reach memory regions of the same one only.
#[derive(Debug)]
pub struct ProtectionDomain {
    handle: Handle<sys::ibv_pd>,
    context: Arc<Context>,
}

impl ProtectionDomain {
    /// Makes one.
    pub fn new(context: &Arc<Context>) -> Result<Arc<ProtectionDomain>, VerbsError> {
        let library = context.library();
        // SAFETY: ibv_alloc_pd(3): an open device.
        let domain = unsafe { (library.ibv_alloc_pd)(context.as_ptr()) };
        // SAFETY: just made, and destroyed by nothing else.
        let handle = unsafe { Handle::new("ibv_alloc_pd", domain, library.ibv_dealloc_pd)? };
        Ok(Arc::new(ProtectionDomain { handle, context: Arc::clone(context) }))
    }

    /// The device that it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_pd {
        self.handle.as_ptr()
    }
}
