//! The shared receive queue: one supply of receives for many queue pairs.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use ibverbs_sys as sys;

use crate::error::check;
use crate::handle::Handle;
use crate::{Context, Local, ProtectionDomain, VerbsError};

/// A shared receive queue (ibv_create_srq(3)).
#[derive(Debug)]
pub struct SharedReceiveQueue {
    handle: Handle<sys::ibv_srq>,
    domain: Arc<ProtectionDomain>,
}

impl SharedReceiveQueue {
    /// Makes one for so many receives of one part each.
    pub fn new(domain: &Arc<ProtectionDomain>, receives: u32) -> Result<Arc<SharedReceiveQueue>, VerbsError> {
        let library = domain.context().library();
        let mut attr = sys::ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: sys::ibv_srq_attr { max_wr: receives, max_sge: 1, srq_limit: 0 },
        };
        // SAFETY: ibv_create_srq(3): a live protection domain, and attributes that outlive the call.
        let queue = unsafe { (library.ibv_create_srq)(domain.as_ptr(), &mut attr) };
        // SAFETY: just made, and destroyed by nothing else.
        let handle = unsafe { Handle::new("ibv_create_srq", queue, library.ibv_destroy_srq)? };
        Ok(Arc::new(SharedReceiveQueue { handle, domain: Arc::clone(domain) }))
    }

    /// Posts a receive: a message to any of the queue pairs will be written there.
    ///
    /// # Errors
    /// [`VerbsError::is_exhausted`] when the queue is full.
    ///
    /// # Safety
    /// Until the receive completes or the queue is dropped, the memory stays registered with write access in the same
    /// protection domain, and the program expects it to be written from outside.
    #[inline]
    pub unsafe fn post(&self, id: u64, local: Local) -> Result<(), VerbsError> {
        post_one("ibv_post_srq_recv", id, local, |request, bad| {
            // SAFETY: ibv_post_srq_recv(3): a live queue; for the request `post_one` vouches, for the memory the caller.
            unsafe { sys::ibv_post_srq_recv(self.as_ptr(), request, bad) }
        })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        self.domain.context()
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_srq {
        self.handle.as_ptr()
    }
}

/// Posts one receive by the function that is named, as `post` calls it: with a request whose list (`Local` has the layout of
/// its entries) outlives the call.
#[inline]
pub(crate) fn post_one(
    function: &'static str,
    id: u64,
    local: Local,
    post: impl FnOnce(*mut sys::ibv_recv_wr, *mut *mut sys::ibv_recv_wr) -> c_int,
) -> Result<(), VerbsError> {
    let mut part = local;
    let mut request =
        sys::ibv_recv_wr { wr_id: id, next: null_mut(), sg_list: (&raw mut part).cast(), num_sge: 1 };
    let mut bad = null_mut();
    check(function, post(&mut request, &mut bad))
}
