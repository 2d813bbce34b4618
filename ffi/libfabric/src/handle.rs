//! What all objects share: a pointer that is closed when dropped.

use std::fmt;
use std::ptr::NonNull;

use libfabric_sys::{Library, fi_close, fid};

use crate::FabricError;
use crate::error::EINVAL;

/// An open libfabric object of kind `T`, all of which begin with a `fid` (fabric.h).
pub(crate) struct Handle<T> {
    object: NonNull<T>,
    library: &'static Library,
    kind: &'static str,
}

impl<T> Handle<T> {
    /// Takes over the object that an opening function left at `object`.
    ///
    /// # Safety
    /// `object` is null or an open object that nothing else closes, and `T` one of the `fid_*` structures.
    pub(crate) unsafe fn new(
        library: &'static Library,
        kind: &'static str,
        object: *mut T,
    ) -> Result<Self, FabricError> {
        let object = NonNull::new(object)
            .ok_or_else(|| FabricError::refused(kind, EINVAL, "the provider returned no object"))?;
        Ok(Handle { object, library, kind })
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }

    /// The object as the `fid` it begins with.
    pub(crate) fn fid(&self) -> *mut fid {
        self.object.as_ptr().cast()
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: open until now, and this is the only place that closes it. Its children hold it through an `Arc`, so
        // they are closed already.
        let returned = unsafe { fi_close(self.fid()) };
        if returned != 0 {
            let error = FabricError::new(self.library, "fi_close", returned as isize);
            tracing::warn!(kind = self.kind, %error, "object was not closed");
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:p}", self.kind, self.object)
    }
}

// SAFETY: libfabric's objects are not tied to a thread. That they may be used from several at once is promised either by
// the provider (FI_THREAD_SAFE, fi_domain(3)), which `Domain::open` insists on, or by the caller of
// `Domain::open_serialised`. Fabrics lie above that choice and are thread safe in libfabric's core.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}
