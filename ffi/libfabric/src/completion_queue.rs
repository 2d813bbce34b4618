//! The completion queue: where the ends of operations are read.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use libfabric_sys::{self as sys, fi_cq_attr, fi_cq_data_entry, fi_cq_err_entry, fid_cq};

use crate::error::{EAGAIN, EINVAL, check};
use crate::handle::Handle;
use crate::{Domain, FabricError};

/// How a thread will wait for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Not at all: it will poll.
    #[default]
    None,
    /// By a file descriptor.
    Fd,
}

/// How to open a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueOptions {
    /// Completions it must hold; zero leaves it to the provider.
    pub size: usize,
    /// How a thread will wait.
    pub wait: Wait,
}

/// The end of an operation (`FI_CQ_FORMAT_DATA` of fi_cq(3)).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Completion(fi_cq_data_entry);

impl Completion {
    /// For arrays to be read into.
    pub const EMPTY: Completion =
        Completion(fi_cq_data_entry { op_context: null_mut(), flags: 0, len: 0, buf: null_mut(), data: 0 });

    /// The context that the operation was posted with.
    pub fn context(&self) -> usize {
        self.0.op_context as usize
    }

    /// What it was: `SEND`, `RECV`, `RMA`, `READ`, `MULTI_RECV`, … of [`crate::flags`].
    pub fn flags(&self) -> u64 {
        self.0.flags
    }

    /// Bytes received; for receives only.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether [`Completion::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Where in a multi-receive buffer the message begins; for such receives only.
    pub fn buffer(&self) -> *mut u8 {
        self.0.buf.cast()
    }

    /// The number that came with it, if `REMOTE_CQ_DATA` is among the flags.
    pub fn data(&self) -> u64 {
        self.0.data
    }
}

impl Default for Completion {
    fn default() -> Self {
        Completion::EMPTY
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("context", &format_args!("{:#x}", self.context()))
            .field("flags", &format_args!("{:#x}", self.flags()))
            .field("len", &self.len())
            .field("buffer", &self.buffer())
            .finish_non_exhaustive()
    }
}

// SAFETY: plain numbers; the pointer is handed out and never followed here.
unsafe impl Send for Completion {}
// SAFETY: as above.
unsafe impl Sync for Completion {}

/// An operation that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation failed: {text} ({errno}); provider: {message} ({provider_errno})")]
pub struct CqError {
    /// The context that the operation was posted with; zero if the provider does not know.
    pub context: usize,
    /// The error number, positive (fi_errno(3)).
    pub errno: i32,
    /// The library's text for it.
    pub text: String,
    /// The provider's own number.
    pub provider_errno: i32,
    /// The provider's text for that.
    pub message: String,
    /// What the operation was: [`crate::flags`].
    pub flags: u64,
    /// Bytes received before the failure.
    pub len: usize,
    /// Bytes of a received message for which there was no room.
    pub overflow: usize,
}

/// An open completion queue (fi_cq(3)).
#[derive(Debug)]
pub struct CompletionQueue {
    handle: Handle<fid_cq>,
    wait_fd: Option<RawFd>,
    domain: Arc<Domain>,
}

