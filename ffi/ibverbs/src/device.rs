//! The devices of this machine.

use std::ffi::{CStr, c_int};

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::VerbsError;

const OPERATION: &str = "ibv_get_device_list";

/// Names of the devices, such as `mlx5_0`; never none.
///
/// # Errors
/// [`VerbsError::is_no_library`] without libibverbs, [`VerbsError::is_no_device`] without a device.
pub fn device_names() -> Result<Vec<String>, VerbsError> {
    Ok(DeviceList::get()?.names())
}

/// The devices, for as long as the list is held (ibv_get_device_list(3)).
#[derive(Debug)]
pub(crate) struct DeviceList {
    library: &'static sys::Library,
    first: *mut *mut sys::ibv_device,
    count: usize,
}

impl DeviceList {
    pub(crate) fn get() -> Result<DeviceList, VerbsError> {
        let library = sys::Library::open().map_err(|error| VerbsError::no_library(OPERATION, &error))?;
        let mut count: c_int = 0;
        Errno::clear();
        // SAFETY: ibv_get_device_list(3): room for the count.
        let first = unsafe { (library.ibv_get_device_list)(&mut count) };
        if first.is_null() {
            return Err(match Errno::last() {
                Errno::ENOSYS => {
                    VerbsError::no_device(OPERATION, "this kernel has no RDMA (no ib_uverbs module)")
                }
                error => VerbsError::new(OPERATION, error),
            });
        }
        let list = DeviceList { library, first, count: usize::try_from(count).unwrap_or(0) };
        if list.count == 0 {
            let why =
                "no RDMA device, or no driver for it in libibverbs; on Debian: apt install ibverbs-providers";
            return Err(VerbsError::no_device(OPERATION, why));
        }
        Ok(list)
    }

    /// What the list is from.
    pub(crate) fn library(&self) -> &'static sys::Library {
        self.library
    }

    /// The devices with their names; valid until the list is freed or, opened, until they are closed.
    fn iter(&self) -> impl Iterator<Item = (String, *mut sys::ibv_device)> + '_ {
        // SAFETY: ibv_get_device_list(3): an array of `count` pointers, until the list is freed.
        let devices = unsafe { std::slice::from_raw_parts(self.first, self.count) };
        devices.iter().map(|&device| {
            // SAFETY: ibv_get_device_name(3): a device of a list that is held.
            let name = unsafe { (self.library.ibv_get_device_name)(device) };
            // SAFETY: as above: null, or a string inside the device.
            let name =
                (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
            (name.unwrap_or_default(), device)
        })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.iter().map(|(name, _)| name).collect()
    }

    /// The device of that name.
    pub(crate) fn find(&self, name: &str) -> Result<*mut sys::ibv_device, VerbsError> {
        self.iter().find(|(found, _)| found == name).map(|(_, device)| device).ok_or_else(|| {
            let why = format!("no device {name:?}; there is {}", self.names().join(", "));
            VerbsError::no_device("ibv_open_device", why)
        })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: ibv_free_device_list(3): the list that ibv_get_device_list returned, once.
        unsafe { (self.library.ibv_free_device_list)(self.first) }
    }
}
