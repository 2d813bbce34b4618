//! The endpoint: where operations are posted.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use libc::iovec;
use libfabric_sys::{self as sys, fi_ioc, fi_msg, fi_msg_atomic, fi_msg_rma, fi_rma_ioc, fi_rma_iov, fid_ep};

use crate::error::{EAGAIN, EINVAL, ETOOSMALL, check};
use crate::handle::Handle;
use crate::{
    Address, AddressVector, AtomicCall, AtomicKind, AtomicLimits, AtomicOp, CompletionQueue, Datatype,
    Descriptor, Domain, FabricError, Info,
};

/// Most parts that one call here takes. A provider may take fewer: [`Info::transmit_parts`].
pub const MAX_PARTS: usize = 8;

/// Whether an operation was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an operation that was not taken must be posted again"]
pub enum Posted {
    /// It was.
    Done,
    /// It was not: a queue is full, or a connection is being made. Read the completion queue and post again.
    Again,
}

/// A buffer of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// First byte. Only read from by what sends and writes.
    pub address: *mut u8,
    /// Bytes. Not looked at by atomic calls, which have a count.
    pub len: usize,
    /// Proof of registration, if the provider asks for it.
    pub descriptor: Descriptor,
}

impl Local {
    /// A buffer that is not registered.
    pub fn new(address: *mut u8, len: usize) -> Local {
        Local { address, len, descriptor: Descriptor::NONE }
    }

    /// A buffer that is only read from, and not registered.
    pub fn read_only(address: *const u8, len: usize) -> Local {
        Local::new(address.cast_mut(), len)
    }
}

/// A place in a peer's registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// Offset into the region, or virtual address if [`crate::flags::mr::VIRT_ADDR`] is among the modes.
    pub address: u64,
    /// The region's key.
    pub key: u64,
}

/// How to open an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointOptions {
    /// Operations complete silently unless posted with `COMPLETION`. Calls without flags then never report.
    pub selective_completion: bool,
    /// A multi-receive buffer is given back when fewer bytes than this are left.
    pub min_multi_recv: Option<usize>,
}

/// An enabled endpoint (fi_endpoint(3)).
///
/// # Posting
/// The calls that post operations are unsafe, and their callers promise:
///
/// - every local buffer is valid for what the operation does with it, and stays so, unmoved and (if it is written to)
///   not accessed otherwise, until the operation's completion was read from the queue or the endpoint was dropped. What
///   is injected is copied before the call returns;
/// - a buffer is registered and its descriptor given, if the provider's `mr_mode` has `LOCAL`;
/// - addresses came from the endpoint's address vector and were not removed;
/// - if the provider's mode has `CONTEXT` (or `CONTEXT2`), the context is the address of four (eight) pointers' worth of
///   memory that is the provider's until completion. Otherwise it is any number.
///
/// A call with flags ignores the default flags of the hints (`transmit_flags`); a call without uses them. With selective
/// completion an operation reports if it has `COMPLETION` among its flags; without, always (but for injected ones).
#[derive(Debug)]
pub struct Endpoint {
    // Dropped in this order: the endpoint before what it is bound to.
    handle: Handle<fid_ep>,
    addresses: Arc<AddressVector>,
    transmit_queue: Arc<CompletionQueue>,
    receive_queue: Arc<CompletionQueue>,
    domain: Arc<Domain>,
}

