//! The error of every call into libfabric.

use std::ffi::c_int;

use libfabric_sys::{FI_EAGAIN, FI_ENODATA, FI_ENOSYS, FI_EOPNOTSUPP, Library};

/// A call that libfabric refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {text} ({code})")]
pub struct FabricError {
    /// The function, as in the manual pages.
    pub operation: &'static str,
    /// The error number, positive: an `errno`, or one of fi_errno(3) from 256 up.
    pub code: i32,
    /// The library's text for it.
    pub text: String,
}

/// There is an error to be had from `fi_cq_readerr` (fi_errno.h; the generated constants are unsigned).
pub(crate) const EAVAIL: i32 = libfabric_sys::FI_EAVAIL as i32;
/// The buffer is too small for an address.
pub(crate) const ETOOSMALL: i32 = libfabric_sys::FI_ETOOSMALL as i32;
/// An argument does not fit.
pub(crate) const EINVAL: i32 = libfabric_sys::FI_EINVAL as i32;
/// A queue is full, or there is nothing to read.
pub(crate) const EAGAIN: i32 = FI_EAGAIN as i32;

impl FabricError {
    /// An error that libfabric returned as a negative number.
    pub(crate) fn new(library: &Library, operation: &'static str, returned: isize) -> FabricError {
        let code = i32::try_from(returned.unsigned_abs()).unwrap_or(i32::MAX);
        FabricError { operation, code, text: library.error_text(code) }
    }

    /// An error that is found here, before libfabric is called.
    pub(crate) fn refused(operation: &'static str, code: i32, why: impl Into<String>) -> FabricError {
        FabricError { operation, code, text: why.into() }
    }

    /// Nothing is wrong: call again after making progress.
    pub fn is_again(&self) -> bool {
        self.code == EAGAIN
    }

    /// A failed operation is waiting at [`crate::CompletionQueue::read_error`].
    pub fn is_error_available(&self) -> bool {
        self.code == EAVAIL
    }

    /// The provider does not have this.
    pub fn is_unsupported(&self) -> bool {
        self.code == FI_ENOSYS as i32 || self.code == FI_EOPNOTSUPP as i32
    }

    /// Nothing matches what was asked for.
    pub fn is_no_data(&self) -> bool {
        self.code == FI_ENODATA as i32
    }
}

/// The number that a call returned, or the error it stands for.
pub(crate) fn check(
    library: &Library,
    operation: &'static str,
    returned: c_int,
) -> Result<usize, FabricError> {
    usize::try_from(returned).map_err(|_| FabricError::new(library, operation, returned as isize))
}
