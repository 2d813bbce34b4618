//! What all objects share: a pointer that is destroyed when dropped.

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;

use crate::VerbsError;
use crate::error::check;

/// The function that destroys an object of kind `T`.
type Destroy<T> = unsafe extern "C" fn(*mut T) -> c_int;

/// A live libibverbs object.
pub(crate) struct Handle<T> {
    object: NonNull<T>,
    destroy: Destroy<T>,
    operation: &'static str,
}

impl<T> Handle<T> {
    /// Takes over what the creating function `operation` returned, or the error that it left in `errno`.
    ///
    /// # Safety
    /// `object` is null or live and destroyed by nothing else; `destroy` is the function that does, and may be called
    /// from any thread.
    pub(crate) unsafe fn new(
        operation: &'static str,
        object: *mut T,
        destroy: Destroy<T>,
    ) -> Result<Handle<T>, VerbsError> {
        let object = NonNull::new(object).ok_or_else(|| VerbsError::last(operation))?;
        Ok(Handle { object, destroy, operation })
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: live until now, and this is the only place that destroys it. Its children hold it through an `Arc`, so
        // they are gone already.
        let returned = unsafe { (self.destroy)(self.as_ptr()) };
        if let Err(error) = check("destroy", returned) {
            tracing::warn!(created = self.operation, %error, "verbs object was not destroyed");
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:p}", self.operation, self.object)
    }
}

// SAFETY: verbs objects are not tied to a thread, and verbs lock for themselves (the crate's documentation, *Threads*).
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}