impl Endpoint {
    /// Opens an endpoint, binds it to its address vector and queues (which may be one), and enables it.
    pub fn open(
        domain: &Arc<Domain>,
        info: &Info,
        addresses: &Arc<AddressVector>,
        transmit_queue: &Arc<CompletionQueue>,
        receive_queue: &Arc<CompletionQueue>,
        options: &EndpointOptions,
    ) -> Result<Endpoint, FabricError> {
        let library = domain.library();
        let parents = [addresses.domain(), transmit_queue.domain(), receive_queue.domain()];
        if parents.iter().any(|parent| !Arc::ptr_eq(parent, domain)) {
            let why = "the address vector or a queue belongs to another domain";
            return Err(FabricError::refused("fi_ep_bind", EINVAL, why));
        }
        domain.fabric().check_offer("fi_endpoint", info)?;
        let mut ep = null_mut();
        // SAFETY: fi_endpoint(3): an open domain, and an info that outlives the call.
        let returned = unsafe { sys::fi_endpoint(domain.as_ptr(), info.as_ptr(), &mut ep, null_mut()) };
        check(library, "fi_endpoint", returned)?;
        // SAFETY: just opened, and closed by nothing else.
        let handle = unsafe { Handle::new(library, "endpoint", ep)? };
        let endpoint = Endpoint {
            handle,
            addresses: Arc::clone(addresses),
            transmit_queue: Arc::clone(transmit_queue),
            receive_queue: Arc::clone(receive_queue),
            domain: Arc::clone(domain),
        };

        let selective = if options.selective_completion { sys::FI_SELECTIVE_COMPLETION } else { 0 };
        endpoint.bind(addresses.fid(), 0)?;
        if Arc::ptr_eq(transmit_queue, receive_queue) {
            endpoint.bind(transmit_queue.fid(), sys::FI_TRANSMIT | sys::FI_RECV | selective)?;
        } else {
            endpoint.bind(transmit_queue.fid(), sys::FI_TRANSMIT | selective)?;
            endpoint.bind(receive_queue.fid(), sys::FI_RECV)?;
        }
        if let Some(bytes) = options.min_multi_recv {
            // SAFETY: fi_endpoint(3): this option is a size_t, and no other thread knows the endpoint yet.
            let returned = unsafe {
                sys::fi_setopt(
                    endpoint.as_ptr(),
                    sys::FI_OPT_ENDPOINT as c_int,
                    sys::FI_OPT_MIN_MULTI_RECV as c_int,
                    (&raw const bytes).cast::<c_void>(),
                    size_of::<usize>(),
                )
            };
            check(library, "fi_setopt(FI_OPT_MIN_MULTI_RECV)", returned)?;
        }
        // SAFETY: fi_endpoint(3): open and bound, and no other thread knows it yet.
        let returned = unsafe { sys::fi_enable(endpoint.as_ptr()) };
        check(library, "fi_enable", returned)?;
        Ok(endpoint)
    }

    fn bind(&self, object: *mut sys::fid, flags: u64) -> Result<(), FabricError> {
        // SAFETY: fi_endpoint(3): both are open, of one domain, and the endpoint is not enabled yet.
        let returned = unsafe { sys::fi_ep_bind(self.as_ptr(), object, flags) };
        check(self.handle.library(), "fi_ep_bind", returned).map(drop)
    }

    /// This endpoint's address, for the address vectors of its peers.
    pub fn name(&self) -> Result<Vec<u8>, FabricError> {
        let mut name = vec![0_u8; 128];
        loop {
            let mut len = name.len();
            // SAFETY: fi_cm(3): an open endpoint, and room for as many bytes as are said.
            let returned =
                unsafe { sys::fi_getname(self.as_ptr(), name.as_mut_ptr().cast::<c_void>(), &mut len) };
            match check(self.handle.library(), "fi_getname", returned) {
                Ok(_) => {
                    name.truncate(len);
                    return Ok(name);
                }
                Err(error) if error.code == ETOOSMALL && len > name.len() => name.resize(len, 0),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a message.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn send(&self, message: Local, to: Address, context: usize) -> Result<Posted, FabricError> {
        // SAFETY: fi_msg(3): an open endpoint; the rest is the caller's promise.
        let returned = unsafe {
            sys::fi_send(
                self.as_ptr(),
                message.address.cast::<c_void>(),
                message.len,
                message.descriptor.to_raw(),
                to.to_raw(),
                context as *mut c_void,
            )
        };
        self.posted("fi_send", returned)
    }

    /// Sends a message of several parts, with flags.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    pub unsafe fn send_parts(
        &self,
        message: &[Local],
        to: Address,
        context: usize,
        flags: u64,
    ) -> Result<Posted, FabricError> {
        let mut parts = Parts::new("fi_sendmsg", message)?;
        let message = parts.message(to, context);
        // SAFETY: fi_msg(3): an open endpoint, and a description that need not outlive the call; the rest is the
        // caller's promise.
        let returned = unsafe { sys::fi_sendmsg(self.as_ptr(), &message, flags) };
        self.posted("fi_sendmsg", returned)
    }

    /// Sends a message of at most [`Info::inject_size`] bytes, which are copied. No completion follows.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn inject(&self, message: &[u8], to: Address) -> Result<Posted, FabricError> {
        // SAFETY: fi_msg(3): an open endpoint, and bytes that need not outlive the call; the address is the caller's
        // promise.
        let returned = unsafe {
            sys::fi_inject(self.as_ptr(), message.as_ptr().cast::<c_void>(), message.len(), to.to_raw())
        };
        self.posted("fi_inject", returned)
    }

    /// Posts a buffer for one message from anyone.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn recv(&self, buffer: Local, context: usize) -> Result<Posted, FabricError> {
        // SAFETY: fi_msg(3): an open endpoint; the rest is the caller's promise.
        let returned = unsafe {
            sys::fi_recv(
                self.as_ptr(),
                buffer.address.cast::<c_void>(),
                buffer.len,
                buffer.descriptor.to_raw(),
                Address::ANY.to_raw(),
                context as *mut c_void,
            )
        };
        self.posted("fi_recv", returned)
    }

