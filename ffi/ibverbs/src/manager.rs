//! Connections by rdma_cm(7): addresses are IP addresses, and devices may be iWARP, which connect in no other way.
//!
//! Queue pairs are made as always; the identifier ([`ConnectionId`]) is told their number. Nothing here blocks: what takes
//! time ends in an event.

use std::ffi::{CStr, c_int, c_void};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use ibverbs_sys as sys;
use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use crate::VerbsError;
use crate::context::set_nonblocking;
use crate::error::check;

/// Where events of connections arrive (rdma_create_event_channel(3)).
#[derive(Debug)]
pub struct EventChannel {
    library: &'static sys::RdmacmLibrary,
    channel: NonNull<sys::rdma_event_channel>,
}

// SAFETY: a descriptor; librdmacm's calls on it are single system calls (rdma_get_cm_event(3)).
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// Makes one, whose descriptor does not block.
    ///
    /// # Errors
    /// [`VerbsError::is_no_library`] without librdmacm; the kernel has no rdma_cm.
    pub fn new() -> Result<Arc<Self>, VerbsError> {
        const OPERATION: &str = "rdma_create_event_channel";
        let library =
            sys::RdmacmLibrary::open().map_err(|error| VerbsError::no_library(OPERATION, &error))?;
        // SAFETY: rdma_create_event_channel(3) takes nothing.
        let channel = unsafe { (library.rdma_create_event_channel)() };
        let channel = NonNull::new(channel).ok_or_else(|| VerbsError::last(OPERATION))?;
        let channel = Self { library, channel };
        set_nonblocking(channel.as_fd())?;
        Ok(Arc::new(channel))
    }

    /// Takes an event, if there is one.
    ///
    /// # Errors
    /// The channel cannot be read.
    pub fn next(self: &Arc<Self>) -> Result<Option<ConnectionEvent>, VerbsError> {
        let mut event = null_mut();
        // SAFETY: rdma_get_cm_event(3): a live channel and room for the answer.
        if unsafe { (self.library.rdma_get_cm_event)(self.channel.as_ptr(), &mut event) } != 0 {
            return match Errno::last() {
                Errno::EAGAIN | Errno::EINTR => Ok(None),
                error => Err(VerbsError::new("rdma_get_cm_event", error)),
            };
        }
        // SAFETY: rdma_get_cm_event(3): an event that is valid until it is acknowledged, below.
        let raw = unsafe { &*event };
        let (id, status) = (raw.id, raw.status);
        let kind = ConnectionEventKind::from_raw(raw.event);
        let mut data = Vec::new();
        if kind.has_parameters() && !raw.conn.private_data.is_null() {
            let len = usize::from(raw.conn.private_data_len);
            // SAFETY: rdma_get_cm_event(3): so many bytes of the event's.
            data = unsafe { std::slice::from_raw_parts(raw.conn.private_data.cast::<u8>(), len) }.to_vec();
        }
        let depths = match kind.has_parameters() {
            true => (raw.conn.responder_resources, raw.conn.initiator_depth),
            false => (0, 0),
        };
        // SAFETY: rdma_ack_cm_event(3): an event that was got, once; it is not looked at any more.
        unsafe { (self.library.rdma_ack_cm_event)(event) };
        let asking = (kind == ConnectionEventKind::Request)
            .then(|| NonNull::new(id))
            .flatten()
            .map(|id| ConnectionId { id, channel: Arc::clone(self) });
        Ok(Some(ConnectionEvent { id: id as usize, kind, status, data, depths, asking }))
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: rdma_create_event_channel(3): open for as long as the channel; the borrow ends before that.
        unsafe { BorrowedFd::borrow_raw((*self.channel.as_ptr()).fd) }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: live until now; identifiers hold the channel, so there is none left.
        unsafe { (self.library.rdma_destroy_event_channel)(self.channel.as_ptr()) }
    }
}

/// Something that happened to a connection (rdma_get_cm_event(3)).
#[derive(Debug)]
pub struct ConnectionEvent {
    /// To which: [`ConnectionId::key`].
    pub id: usize,
    /// What.
    pub kind: ConnectionEventKind,
    /// 0, a negative error number, or the network's reason.
    pub status: i32,
    /// What the peer said: maybe more bytes than it gave, then zeros.
    pub data: Vec<u8>,
    /// Reads and atomics that this side may be asked for, and may ask for, at a time, as the peer would have it.
    pub depths: (u8, u8),
    /// Of a request: what it can be accepted with. Dropped, it is refused.
    pub asking: Option<ConnectionId>,
}

/// What happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEventKind {
    /// [`ConnectionId::resolve_address`] has succeeded.
    AddressResolved,
    /// [`ConnectionId::resolve_route`] has succeeded.
    RouteResolved,
    /// A peer wants a connection.
    Request,
    /// The peer has accepted, and waits for [`ConnectionId::establish`].
    Response,
    /// There is a connection.
    Established,
    /// There is none, and will be none: refused, unreachable, or an error.
    Failed,
    /// It has ended.
    Disconnected,
    /// The device goes.
    DeviceRemoved,
    /// Another.
    Other,
}

