//! One offer of a provider: what it can do, and what it asks.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;

use libfabric_sys::{self as sys, Library, fi_info};

use crate::FabricError;

/// Kind of endpoint (fi_endpoint(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointType {
    /// Reliable, no connections.
    Rdm,
    /// Reliable, connected.
    Msg,
    /// Unreliable datagrams.
    Datagram,
    /// Any other.
    Other,
}

/// Who drives the protocol (fi_domain(3)). A claim, which some providers make untruly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Hardware, kernel or a thread of the provider.
    Auto,
    /// Whoever reads the completion queue.
    Manual,
}

/// What the caller must serialise (fi_domain(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// Nothing.
    Safe,
    /// Calls on one object.
    Fid,
    /// Calls on one endpoint.
    Endpoint,
    /// Calls on one completion queue or counter and what is bound to it.
    Completion,
    /// Calls on one domain and all that belongs to it.
    Domain,
}

/// Who keeps queues from overflowing (fi_domain(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceManagement {
    /// The provider: a full queue is an answer.
    Enabled,
    /// The caller: a full queue is an accident.
    Disabled,
}

impl EndpointType {
    pub(crate) fn to_raw(self) -> sys::fi_ep_type {
        match self {
            EndpointType::Rdm => sys::FI_EP_RDM,
            EndpointType::Msg => sys::FI_EP_MSG,
            EndpointType::Datagram => sys::FI_EP_DGRAM,
            EndpointType::Other => sys::FI_EP_UNSPEC,
        }
    }
}

impl Progress {
    pub(crate) fn to_raw(self) -> sys::fi_progress {
        match self {
            Progress::Auto => sys::FI_PROGRESS_AUTO,
            Progress::Manual => sys::FI_PROGRESS_MANUAL,
        }
    }

    /// What is not known to be automatic is manual.
    fn from_raw(raw: sys::fi_progress) -> Progress {
        if raw == sys::FI_PROGRESS_AUTO { Progress::Auto } else { Progress::Manual }
    }
}

impl Threading {
    pub(crate) fn to_raw(self) -> sys::fi_threading {
        match self {
            Threading::Safe => sys::FI_THREAD_SAFE,
            Threading::Fid => sys::FI_THREAD_FID,
            Threading::Endpoint => sys::FI_THREAD_ENDPOINT,
            Threading::Completion => sys::FI_THREAD_COMPLETION,
            Threading::Domain => sys::FI_THREAD_DOMAIN,
        }
    }

    /// What is not known is the level that asks most of the caller.
    fn from_raw(raw: sys::fi_threading) -> Threading {
        match raw {
            sys::FI_THREAD_SAFE => Threading::Safe,
            sys::FI_THREAD_FID => Threading::Fid,
            sys::FI_THREAD_ENDPOINT => Threading::Endpoint,
            sys::FI_THREAD_COMPLETION => Threading::Completion,
            _ => Threading::Domain,
        }
    }
}

impl ResourceManagement {
    pub(crate) fn to_raw(self) -> sys::fi_resource_mgmt {
        match self {
            ResourceManagement::Enabled => sys::FI_RM_ENABLED,
            ResourceManagement::Disabled => sys::FI_RM_DISABLED,
        }
    }
}

/// One offer (fi_getinfo(3)), from [`crate::Hints::query`]. Owned and never changed.
pub struct Info {
    info: NonNull<fi_info>,
    library: &'static Library,
}

// SAFETY: plain heap memory that belongs to this value (fi_dupinfo copies all but the opened objects it may name, which
// are not touched through it), and nothing writes to it after it was made.
unsafe impl Send for Info {}
// SAFETY: as above.
unsafe impl Sync for Info {}

/// A member of one of the structures that hang on `fi_info`, or the default where the structure is absent.
macro_rules! member {
    ($self:ident, $table:ident.$field:ident, $absent:expr) => {
        // SAFETY: the info is owned and its attribute pointers are null or valid for as long (fi_getinfo(3)).
        unsafe {
            match $self.raw().$table.as_ref() {
                Some(table) => table.$field,
                None => $absent,
            }
        }
    };
}

