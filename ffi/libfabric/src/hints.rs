//! What is asked of providers.

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

use libfabric_sys::{self as sys, Library, fi_info};

use crate::error::EINVAL;
use crate::{EndpointType, FabricError, Info, Progress, ResourceManagement, Threading};

/// What is asked of providers (fi_getinfo(3)). `None` and zero ask for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// Provider name, with its layers: `tcp;ofi_rxm`. A core name alone matches it below any layer; a name that begins
    /// with `^` excludes.
    pub provider: Option<String>,
    /// Fabric name.
    pub fabric: Option<String>,
    /// Domain name: a device or network interface.
    pub domain: Option<String>,
    /// Kind of endpoint.
    pub endpoint_type: Option<EndpointType>,
    /// What must be supported: [`crate::flags`]. Asking for less may be faster.
    pub caps: u64,
    /// The modes that the caller can live with: [`crate::flags::CONTEXT`] and others.
    pub mode: u64,
    /// The registration modes that the caller can live with: [`crate::flags::mr`].
    pub mr_mode: i32,
    /// Format of addresses, a number of fabric.h (`FI_SOCKADDR_IN` is 2).
    pub address_format: u32,
    /// This side's node: a host name or address, here or of an interface.
    pub source_node: Option<String>,
    /// This side's service: a port.
    pub source_service: Option<String>,
    /// Who moves data.
    pub data_progress: Option<Progress>,
    /// Who makes connections and the like.
    pub control_progress: Option<Progress>,
    /// What the caller will serialise.
    pub threading: Option<Threading>,
    /// Who keeps queues from overflowing.
    pub resource_management: Option<ResourceManagement>,
    /// Flags that the sending calls without flags imply.
    pub transmit_flags: u64,
    /// Flags that the receiving calls without flags imply.
    pub receive_flags: u64,
    /// Needed order of effects at the peer: `ORDER_…` of [`crate::flags`].
    pub message_order: u64,
    /// Operations that will be under way at once.
    pub transmit_size: usize,
    /// Receives that will be posted at once.
    pub receive_size: usize,
    /// Most bytes that will be injected.
    pub inject_size: usize,
}

impl Default for Hints {
    /// A reliable endpoint without connections that several threads may use; all else as the provider likes.
    fn default() -> Self {
        Hints {
            provider: None,
            fabric: None,
            domain: None,
            endpoint_type: Some(EndpointType::Rdm),
            caps: 0,
            mode: 0,
            mr_mode: 0,
            address_format: sys::FI_FORMAT_UNSPEC,
            source_node: None,
            source_service: None,
            data_progress: None,
            control_progress: None,
            threading: Some(Threading::Safe),
            resource_management: None,
            transmit_flags: 0,
            receive_flags: 0,
            message_order: 0,
            transmit_size: 0,
            receive_size: 0,
            inject_size: 0,
        }
    }
}

impl Hints {
    /// The offers that fit, best first as the library ranks them; none is an empty list.
    pub fn query(&self, library: &'static Library) -> Result<Vec<Info>, FabricError> {
        let hints = self.to_list(library)?;
        let node = c_string(self.source_node.as_deref())?;
        let service = c_string(self.source_service.as_deref())?;
        let flags = if node.is_some() || service.is_some() { sys::FI_SOURCE } else { 0 };
        let mut found = List { head: null_mut(), library };
        // SAFETY: fi_getinfo(3): strings are null or end with a zero byte, the hints were made by fi_dupinfo, and the
        // result is a list for fi_freeinfo, which `List` calls.
        let returned = unsafe {
            (library.fi_getinfo)(
                sys::API_VERSION,
                pointer(&node),
                pointer(&service),
                flags,
                hints.head,
                &mut found.head,
            )
        };
        if returned != 0 {
            let error = FabricError::new(library, "fi_getinfo", returned as isize);
            return if error.is_no_data() { Ok(Vec::new()) } else { Err(error) };
        }
        let mut infos = Vec::new();
        let mut entry: *const fi_info = found.head;
        while !entry.is_null() {
            // SAFETY: a valid entry of the list, which lives until `found` is dropped.
            unsafe {
                infos.push(Info::copy(library, entry)?);
                entry = (*entry).next;
            }
        }
        Ok(infos)
    }