impl ConnectionEventKind {
    fn from_raw(raw: c_int) -> Self {
        match raw {
            sys::RDMA_CM_EVENT_ADDR_RESOLVED => Self::AddressResolved,
            sys::RDMA_CM_EVENT_ROUTE_RESOLVED => Self::RouteResolved,
            sys::RDMA_CM_EVENT_CONNECT_REQUEST => Self::Request,
            sys::RDMA_CM_EVENT_CONNECT_RESPONSE => Self::Response,
            sys::RDMA_CM_EVENT_ESTABLISHED => Self::Established,
            sys::RDMA_CM_EVENT_ADDR_ERROR
            | sys::RDMA_CM_EVENT_ROUTE_ERROR
            | sys::RDMA_CM_EVENT_CONNECT_ERROR
            | sys::RDMA_CM_EVENT_UNREACHABLE
            | sys::RDMA_CM_EVENT_REJECTED => Self::Failed,
            sys::RDMA_CM_EVENT_DISCONNECTED => Self::Disconnected,
            sys::RDMA_CM_EVENT_DEVICE_REMOVAL => Self::DeviceRemoved,
            _ => Self::Other,
        }
    }

    /// Whether the peer's words come with it.
    fn has_parameters(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Established)
    }
}

/// What the sides of a connection tell each other.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'a> {
    /// This side's queue pair.
    pub number: u32,
    /// Whether it has a shared receive queue.
    pub shared: bool,
    /// Bytes for the peer: at most 56 with a request, 196 with an answer.
    pub data: &'a [u8],
    /// Reads and atomics that this side answers at a time.
    pub responder_depth: u8,
    /// Reads and atomics that this side asks for at a time.
    pub initiator_depth: u8,
    /// As [`crate::Sending::retries`].
    pub retries: u8,
    /// As [`crate::Sending::receiver_not_ready_retries`].
    pub receiver_not_ready_retries: u8,
}

impl Parameters<'_> {
    fn to_raw(self, operation: &'static str) -> Result<sys::rdma_conn_param, VerbsError> {
        let len = u8::try_from(self.data.len());
        let len = len.map_err(|_| VerbsError::refused(operation, "more private data than fits"))?;
        Ok(sys::rdma_conn_param {
            private_data: self.data.as_ptr().cast(),
            private_data_len: len,
            responder_resources: self.responder_depth,
            initiator_depth: self.initiator_depth,
            flow_control: 0,
            retry_count: self.retries,
            rnr_retry_count: self.receiver_not_ready_retries,
            srq: self.shared.into(),
            qp_num: self.number,
        })
    }
}

/// One side of a connection, or what listens for them (rdma_create_id(3)). Dropped, the connection ends.
#[derive(Debug)]
pub struct ConnectionId {
    id: NonNull<sys::rdma_cm_id>,
    channel: Arc<EventChannel>,
}

// SAFETY: librdmacm locks for itself (rdma_cm(7) lists no call that must not be made by several threads).
unsafe impl Send for ConnectionId {}
// SAFETY: as above.
unsafe impl Sync for ConnectionId {}

impl ConnectionId {
    /// Makes one for reliable connections.
    pub fn new(channel: &Arc<EventChannel>) -> Result<Self, VerbsError> {
        let mut id = null_mut();
        // SAFETY: rdma_create_id(3): a live channel and room for the answer.
        check("rdma_create_id", unsafe {
            (channel.library.rdma_create_id)(channel.channel.as_ptr(), &mut id, null_mut(), sys::RDMA_PS_TCP)
        })?;
        let id = NonNull::new(id).ok_or_else(|| VerbsError::last("rdma_create_id"))?;
        Ok(Self { id, channel: Arc::clone(channel) })
    }

    /// What events name it by.
    pub fn key(&self) -> usize {
        self.id.as_ptr() as usize
    }

    /// Binds it to an address of this host, and so to the device that has it, if one has (rdma_bind_addr(3)). With port 0
    /// it gets a free one.
    pub fn bind(&self, address: SocketAddr) -> Result<(), VerbsError> {
        let address = SockaddrStorage::from(address);
        // SAFETY: rdma_bind_addr(3): a live identifier, and an address that is copied.
        check("rdma_bind_addr", unsafe {
            (self.library().rdma_bind_addr)(self.as_ptr(), address.as_ptr().cast_mut())
        })
    }

    /// The port that it is bound to; 0 if it is not.
    pub fn port(&self) -> u16 {
        // SAFETY: a live identifier.
        u16::from_be(unsafe { (self.library().rdma_get_src_port)(self.as_ptr()) })
    }

