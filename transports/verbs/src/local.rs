//! Registrations of the caller's memory.
//!
//! One lives as long as an operation that uses it: the caller promises for so long that the memory stays. Operations at the
//! same time share it. Nothing is kept for later, so no registration can outlive the mapping that it was made of.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use ibverbs::{Access, MemoryRegion, ProtectionDomain};
use transom_transport::TransportResult;

use crate::setup::refused;

/// Memory of this process that the device may access.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// By address of the first byte.
    known: BTreeMap<usize, Known>,
}

#[derive(Debug)]
struct Known {
    len: usize,
    writable: bool,
    region: Weak<MemoryRegion>,
}

impl Registrations {
    /// A registration that covers so many bytes.
    ///
    /// # Safety
    /// The memory stays valid, for writes if it is to be written, while the result lives.
    pub unsafe fn cover(
        &mut self,
        domain: &Arc<ProtectionDomain>,
        start: *mut u8,
        len: usize,
        write: bool,
    ) -> TransportResult<Arc<MemoryRegion>> {
        if let Some(region) = self.find(start as usize, len, write) {
            return Ok(region);
        }
        let access = if write { Access::LOCAL_WRITE } else { Access::NONE };
        // SAFETY: the caller's promise.
        let region = unsafe { MemoryRegion::register(domain, start, len, access) };
        let region = Arc::new(region.map_err(|e| refused(len, &e))?);
        self.note(start as usize, len, write, &region);
        Ok(region)
    }

    /// Memory that is registered for longer: for peers.
    pub fn note(&mut self, start: usize, len: usize, writable: bool, region: &Arc<MemoryRegion>) {
        self.known.insert(start, Known { len, writable, region: Arc::downgrade(region) });
    }

    fn find(&mut self, start: usize, len: usize, write: bool) -> Option<Arc<MemoryRegion>> {
        loop {
            let (at, known) = self.known.range(..=start).next_back()?;
            let Some(region) = known.region.upgrade() else {
                let at = *at;
                self.known.remove(&at);
                continue;
            };
            let inside = start - at <= known.len && len <= known.len - (start - at);
            return (inside && (known.writable || !write)).then_some(region);
        }
    }
}
