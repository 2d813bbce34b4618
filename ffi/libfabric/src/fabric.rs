//! The fabric: what domains are opened on, and where one asks whether it is safe to sleep.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use libfabric_sys::{self as sys, Library, fid_fabric};

use crate::error::{EINVAL, check};
use crate::handle::Handle;
use crate::{CompletionQueue, FabricError, Info};

/// An open fabric (fi_fabric(3)).
#[derive(Debug)]
pub struct Fabric {
    handle: Handle<fid_fabric>,
    provider: String,
}

impl Fabric {
    /// Opens the fabric of an offer.
    pub fn open(info: &Info) -> Result<Arc<Fabric>, FabricError> {
        let library = info.library();
        let mut fabric = null_mut();
        // SAFETY: fi_fabric(3): the attributes belong to `info` and outlive the call.
        let returned = unsafe { (library.fi_fabric)(info.fabric_attr(), &mut fabric, null_mut()) };
        check(library, "fi_fabric", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "fabric", fabric)? };
        Ok(Arc::new(Fabric { handle, provider: info.provider() }))
    }

    /// Whether it is safe to block on the wait descriptors of these queues (fi_poll(3)).
    ///
    /// `false` means: read the queues and ask again. To be asked before every sleep; a descriptor may otherwise stay
    /// silent while completions wait.
    pub fn try_wait(&self, queues: &[&CompletionQueue]) -> Result<bool, FabricError> {
        const AT_ONCE: usize = 8;
        for some in queues.chunks(AT_ONCE) {
            let mut fids = [null_mut(); AT_ONCE];
            for (fid, queue) in fids.iter_mut().zip(some) {
                if !std::ptr::eq(&**queue.domain().fabric(), self) || queue.wait_fd().is_none() {
                    let why = "a queue without wait descriptor, or of another fabric";
                    return Err(FabricError::refused("fi_trywait", EINVAL, why));
                }
                *fid = queue.fid();
            }
            // SAFETY: fi_poll(3): an array of that many open queues of this fabric, all with a descriptor as wait object.
            let returned =
                unsafe { sys::fi_trywait(self.handle.as_ptr(), fids.as_mut_ptr(), some.len() as c_int) };
            match check(self.library(), "fi_trywait", returned) {
                Ok(_) => {}
                Err(error) if error.is_again() => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The library that this fabric came from.
    pub fn library(&self) -> &'static Library {
        self.handle.library()
    }

    /// Refuses an offer that another provider made: its code would be let loose on this one's objects.
    pub(crate) fn check_offer(&self, operation: &'static str, info: &Info) -> Result<(), FabricError> {
        if !std::ptr::eq(info.library(), self.library()) || info.provider() != self.provider {
            return Err(FabricError::refused(operation, EINVAL, "the offer is of another provider"));
        }
        Ok(())
    }

    pub(crate) fn as_ptr(&self) -> *mut fid_fabric {
        self.handle.as_ptr()
    }
}
