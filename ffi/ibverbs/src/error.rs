//! The error of every call into libibverbs.

use std::ffi::c_int;

use ibverbs_sys::OpenError;
use nix::errno::Errno;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// A call that libibverbs refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {text} ({code})")]
pub struct VerbsError {
    /// The function, as in the manual pages.
    pub operation: &'static str,
    /// The `errno`, positive.
    pub code: i32,
    /// What it means, and what helps where that is known.
    pub text: String,
}

/// Stands for a library that cannot be opened.
const NO_LIBRARY: Errno = Errno::ELIBACC;
/// Stands for a machine without a device, or without the one that was asked for.
const NO_DEVICE: Errno = Errno::ENODEV;

impl VerbsError {
    /// An error number that libibverbs gave; `Errno::UnknownErrno` if it named none.
    pub(crate) fn new(operation: &'static str, code: Errno) -> VerbsError {
        VerbsError { operation, code: code as i32, text: explain(operation, code) }
    }

    /// An error that libibverbs left in `errno`.
    pub(crate) fn last(operation: &'static str) -> VerbsError {
        VerbsError::new(operation, Errno::last())
    }

    /// An error that is found here, before libibverbs is called.
    pub(crate) fn refused(operation: &'static str, why: impl Into<String>) -> VerbsError {
        VerbsError { operation, code: Errno::EINVAL as i32, text: why.into() }
    }

    pub(crate) fn no_library(operation: &'static str, why: &OpenError) -> VerbsError {
        VerbsError { operation, code: NO_LIBRARY as i32, text: why.to_string() }
    }

    pub(crate) fn no_device(operation: &'static str, why: impl Into<String>) -> VerbsError {
        VerbsError { operation, code: NO_DEVICE as i32, text: why.into() }
    }

    /// Libibverbs is not installed, cannot be opened, or lacks a function.
    pub fn is_no_library(&self) -> bool {
        self.code == NO_LIBRARY as i32
    }

    /// There is no device, or none of that name, or the kernel has no RDMA.
    pub fn is_no_device(&self) -> bool {
        self.code == NO_DEVICE as i32
    }

    /// Something is used up: a work queue is full ([`crate::QueuePair::post`]), or there is no memory, or no more may be
    /// locked ([`crate::MemoryRegion::register`]).
    pub fn is_exhausted(&self) -> bool {
        self.code == Errno::ENOMEM as i32
    }

    /// The device or the library does not have this.
    pub fn is_unsupported(&self) -> bool {
        self.code == Errno::EOPNOTSUPP as i32 || self.code == Errno::ENOSYS as i32
    }
}

fn explain(operation: &'static str, code: Errno) -> String {
    let text = code.desc();
    match (operation, code) {
        ("ibv_reg_mr", Errno::ENOMEM) => {
            format!("{text}; a process may lock {} (raise it: ulimit -l)", locked_memory_limit())
        }
        ("ibv_reg_mr", Errno::EFAULT) => {
            format!("{text}: not all of the range is mapped as the access needs")
        }
        ("ibv_post_send" | "ibv_post_recv" | "ibv_post_srq_recv", Errno::ENOMEM) => {
            format!("{text}: the work queue is full")
        }
        ("ibv_open_device", Errno::EACCES | Errno::EPERM) => {
            format!("{text}: /dev/infiniband/uverbs* must be readable and writable")
        }
        ("rdma_create_event_channel", Errno::ENODEV | Errno::ENOENT | Errno::EACCES | Errno::EPERM) => {
            format!(
                "{text}: /dev/infiniband/rdma_cm must be there (modprobe rdma_ucm), readable and writable"
            )
        }
        (_, Errno::UnknownErrno) => "failed without an error number".into(),
        _ => text.into(),
    }
}

fn locked_memory_limit() -> String {
    match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((RLIM_INFINITY, _)) => "any amount of memory".into(),
        Ok((soft, _)) => format!("{} KiB of memory", soft / 1024),
        Err(_) => "a limited amount of memory".into(),
    }
}

/// The error of a call that returns an error number. A few providers return −1 and leave it in `errno`.
pub(crate) fn check(operation: &'static str, returned: c_int) -> Result<(), VerbsError> {
    match returned {
        0 => Ok(()),
        -1 => Err(VerbsError::last(operation)),
        code => Err(VerbsError::new(operation, Errno::from_raw(code.saturating_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_returned_is_the_code() {
        assert_eq!(check("ibv_modify_qp", 0), Ok(()));
        let error = check("ibv_modify_qp", Errno::EINVAL as i32).unwrap_err();
        assert_eq!((error.operation, error.code), ("ibv_modify_qp", Errno::EINVAL as i32));
        assert_eq!(check("ibv_query_gid_table", -(Errno::EINVAL as i32)).unwrap_err().code, error.code);
    }

    #[test]
    fn minus_one_means_errno() {
        Errno::ENODATA.set();
        assert_eq!(check("ibv_query_gid", -1).unwrap_err().code, Errno::ENODATA as i32);
    }

    #[test]
    fn memory_that_cannot_be_locked_names_the_limit() {
        let error = VerbsError::new("ibv_reg_mr", Errno::ENOMEM);
        assert!(error.is_exhausted());
        assert!(error.to_string().contains("ulimit -l"), "{error}");
        let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).unwrap();
        let amount = if soft == RLIM_INFINITY { "any".into() } else { (soft / 1024).to_string() };
        assert!(error.text.contains(&amount), "{error}");
    }

    #[test]
    fn no_library_and_no_device_differ() {
        let missing = OpenError::Missing {
            library: &ibverbs_sys::IBVERBS,
            reason: "libibverbs.so.1: no such file".into(),
        };
        let library = VerbsError::no_library("ibv_get_device_list", &missing);
        let device = VerbsError::no_device("ibv_get_device_list", "none");
        assert!(library.is_no_library() && !library.is_no_device());
        assert!(device.is_no_device() && !device.is_no_library());
        assert!(library.text.contains("apt install libibverbs1 ibverbs-providers"));
    }
}