impl CompletionQueue {
    /// Opens a queue.
    pub fn open(domain: &Arc<Domain>, options: &QueueOptions) -> Result<Arc<CompletionQueue>, FabricError> {
        let library = domain.library();
        let mut attr = fi_cq_attr {
            size: options.size,
            flags: 0,
            format: sys::FI_CQ_FORMAT_DATA,
            wait_obj: match options.wait {
                Wait::None => sys::FI_WAIT_NONE,
                Wait::Fd => sys::FI_WAIT_FD,
            },
            signaling_vector: 0,
            wait_cond: sys::FI_CQ_COND_NONE,
            wait_set: null_mut(),
        };
        let mut cq = null_mut();
        // SAFETY: fi_cq(3): an open domain and attributes that outlive the call.
        let returned = unsafe { sys::fi_cq_open(domain.as_ptr(), &mut attr, &mut cq, null_mut()) };
        check(library, "fi_cq_open", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "completion queue", cq)? };
        let wait_fd = match options.wait {
            Wait::None => None,
            Wait::Fd => {
                let mut fd: c_int = -1;
                // SAFETY: fi_cq(3) and fi_eq(3): for FI_WAIT_FD the answer is an int, here with room for it; no other
                // thread knows the queue yet, so the access is serialised.
                let returned =
                    unsafe { sys::fi_control(handle.fid(), sys::FI_GETWAIT as c_int, (&raw mut fd).cast()) };
                check(library, "fi_control(FI_GETWAIT)", returned)?;
                (fd >= 0).then_some(fd)
            }
        };
        Ok(Arc::new(CompletionQueue { handle, wait_fd, domain: Arc::clone(domain) }))
    }

    /// Reads completions without blocking, and makes progress. Returns how many; zero if there are none.
    ///
    /// An error for which [`FabricError::is_error_available`] holds means that a failed operation is next: take it with
    /// [`CompletionQueue::read_error`].
    #[inline]
    pub fn read(&self, completions: &mut [Completion]) -> Result<usize, FabricError> {
        // SAFETY: fi_cq(3): an open queue of format DATA, and room for as many entries of that format as are asked for.
        let returned = unsafe {
            sys::fi_cq_read(self.handle.as_ptr(), completions.as_mut_ptr().cast(), completions.len())
        };
        self.count(returned, "fi_cq_read")
    }

    /// Reads completions, and blocks until there is one, or the time is over (then zero), or
    /// [`CompletionQueue::signal`]. Only for a queue opened with a wait object.
    pub fn read_blocking(
        &self,
        completions: &mut [Completion],
        timeout: Option<Duration>,
    ) -> Result<usize, FabricError> {
        if self.wait_fd.is_none() {
            // fi_cq(3): invalid with FI_WAIT_NONE.
            return Err(FabricError::refused("fi_cq_sread", EINVAL, "the queue has no wait object"));
        }
        let timeout = timeout.map_or(-1, |time| c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX));
        // SAFETY: as in `read`; the queue has a wait object.
        let returned = unsafe {
            sys::fi_cq_sread(
                self.handle.as_ptr(),
                completions.as_mut_ptr().cast(),
                completions.len(),
                null_mut(),
                timeout,
            )
        };
        self.count(returned, "fi_cq_sread")
    }

    #[inline]
    fn count(&self, returned: isize, operation: &'static str) -> Result<usize, FabricError> {
        match usize::try_from(returned) {
            Ok(count) => Ok(count),
            Err(_) if returned == -(EAGAIN as isize) => Ok(0),
            Err(_) => Err(FabricError::new(self.handle.library(), operation, returned)),
        }
    }

    /// Takes a failed operation, if there is one.
    pub fn read_error(&self) -> Result<Option<CqError>, FabricError> {
        let mut data = [0_u8; 256];
        let mut entry = fi_cq_err_entry {
            op_context: null_mut(),
            flags: 0,
            len: 0,
            buf: null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: data.as_mut_ptr().cast::<c_void>(),
            err_data_size: data.len(),
        };
        // SAFETY: fi_cq(3): an open queue and room for one entry, with a buffer of ours for the provider's data, so that
        // nothing of the provider's is referred to after the call.
        let returned = unsafe { sys::fi_cq_readerr(self.handle.as_ptr(), &mut entry, 0) };
        if self.count(returned, "fi_cq_readerr")? == 0 {
            return Ok(None);
        }
        Ok(Some(CqError {
            context: entry.op_context as usize,
            errno: entry.err,
            text: self.handle.library().error_text(entry.err),
            provider_errno: entry.prov_errno,
            message: self.provider_text(&entry),
            flags: entry.flags,
            len: entry.len,
            overflow: entry.olen,
        }))
    }

    fn provider_text(&self, entry: &fi_cq_err_entry) -> String {
        let mut text: [c_char; 256] = [0; 256];
        // SAFETY: fi_cq(3): an open queue, the data that fi_cq_readerr gave, and a buffer with its size, less one byte so
        // that it ends with zero. The result is null or a string, static or in that buffer.
        unsafe {
            let message = sys::fi_cq_strerror(
                self.handle.as_ptr(),
                entry.prov_errno,
                entry.err_data,
                text.as_mut_ptr(),
                text.len() - 1,
            );
            if message.is_null() {
                return String::new();
            }
            CStr::from_ptr(message).to_string_lossy().into_owned()
        }
    }

    /// Wakes a thread that blocks in [`CompletionQueue::read_blocking`] (fi_cq(3)).
    pub fn signal(&self) -> Result<(), FabricError> {
        if self.wait_fd.is_none() {
            // fi_cq(3): only available if the queue has a wait object.
            return Err(FabricError::refused("fi_cq_signal", EINVAL, "the queue has no wait object"));
        }
        // SAFETY: fi_cq(3): an open queue with a wait object.
        let returned = unsafe { sys::fi_cq_signal(self.handle.as_ptr()) };
        check(self.handle.library(), "fi_cq_signal", returned).map(drop)
    }

    /// The descriptor to sleep on, after [`crate::Fabric::try_wait`] said that it is safe.
    pub fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the provider keeps the descriptor open for as long as the queue (fi_cq(3), FI_GETWAIT), and the
        // borrow ends before that.
        self.wait_fd.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// The domain that this queue belongs to.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(crate) fn fid(&self) -> *mut sys::fid {
        self.handle.fid()
    }
}