    /// Posts a buffer that messages fill one after the other, until fewer bytes are left than
    /// [`EndpointOptions::min_multi_recv`]; the completion that has `MULTI_RECV` gives it back.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`]; the operation completes with the completion that has `MULTI_RECV`.
    pub unsafe fn recv_multi(&self, buffer: Local, context: usize) -> Result<Posted, FabricError> {
        let mut parts = Parts::new("fi_recvmsg", &[buffer])?;
        let message = parts.message(Address::ANY, context);
        // SAFETY: as in `send_parts`.
        let returned =
            unsafe { sys::fi_recvmsg(self.as_ptr(), &message, sys::FI_MULTI_RECV | sys::FI_COMPLETION) };
        self.posted("fi_recvmsg", returned)
    }

    /// Reads a peer's memory.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn read(
        &self,
        into: Local,
        from: Address,
        remote: Remote,
        context: usize,
    ) -> Result<Posted, FabricError> {
        // SAFETY: fi_rma(3): an open endpoint; the rest is the caller's promise.
        let returned = unsafe {
            sys::fi_read(
                self.as_ptr(),
                into.address.cast::<c_void>(),
                into.len,
                into.descriptor.to_raw(),
                from.to_raw(),
                remote.address,
                remote.key,
                context as *mut c_void,
            )
        };
        self.posted("fi_read", returned)
    }

    /// Reads a peer's memory into several buffers, with flags.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    pub unsafe fn read_parts(
        &self,
        into: &[Local],
        from: Address,
        remote: Remote,
        context: usize,
        flags: u64,
    ) -> Result<Posted, FabricError> {
        let mut parts = Parts::new("fi_readmsg", into)?;
        let target = parts.target(remote);
        let message = parts.rma(from, &target, context);
        // SAFETY: as in `send_parts`, by fi_rma(3).
        let returned = unsafe { sys::fi_readmsg(self.as_ptr(), &message, flags) };
        self.posted("fi_readmsg", returned)
    }

    /// Writes to a peer's memory.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn write(
        &self,
        from: Local,
        to: Address,
        remote: Remote,
        context: usize,
    ) -> Result<Posted, FabricError> {
        // SAFETY: fi_rma(3): an open endpoint; the rest is the caller's promise.
        let returned = unsafe {
            sys::fi_write(
                self.as_ptr(),
                from.address.cast::<c_void>(),
                from.len,
                from.descriptor.to_raw(),
                to.to_raw(),
                remote.address,
                remote.key,
                context as *mut c_void,
            )
        };
        self.posted("fi_write", returned)
    }

    /// Writes several buffers, end to end, to a peer's memory, with flags.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    pub unsafe fn write_parts(
        &self,
        from: &[Local],
        to: Address,
        remote: Remote,
        context: usize,
        flags: u64,
    ) -> Result<Posted, FabricError> {
        let mut parts = Parts::new("fi_writemsg", from)?;
        let target = parts.target(remote);
        let message = parts.rma(to, &target, context);
        // SAFETY: as in `send_parts`, by fi_rma(3).
        let returned = unsafe { sys::fi_writemsg(self.as_ptr(), &message, flags) };
        self.posted("fi_writemsg", returned)
    }

    /// Writes at most [`Info::inject_size`] bytes, which are copied, to a peer's memory. No completion follows.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`].
    #[inline]
    pub unsafe fn inject_write(
        &self,
        from: &[u8],
        to: Address,
        remote: Remote,
    ) -> Result<Posted, FabricError> {
        // SAFETY: fi_rma(3): an open endpoint, and bytes that need not outlive the call; the rest is the caller's
        // promise.
        let returned = unsafe {
            sys::fi_inject_write(
                self.as_ptr(),
                from.as_ptr().cast::<c_void>(),
                from.len(),
                to.to_raw(),
                remote.address,
                remote.key,
            )
        };
        self.posted("fi_inject_write", returned)
    }

    /// Changes a peer's memory atomically.
    ///
    /// # Safety
    /// See *Posting* at [`Endpoint`]; buffers hold `call.count` elements of `call.datatype`.
    pub unsafe fn atomic(
        &self,
        call: &AtomicCall,
        operand: Local,
        context: usize,
    ) -> Result<Posted, FabricError> {
        let mut operand = Elements::new(call, operand);
        let target = Elements::target(call);
        let message = operand.message(call, &target, context);
        // SAFETY: as in `send_parts`, by fi_atomic(3).
        let returned = unsafe { sys::fi_atomicmsg(self.as_ptr(), &message, call.flags) };
        self.posted("fi_atomicmsg", returned)
    }

    /// Changes a peer's memory atomically and stores what it was.
    ///
    /// # Safety
    /// As for [`Endpoint::atomic`].
    pub unsafe fn fetch_atomic(
        &self,
        call: &AtomicCall,
        operand: Local,
        result: Local,
        context: usize,
    ) -> Result<Posted, FabricError> {
        let mut operand = Elements::new(call, operand);
        let mut result = Elements::new(call, result);
        let target = Elements::target(call);
        let message = operand.message(call, &target, context);
        // SAFETY: as in `send_parts`, by fi_atomic(3).
        let returned = unsafe {
            sys::fi_fetch_atomicmsg(
                self.as_ptr(),
                &message,
                &mut result.part,
                &mut result.descriptor,
                1,
                call.flags,
            )
        };
        self.posted("fi_fetch_atomicmsg", returned)
    }

    /// Changes a peer's memory atomically, depending on a comparand, and stores what it was.
    ///
    /// # Safety
    /// As for [`Endpoint::atomic`].
    pub unsafe fn compare_atomic(
        &self,
        call: &AtomicCall,
        operand: Local,
        comparand: Local,
        result: Local,
        context: usize,
    ) -> Result<Posted, FabricError> {
        let mut operand = Elements::new(call, operand);
        let mut comparand = Elements::new(call, comparand);
        let mut result = Elements::new(call, result);
        let target = Elements::target(call);
        let message = operand.message(call, &target, context);
        // SAFETY: as in `send_parts`, by fi_atomic(3).
        let returned = unsafe {
            sys::fi_compare_atomicmsg(
                self.as_ptr(),
                &message,
                &comparand.part,
                &mut comparand.descriptor,
                1,
                &mut result.part,
                &mut result.descriptor,
                1,
                call.flags,
            )
        };
        self.posted("fi_compare_atomicmsg", returned)
    }

    /// What the provider can do of an atomic operation (`fi_atomicvalid` and its kin in fi_atomic(3)); `None` if
    /// nothing.
    pub fn query_atomic(&self, datatype: Datatype, op: AtomicOp, kind: AtomicKind) -> Option<AtomicLimits> {
        let (mut count, size) = (0, datatype.size());
        let (ep, datatype, op) = (self.as_ptr(), datatype.to_raw(), op.to_raw());
        // SAFETY: fi_atomic(3): an open endpoint and room for the answer.
        let returned = unsafe {
            match kind {
                AtomicKind::Plain => sys::fi_atomicvalid(ep, datatype, op, &mut count),
                AtomicKind::Fetch => sys::fi_fetch_atomicvalid(ep, datatype, op, &mut count),
                AtomicKind::Compare => sys::fi_compare_atomicvalid(ep, datatype, op, &mut count),
            }
        };
        (returned == 0 && count > 0).then_some(AtomicLimits { count, size })
    }

    /// The address vector it is bound to.
    pub fn addresses(&self) -> &Arc<AddressVector> {
        &self.addresses
    }

    /// The queue where sends, reads, writes and atomics end.
    pub fn transmit_queue(&self) -> &Arc<CompletionQueue> {
        &self.transmit_queue
    }

    /// The queue where receives end.
    pub fn receive_queue(&self) -> &Arc<CompletionQueue> {
        &self.receive_queue
    }

    /// The domain that this endpoint belongs to.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn as_ptr(&self) -> *mut fid_ep {
        self.handle.as_ptr()
    }

    pub(crate) fn fid(&self) -> *mut sys::fid {
        self.handle.fid()
    }

    #[inline]
    fn posted(&self, operation: &'static str, returned: isize) -> Result<Posted, FabricError> {
        match returned {
            0 => Ok(Posted::Done),
            again if again == -(EAGAIN as isize) => Ok(Posted::Again),
            error => Err(FabricError::new(self.handle.library(), operation, error)),
        }
    }
}