impl Info {
    /// Copies one entry of a list.
    ///
    /// # Safety
    /// `entry` is a valid entry of a list from `fi_getinfo`.
    pub(crate) unsafe fn copy(library: &'static Library, entry: *const fi_info) -> Result<Info, FabricError> {
        // SAFETY: fi_getinfo(3): duplicates a single entry and all that it references; the caller vouches for it.
        let info = unsafe { (library.fi_dupinfo)(entry) };
        match NonNull::new(info) {
            Some(info) => Ok(Info { info, library }),
            None => Err(FabricError::new(library, "fi_dupinfo", -(sys::FI_ENOMEM as isize))),
        }
    }

    /// A second copy.
    pub fn duplicate(&self) -> Result<Info, FabricError> {
        // SAFETY: the entry is owned by this value.
        unsafe { Info::copy(self.library, self.info.as_ptr()) }
    }

    /// The library that the offer came from.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// For libfabric's calls, which take it without `const` and do not change it but for counting references.
    pub(crate) fn as_ptr(&self) -> *mut fi_info {
        self.info.as_ptr()
    }

    fn raw(&self) -> &fi_info {
        // SAFETY: valid until dropped, and not written to.
        unsafe { self.info.as_ref() }
    }

    /// Name of the provider, with its layers: `tcp;ofi_rxm`.
    pub fn provider(&self) -> String {
        string(member!(self, fabric_attr.prov_name, std::ptr::null_mut()))
    }

    /// The provider's own version, as `fi_version(major, minor)`.
    pub fn provider_version(&self) -> u32 {
        member!(self, fabric_attr.prov_version, 0)
    }

    /// Name of the fabric: endpoints on one fabric can reach each other.
    pub fn fabric_name(&self) -> String {
        string(member!(self, fabric_attr.name, std::ptr::null_mut()))
    }

    /// Name of the domain: a device or network interface.
    pub fn domain_name(&self) -> String {
        string(member!(self, domain_attr.name, std::ptr::null_mut()))
    }

    /// What the interface can do: [`crate::flags`].
    pub fn caps(&self) -> u64 {
        self.raw().caps
    }

    /// What the provider asks of its user: [`crate::flags::CONTEXT`] and others.
    pub fn mode(&self) -> u64 {
        self.raw().mode
    }

    /// Kind of endpoint.
    pub fn endpoint_type(&self) -> EndpointType {
        match member!(self, ep_attr.type_, sys::FI_EP_UNSPEC) {
            sys::FI_EP_RDM => EndpointType::Rdm,
            sys::FI_EP_MSG => EndpointType::Msg,
            sys::FI_EP_DGRAM => EndpointType::Datagram,
            _ => EndpointType::Other,
        }
    }

    /// Format of addresses, a number of fabric.h (`FI_SOCKADDR_IN` is 2).
    pub fn address_format(&self) -> u32 {
        self.raw().addr_format
    }

    /// This side's address as bytes; empty if there is none.
    pub fn source_address_bytes(&self) -> &[u8] {
        let raw = self.raw();
        if raw.src_addr.is_null() {
            return &[];
        }
        // SAFETY: fi_getinfo(3): src_addr holds src_addrlen bytes, and the info owns them.
        unsafe { std::slice::from_raw_parts(raw.src_addr.cast(), raw.src_addrlen) }
    }

    /// This side's address, if it is one of IPv4 or IPv6.
    pub fn source_address(&self) -> Option<SocketAddr> {
        socket_address(self.source_address_bytes())
    }

    /// Most bytes of one message or transfer.
    pub fn max_message_size(&self) -> usize {
        member!(self, ep_attr.max_msg_size, 0)
    }

    /// Up to which size a read after a write to the same place stays in order.
    pub fn max_order_read_after_write(&self) -> usize {
        member!(self, ep_attr.max_order_raw_size, 0)
    }

    /// Up to which size a write after a read of the same place stays in order.
    pub fn max_order_write_after_read(&self) -> usize {
        member!(self, ep_attr.max_order_war_size, 0)
    }

    /// Up to which size a write after a write to the same place stays in order.
    pub fn max_order_write_after_write(&self) -> usize {
        member!(self, ep_attr.max_order_waw_size, 0)
    }

    /// Most bytes of an injected operation.
    pub fn inject_size(&self) -> usize {
        member!(self, tx_attr.inject_size, 0)
    }

    /// Operations that can be under way at once.
    pub fn transmit_size(&self) -> usize {
        member!(self, tx_attr.size, 0)
    }

