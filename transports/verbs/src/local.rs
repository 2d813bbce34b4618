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
#[derive(Debug)]
pub(crate) struct Registrations {
    /// What memory must allow that the device writes.
    sink: Access,
    /// By address of the first byte.
    known: BTreeMap<usize, Known>,
    /// At this number of entries those whose registration has ended go.
    swept_at: usize,
}

/// So many ended registrations are not worth looking for.
const FEW: usize = 64;

#[derive(Debug)]
struct Known {
    len: usize,
    writable: bool,
    region: Weak<MemoryRegion>,
}

impl Registrations {
    pub fn new(sink: Access) -> Self {
        Self { sink, known: BTreeMap::new(), swept_at: 0 }
    }

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
        let access = if write { self.sink } else { Access::NONE };
        // SAFETY: the caller's promise.
        let region = unsafe { MemoryRegion::register(domain, start, len, access) };
        let region = Arc::new(region.map_err(|e| refused(len, &e))?);
        self.note(start as usize, len, write, &region);
        Ok(region)
    }

    /// Memory that is registered for longer: for peers.
    pub fn note(&mut self, start: usize, len: usize, writable: bool, region: &Arc<MemoryRegion>) {
        if self.known.len() >= self.swept_at {
            self.known.retain(|_, known| known.region.strong_count() > 0);
            self.swept_at = 2 * self.known.len() + FEW;
        }
        self.known.insert(start, Known { len, writable, region: Arc::downgrade(region) });
    }

    /// The owner of memory takes it away: an operation that still uses a part of it must not lend the rest to others.
    pub fn forget(&mut self, start: usize, region: &Arc<MemoryRegion>) {
        let is_it = |known: &Known| std::ptr::eq(known.region.as_ptr(), Arc::as_ptr(region));
        if self.known.get(&start).is_some_and(is_it) {
            self.known.remove(&start);
        }
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
