//! The context: an open device.

use std::ffi::{CStr, c_int};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use ibverbs_sys as sys;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::VerbsError;
use crate::device::DeviceList;
use crate::error::check;
use crate::handle::Handle;

/// A child of fork must not take registered pages from their owner (a program's `system()`). Since Linux 5.12 none does; before
/// that libibverbs can keep them from the child, which then has no such memory. It refuses where another library has registered
/// memory already, and then nothing is different from before.
fn prepare_for_fork(library: &sys::Library) {
    // SAFETY: ibv_is_fork_initialized(3) asks for nothing.
    let unneeded =
        library.ibv_is_fork_initialized.is_some_and(|status| unsafe { status() } == sys::IBV_FORK_UNNEEDED);
    if !unneeded && let Some(prepare) = library.ibv_fork_init {
        // SAFETY: ibv_fork_init(3) asks for nothing.
        unsafe { prepare() };
    }
}

/// An open device (ibv_open_device(3)).
#[derive(Debug)]
pub struct Context {
    handle: Handle<sys::ibv_context>,
    library: &'static sys::Library,
    name: String,
}

impl Context {
    /// Opens the device of that name, one of [`crate::device_names`].
    pub fn open(name: &str) -> Result<Arc<Context>, VerbsError> {
        let devices = DeviceList::get()?;
        let device = devices.find(name)?;
        let library = devices.library();
        prepare_for_fork(library);
        // SAFETY: ibv_open_device(3): a device of a list that is not freed yet.
        let context = unsafe { (library.ibv_open_device)(device) };
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new("ibv_open_device", context, library.ibv_close_device)? };
        let context = Context { handle, library, name: name.to_owned() };
        set_nonblocking(context.async_fd())?;
        Ok(Arc::new(context))
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the device is and how much it can do (ibv_query_device(3)).
    pub fn attributes(&self) -> Result<Attributes, VerbsError> {
        // SAFETY: numbers only, for which zero is valid.
        let mut raw: sys::ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: ibv_query_device(3): an open device and room for the answer.
        check("ibv_query_device", unsafe { (self.library.ibv_query_device)(self.as_ptr(), &mut raw) })?;
        Ok(Attributes::from_raw(&raw))
    }

    /// The family of networks that the device is for.
    pub fn transport(&self) -> TransportKind {
        // SAFETY: an open context refers to its device, which stays until the context is closed (ibv_free_device_list in
        // ibv_get_device_list(3)).
        match unsafe { (*(*self.as_ptr()).device).transport_type } {
            sys::IBV_TRANSPORT_IB => TransportKind::InfiniBand,
            sys::IBV_TRANSPORT_IWARP => TransportKind::Iwarp,
            _ => TransportKind::Other,
        }
    }

    /// The descriptor that becomes readable when [`Context::async_event`] has something. Does not block.
    pub fn async_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: ibv_get_async_event(3): the context's, open for as long as the context; the borrow ends before that.
        unsafe { BorrowedFd::borrow_raw((*self.as_ptr()).async_fd) }
    }

    /// What the context was opened by, and what opens and closes all that belongs to it.
    pub(crate) fn library(&self) -> &'static sys::Library {
        self.library
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_context {
        self.handle.as_ptr()
    }
}

/// Makes reads of a descriptor return `EAGAIN` when there is nothing.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), VerbsError> {
    let set = |error| VerbsError::new("fcntl", error);
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).map_err(set)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map(drop).map_err(set)
}

/// A family of networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// InfiniBand, or RoCE on Ethernet.
    InfiniBand,
    /// iWARP: RDMA over TCP. Queue pairs are connected by rdma_cm(7) only.
    Iwarp,
    /// Another.
    Other,
}

/// What a device's atomic operations exclude (ibv_query_device(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomics {
    /// There are none.
    None,
    /// Each other on the same device, but not the CPU's.
    Hca,
    /// Each other and the CPU's.
    Global,
}

/// What a device is and how much it can do: the fields of the same names in ibv_query_device(3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Version of the firmware.
    pub firmware: String,
    /// The vendor's number.
    pub vendor: u32,
    /// The vendor's number of the part.
    pub part: u32,
    /// Physical ports, numbered from 1.
    pub ports: u8,
    /// Queue pairs.
    pub max_qp: u32,
    /// Outstanding requests of a work queue.
    pub max_qp_wr: u32,
    /// Parts of a request.
    pub max_sge: u32,
    /// Parts of a read.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Bytes of a memory region.
    pub max_mr_size: u64,
    /// Reads and atomics outstanding at a queue pair as their target.
    pub max_qp_rd_atom: u32,
    /// Reads and atomics outstanding at a queue pair as their initiator.
    pub max_qp_init_rd_atom: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Receives outstanding in a shared receive queue.
    pub max_srq_wr: u32,
    /// What atomic operations exclude.
    pub atomics: Atomics,
}

impl Attributes {
    fn from_raw(raw: &sys::ibv_device_attr) -> Attributes {
        let count = |number: c_int| u32::try_from(number).unwrap_or(0);
        Attributes {
            firmware: text(&raw.fw_ver),
            vendor: raw.vendor_id,
            part: raw.vendor_part_id,
            ports: raw.phys_port_cnt,
            max_qp: count(raw.max_qp),
            max_qp_wr: count(raw.max_qp_wr),
            max_sge: count(raw.max_sge),
            max_sge_rd: count(raw.max_sge_rd),
            max_cq: count(raw.max_cq),
            max_cqe: count(raw.max_cqe),
            max_mr: count(raw.max_mr),
            max_pd: count(raw.max_pd),
            max_mr_size: raw.max_mr_size,
            max_qp_rd_atom: count(raw.max_qp_rd_atom),
            max_qp_init_rd_atom: count(raw.max_qp_init_rd_atom),
            max_srq: count(raw.max_srq),
            max_srq_wr: count(raw.max_srq_wr),
            atomics: match raw.atomic_cap {
                sys::IBV_ATOMIC_HCA => Atomics::Hca,
                sys::IBV_ATOMIC_GLOB => Atomics::Global,
                _ => Atomics::None,
            },
        }
    }
}

/// The string in a fixed field, up to its zero byte or the field's end.
fn text(field: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().flat_map(|byte| byte.to_ne_bytes()).chain([0]).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
