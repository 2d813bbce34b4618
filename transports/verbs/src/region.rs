//! Registrations of memory that peers access.

use std::sync::{Arc, Weak};

use ibverbs::{Access, MemoryRegion};
use transom_transport::{Region, RegionKey, Span, TransportResult};
use zerocopy::IntoBytes;

use crate::port::Port;
use crate::setup::refused;
use crate::verbs::Shared;
use crate::wire::Key;

/// Ends the registration when dropped, before it lets the memory go.
#[derive(Debug)]
pub(crate) struct VerbsRegion {
    key: Key,
    /// The registration's place in the port; none for a region without bytes.
    registration: Option<usize>,
    shared: Weak<Shared>,
    /// Kept until the registration has ended.
    memory: Span,
}

impl VerbsRegion {
    pub fn new(shared: &Arc<Shared>, memory: &Span) -> TransportResult<Self> {
        let (base, len) = (memory.address() as u64, memory.len() as u64);
        let mut key = Key { base, len, key: 0 };
        let mut registration = None;
        let mut port = shared.port.lock();
        port.check_open()?;
        if !memory.is_empty() {
            let (place, remote) = port.expose(memory)?;
            key.key = u64::from(remote);
            registration = Some(place);
        }
        Ok(Self { key, registration, shared: Arc::downgrade(shared), memory: memory.clone() })
    }
}

impl Port {
    fn expose(&mut self, memory: &Span) -> TransportResult<(usize, u32)> {
        let start = memory.address() as *mut u8;
        let access = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE | self.atomic_access;
        // SAFETY: the span stays valid while the region holds it, and the region ends the registration before it lets go
        // of the span; spans give out no references to their bytes.
        let region = unsafe { MemoryRegion::register(&self.domain, start, memory.len(), access) };
        let region = Arc::new(region.map_err(|e| refused(memory.len(), &e))?);
        let key = region.remote_key();
        self.registrations.note(start as usize, memory.len(), true, &region);
        Ok((self.regions.insert(region), key))
    }
}

impl Region for VerbsRegion {
    fn key(&self) -> RegionKey {
        RegionKey(self.key.as_bytes().to_vec())
    }
}

impl Drop for VerbsRegion {
    fn drop(&mut self) {
        let (Some(registration), Some(shared)) = (self.registration, self.shared.upgrade()) else { return };
        // Nothing is there if the port was closed.
        let mut port = shared.port.lock();
        if let Some(region) = port.regions.try_remove(registration) {
            port.registrations.forget(self.memory.address(), &region);
        }
    }
}