    /// These hints as libfabric wants them.
    fn to_list(&self, library: &'static Library) -> Result<List, FabricError> {
        // SAFETY: fi_getinfo(3): null makes an empty entry (fi_allocinfo).
        let list = List { head: unsafe { (library.fi_dupinfo)(null()) }, library };
        let no_memory = || FabricError::new(library, "fi_allocinfo", -(sys::FI_ENOMEM as isize));
        // SAFETY: an empty entry is made with all its attribute structures, zeroed (fi_allocinfo in fi_getinfo(3)); null
        // is caught all the same. Nothing else refers to it, and its strings are freed with free(3).
        unsafe {
            let info = list.head.as_mut().ok_or_else(no_memory)?;
            info.caps = self.caps;
            info.mode = self.mode;
            info.addr_format = self.address_format;

            let fabric = info.fabric_attr.as_mut().ok_or_else(no_memory)?;
            fabric.prov_name = heap_string(library, self.provider.as_deref())?;
            fabric.name = heap_string(library, self.fabric.as_deref())?;

            let domain = info.domain_attr.as_mut().ok_or_else(no_memory)?;
            domain.name = heap_string(library, self.domain.as_deref())?;
            domain.mr_mode = self.mr_mode;
            domain.data_progress = self.data_progress.map_or(sys::FI_PROGRESS_UNSPEC, Progress::to_raw);
            domain.control_progress = self.control_progress.map_or(sys::FI_PROGRESS_UNSPEC, Progress::to_raw);
            domain.threading = self.threading.map_or(sys::FI_THREAD_UNSPEC, Threading::to_raw);
            domain.resource_mgmt =
                self.resource_management.map_or(sys::FI_RM_UNSPEC, ResourceManagement::to_raw);

            let endpoint = info.ep_attr.as_mut().ok_or_else(no_memory)?;
            endpoint.type_ = self.endpoint_type.map_or(sys::FI_EP_UNSPEC, EndpointType::to_raw);

            let transmit = info.tx_attr.as_mut().ok_or_else(no_memory)?;
            transmit.op_flags = self.transmit_flags;
            transmit.msg_order = self.message_order;
            transmit.size = self.transmit_size;
            transmit.inject_size = self.inject_size;

            let receive = info.rx_attr.as_mut().ok_or_else(no_memory)?;
            receive.op_flags = self.receive_flags;
            receive.msg_order = self.message_order;
            receive.size = self.receive_size;
        }
        Ok(list)
    }
}

/// A list that is freed when dropped.
struct List {
    head: *mut fi_info,
    library: &'static Library,
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.head.is_null() {
            // SAFETY: made by fi_getinfo or fi_dupinfo, freed once.
            unsafe { (self.library.fi_freeinfo)(self.head) }
        }
    }
}

fn c_string(text: Option<&str>) -> Result<Option<CString>, FabricError> {
    text.map(CString::new)
        .transpose()
        .map_err(|_| FabricError::refused("fi_getinfo", EINVAL, "a name holds a zero byte"))
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr())
}

/// A string that libfabric may free; null for none.
fn heap_string(library: &Library, text: Option<&str>) -> Result<*mut c_char, FabricError> {
    let Some(text) = c_string(text)? else { return Ok(null_mut()) };
    // SAFETY: strdup(3) with a valid string; the result is from malloc, which fi_freeinfo expects.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    if copy.cast::<c_void>().is_null() {
        return Err(FabricError::new(library, "strdup", -(sys::FI_ENOMEM as isize)));
    }
    Ok(copy)
}