/// Local buffers as libfabric wants them: addresses and descriptors apart.
struct Parts {
    buffers: [iovec; MAX_PARTS],
    descriptors: [*mut c_void; MAX_PARTS],
    count: usize,
    len: usize,
}

impl Parts {
    fn new(operation: &'static str, locals: &[Local]) -> Result<Parts, FabricError> {
        if locals.len() > MAX_PARTS {
            let why = format!("{} parts; at most {MAX_PARTS} are taken", locals.len());
            return Err(FabricError::refused(operation, EINVAL, why));
        }
        let mut parts = Parts {
            buffers: [iovec { iov_base: null_mut(), iov_len: 0 }; MAX_PARTS],
            descriptors: [null_mut(); MAX_PARTS],
            count: locals.len(),
            len: 0,
        };
        for ((local, buffer), descriptor) in locals.iter().zip(&mut parts.buffers).zip(&mut parts.descriptors)
        {
            *buffer = iovec { iov_base: local.address.cast::<c_void>(), iov_len: local.len };
            *descriptor = local.descriptor.to_raw();
            parts.len += local.len;
        }
        Ok(parts)
    }

    /// The peer's memory that these parts make up.
    fn target(&self, remote: Remote) -> fi_rma_iov {
        fi_rma_iov { addr: remote.address, len: self.len, key: remote.key }
    }