    /// The name of the device that it is bound to, if it is to one.
    pub fn device(&self) -> Option<String> {
        // SAFETY: a live identifier, whose context is null or open (rdma_bind_addr(3)); that refers to its device.
        unsafe {
            let context = self.id.as_ref().verbs.as_ref()?;
            Some(CStr::from_ptr((*context.device).name.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// Listens for requests, of which so many may wait to be looked at (rdma_listen(3)).
    pub fn listen(&self, waiting: u16) -> Result<(), VerbsError> {
        // SAFETY: a live identifier.
        check("rdma_listen", unsafe { (self.library().rdma_listen)(self.as_ptr(), waiting.into()) })
    }

    /// Begins to look for the way from an address of this host to a peer's (rdma_resolve_addr(3)).
    pub fn resolve_address(
        &self,
        from: SocketAddr,
        to: SocketAddr,
        milliseconds: u16,
    ) -> Result<(), VerbsError> {
        let (from, to) = (SockaddrStorage::from(from), SockaddrStorage::from(to));
        let (from, to) = (from.as_ptr().cast_mut(), to.as_ptr().cast_mut());
        // SAFETY: rdma_resolve_addr(3): a live identifier, and addresses that are copied.
        check("rdma_resolve_addr", unsafe {
            (self.library().rdma_resolve_addr)(self.as_ptr(), from, to, milliseconds.into())
        })
    }

    /// Goes on after that (rdma_resolve_route(3)).
    pub fn resolve_route(&self, milliseconds: u16) -> Result<(), VerbsError> {
        // SAFETY: a live identifier.
        check("rdma_resolve_route", unsafe {
            (self.library().rdma_resolve_route)(self.as_ptr(), milliseconds.into())
        })
    }

    /// Asks the peer for a connection (rdma_connect(3)).
    pub fn connect(&self, parameters: &Parameters<'_>) -> Result<(), VerbsError> {
        let mut raw = parameters.to_raw("rdma_connect")?;
        // SAFETY: rdma_connect(3): a live identifier; the parameters and their bytes are copied.
        check("rdma_connect", unsafe { (self.library().rdma_connect)(self.as_ptr(), &mut raw) })
    }

    /// Confirms the peer's answer (rdma_establish(3)). Where [`ConnectionEventKind::Response`] does not come but
    /// [`ConnectionEventKind::Established`], as on iWARP, there is nothing to confirm.
    pub fn establish(&self) -> Result<(), VerbsError> {
        // SAFETY: a live identifier.
        check("rdma_establish", unsafe { (self.library().rdma_establish)(self.as_ptr()) })
    }

    /// Accepts a peer's request (rdma_accept(3)).
    pub fn accept(&self, parameters: &Parameters<'_>) -> Result<(), VerbsError> {
        let mut raw = parameters.to_raw("rdma_accept")?;
        // SAFETY: rdma_accept(3): a live identifier; the parameters and their bytes are copied.
        check("rdma_accept", unsafe { (self.library().rdma_accept)(self.as_ptr(), &mut raw) })
    }

    /// Refuses it (rdma_reject(3)).
    pub fn reject(&self) -> Result<(), VerbsError> {
        // SAFETY: rdma_reject(3): a live identifier, and no bytes.
        check("rdma_reject", unsafe {
            (self.library().rdma_reject)(self.as_ptr(), std::ptr::null::<c_void>(), 0)
        })
    }

    /// Ends the connection in order (rdma_disconnect(3)): the peer is told.
    pub fn disconnect(&self) -> Result<(), VerbsError> {
        // SAFETY: a live identifier.
        check("rdma_disconnect", unsafe { (self.library().rdma_disconnect)(self.as_ptr()) })
    }

    /// What a queue pair must be told to get to a state (rdma_init_qp_attr(3)).
    pub(crate) fn attributes(
        &self,
        attr: &mut sys::ibv_qp_attr,
    ) -> Result<sys::ibv_qp_attr_mask, VerbsError> {
        let mut mask = 0;
        // SAFETY: rdma_init_qp_attr(3): a live identifier, and room for both answers.
        let returned = unsafe { (self.library().rdma_init_qp_attr)(self.as_ptr(), attr, &mut mask) };
        check("rdma_init_qp_attr", returned)?;
        Ok(mask.cast_unsigned())
    }

    fn library(&self) -> &'static sys::RdmacmLibrary {
        self.channel.library
    }

    fn as_ptr(&self) -> *mut sys::rdma_cm_id {
        self.id.as_ptr()
    }
}

impl Drop for ConnectionId {
    fn drop(&mut self) {
        // SAFETY: live until now. Its events are acknowledged as soon as they are got, so this does not wait
        // (rdma_destroy_id(3)).
        let returned = unsafe { (self.library().rdma_destroy_id)(self.as_ptr()) };
        if let Err(error) = check("rdma_destroy_id", returned) {
            tracing::warn!(%error, "a connection was not destroyed");
        }
    }
}
