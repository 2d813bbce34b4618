//! Registrations of memory that peers access.

use std::sync::Weak;

use transom_transport::{Region, RegionKey, Span};
use zerocopy::IntoBytes;

use crate::ofi::Shared;
use crate::wire::Key;

/// Ends the registration when dropped, before it lets the memory go.
#[derive(Debug)]
pub(crate) struct OfiRegion {
    pub key: Key,
    /// The registration's place in the port; none for a region without bytes.
    pub registration: Option<usize>,
    pub shared: Weak<Shared>,
    /// Kept until the registration has ended.
    pub _memory: Span,
}

impl Region for OfiRegion {
    fn key(&self) -> RegionKey {
        RegionKey(self.key.as_bytes().to_vec())
    }
}

impl Drop for OfiRegion {
    fn drop(&mut self) {
        let (Some(registration), Some(shared)) = (self.registration, self.shared.upgrade()) else { return };
        // Dropped under the lock. Nothing is there if the port was closed.
        let mut port = shared.port.lock();
        drop(port.regions.try_remove(registration));
    }
}