    /// A description of a message, which points into `self`.
    fn message(&mut self, peer: Address, context: usize) -> fi_msg {
        fi_msg {
            msg_iov: self.buffers.as_ptr(),
            desc: self.descriptors.as_mut_ptr(),
            iov_count: self.count,
            addr: peer.to_raw(),
            context: context as *mut c_void,
            data: 0,
        }
    }

    /// A description of a transfer, which points into `self` and to `target`.
    fn rma(&mut self, peer: Address, target: &fi_rma_iov, context: usize) -> fi_msg_rma {
        fi_msg_rma {
            msg_iov: self.buffers.as_ptr(),
            desc: self.descriptors.as_mut_ptr(),
            iov_count: self.count,
            addr: peer.to_raw(),
            rma_iov: target,
            rma_iov_count: 1,
            context: context as *mut c_void,
            data: 0,
        }
    }
}

/// A buffer of an atomic call as libfabric wants it.
struct Elements {
    part: fi_ioc,
    descriptor: *mut c_void,
}

impl Elements {
    fn new(call: &AtomicCall, local: Local) -> Elements {
        Elements {
            part: fi_ioc { addr: local.address.cast::<c_void>(), count: call.count },
            descriptor: local.descriptor.to_raw(),
        }
    }

    fn target(call: &AtomicCall) -> fi_rma_ioc {
        fi_rma_ioc { addr: call.remote.address, count: call.count, key: call.remote.key }
    }

    /// A description of the call, which points into `self` and to `target`.
    fn message(&mut self, call: &AtomicCall, target: &fi_rma_ioc, context: usize) -> fi_msg_atomic {
        fi_msg_atomic {
            msg_iov: &self.part,
            desc: &mut self.descriptor,
            iov_count: 1,
            addr: call.to.to_raw(),
            rma_iov: target,
            rma_iov_count: 1,
            datatype: call.datatype.to_raw(),
            op: call.op.to_raw(),
            context: context as *mut c_void,
            data: 0,
        }
    }
}
