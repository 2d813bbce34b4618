//! Memory that peers access, by keys that they cannot guess.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Weak};

use transom_transport::{Region, RegionKey, Span, TransportError, TransportResult};
use zerocopy::IntoBytes;

use crate::tcp::Shared;
use crate::wire::Key;

/// Keys are random numbers already.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// All regions of a rank.
#[derive(Debug, Default)]
pub(crate) struct Regions(HashMap<u64, Arc<Span>, BuildHasherDefault<AsItIs>>);

impl Regions {
    /// Exposes memory: its key.
    pub fn insert(&mut self, memory: &Span) -> TransportResult<u64> {
        loop {
            let key = getrandom::u64().map_err(|e| TransportError::System {
                operation: "getrandom",
                reason: format!("no random number for a region's key: {e}"),
            })?;
            if let std::collections::hash_map::Entry::Vacant(place) = self.0.entry(key) {
                place.insert(Arc::new(memory.clone()));
                return Ok(key);
            }
        }
    }

    /// A region of which the range is.
    #[inline]
    pub fn find(&self, key: u64, offset: u64, len: usize) -> Option<(&Arc<Span>, usize)> {
        let region = self.0.get(&key)?;
        let offset = usize::try_from(offset).ok()?;
        (offset <= region.len() && len <= region.len() - offset).then_some((region, offset))
    }

    pub fn remove(&mut self, key: u64) -> Option<Arc<Span>> {
        self.0.remove(&key)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Ends the exposure when dropped.
#[derive(Debug)]
pub(crate) struct TcpRegion {
    pub key: Key,
    pub shared: Weak<Shared>,
}

impl Region for TcpRegion {
    fn key(&self) -> RegionKey {
        RegionKey(self.key.as_bytes().to_vec())
    }
}

impl Drop for TcpRegion {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.port.lock().end_region(self.key.key.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_and_only_inside() {
        let mut regions = Regions::default();
        let memory = Span::anonymous(100).unwrap();
        let key = regions.insert(&memory).unwrap();
        assert!(regions.find(key, 90, 10).is_some() && regions.find(key, 100, 0).is_some());
        for (offset, len) in [(91, 10), (101, 0), (u64::MAX, 8), (0, usize::MAX)] {
            assert!(regions.find(key, offset, len).is_none(), "{len} at {offset}");
        }
        assert!(regions.find(key ^ 1, 0, 1).is_none());
        assert!(regions.remove(key).is_some() && regions.find(key, 0, 1).is_none());
    }
}