    /// Receives that can be posted at once.
    pub fn receive_size(&self) -> usize {
        member!(self, rx_attr.size, 0)
    }

    /// Most local parts of one send, read or write.
    pub fn transmit_parts(&self) -> usize {
        member!(self, tx_attr.iov_limit, 0)
    }

    /// Most remote parts of one read or write.
    pub fn remote_parts(&self) -> usize {
        member!(self, tx_attr.rma_iov_limit, 0)
    }

    /// Flags that the calls without flags imply.
    pub fn transmit_flags(&self) -> u64 {
        member!(self, tx_attr.op_flags, 0)
    }

    /// Order in which operations take effect at the peer: `ORDER_…` of [`crate::flags`].
    pub fn message_order(&self) -> u64 {
        member!(self, tx_attr.msg_order, 0)
    }

    /// Order in which completions are reported.
    pub fn completion_order(&self) -> u64 {
        member!(self, tx_attr.comp_order, 0)
    }

    /// What registration asks of its user: [`crate::flags::mr`].
    pub fn mr_mode(&self) -> i32 {
        member!(self, domain_attr.mr_mode, 0)
    }

    /// Bytes of a key: a requested key must fit.
    pub fn mr_key_size(&self) -> usize {
        member!(self, domain_attr.mr_key_size, 0)
    }

    /// Bytes of the data that a write or send can carry into the peer's completion queue.
    pub fn cq_data_size(&self) -> usize {
        member!(self, domain_attr.cq_data_size, 0)
    }

    /// Who moves data.
    pub fn data_progress(&self) -> Progress {
        Progress::from_raw(member!(self, domain_attr.data_progress, sys::FI_PROGRESS_UNSPEC))
    }

    /// Who makes connections and the like.
    pub fn control_progress(&self) -> Progress {
        Progress::from_raw(member!(self, domain_attr.control_progress, sys::FI_PROGRESS_UNSPEC))
    }

    /// What the caller must serialise.
    pub fn threading(&self) -> Threading {
        Threading::from_raw(member!(self, domain_attr.threading, sys::FI_THREAD_UNSPEC))
    }

    /// Who keeps queues from overflowing.
    pub fn resource_management(&self) -> ResourceManagement {
        match member!(self, domain_attr.resource_mgmt, sys::FI_RM_UNSPEC) {
            sys::FI_RM_ENABLED => ResourceManagement::Enabled,
            _ => ResourceManagement::Disabled,
        }
    }

    /// The kind of address vector the provider prefers.
    pub(crate) fn av_type(&self) -> sys::fi_av_type {
        member!(self, domain_attr.av_type, sys::FI_AV_UNSPEC)
    }

    /// Where the fabric's attributes are; null if there are none.
    pub(crate) fn fabric_attr(&self) -> *mut sys::fi_fabric_attr {
        self.raw().fabric_attr
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: from fi_dupinfo, freed once.
        unsafe { (self.library.fi_freeinfo)(self.info.as_ptr()) }
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info")
            .field("provider", &self.provider())
            .field("fabric", &self.fabric_name())
            .field("domain", &self.domain_name())
            .field("source", &self.source_address())
            .field("caps", &format_args!("{:#x}", self.caps()))
            .field("mr_mode", &format_args!("{:#x}", self.mr_mode()))
            .field("data_progress", &self.data_progress())
            .finish_non_exhaustive()
    }
}

/// A copy of a string that an info holds; empty for null.
fn string(text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the strings of an info end with a zero byte (fi_getinfo(3)) and live as long as it does; the callers hold it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Reads a `sockaddr_in` or `sockaddr_in6`.
pub(crate) fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address: IpAddr = match i32::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
        libc::AF_INET6 => <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::socket_address;

    #[test]
    fn socket_addresses_are_read_from_their_bytes() {
        let mut bytes = [0_u8; 28];
        bytes[0..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&80_u16.to_be_bytes());
        bytes[4..8].copy_from_slice(&[127, 0, 0, 1]);
        assert_eq!(socket_address(&bytes[..16]), Some("127.0.0.1:80".parse().unwrap()));
        assert_eq!(socket_address(&bytes[..7]), None);

        bytes[0..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[8..24].fill(0);
        bytes[23] = 1;
        assert_eq!(socket_address(&bytes), Some("[::1]:80".parse().unwrap()));
        assert_eq!(socket_address(&[]), None);
    }
}
