//! Memory attached to a dynamic window: this rank's own regions, and what it knows of others' (MPI-4.1 §12.2.4).
//!
//! An origin asks for a region once, then keeps it. The target remembers who asked, and tells them when the region goes,
//! so no operation reads a table at the target and none can reach memory that was detached.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use transom_transport::{RegionKey, Remote, Span};

/// One attached region of this rank.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Where the program sees it.
    pub address: usize,
    /// What others access.
    pub memory: Span,
    /// Its keys, by transport.
    pub keys: Vec<(String, Vec<u8>)>,
    /// Ranks that have asked for it.
    pub known_to: Mutex<BTreeSet<usize>>,
}

impl Attached {
    /// Offset of `bytes` bytes at `address`, if they are inside.
    fn offset(&self, address: usize, bytes: usize) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        (offset <= self.memory.len() && bytes <= self.memory.len() - offset).then_some(offset)
    }
}

/// What the owner answers to whoever asks for a region.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RegionCard {
    pub address: usize,
    pub key: Vec<u8>,
}

/// A peer's region, as kept here.
#[derive(Debug)]
pub(crate) struct Known {
    pub address: usize,
    pub remote: Remote,
    /// The owner has taken it away.
    pub gone: AtomicBool,
    /// The region itself, where it is this rank's: whoever detaches it waits for the last of these.
    pub _own: Option<Arc<Attached>>,
}

/// Attached regions, by address.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    own: RwLock<BTreeMap<usize, Arc<Attached>>>,
    /// By rank of the job, then by address.
    known: RwLock<HashMap<usize, BTreeMap<usize, Arc<Known>>>>,
    /// Regions that peers have taken away: a card that was asked for before must not be kept after.
    forgotten: AtomicU64,
}

impl Regions {
    /// Attaches a region. The owner sees to it that it overlaps no other: it owns the memory of each.
    pub fn attach(&self, region: Attached) {
        self.own.write().insert(region.address, Arc::new(region));
    }

    /// Takes the region that starts at `address` away from this rank's table.
    pub fn detach(&self, address: usize) -> Option<Arc<Attached>> {
        self.own.write().remove(&address)
    }

    /// Takes all of this rank's regions away.
    pub fn detach_all(&self) -> Vec<Arc<Attached>> {
        std::mem::take(&mut *self.own.write()).into_values().collect()
    }

    /// This rank's region that holds `bytes` bytes at `address`, and their offset in it.
    pub fn find(&self, address: usize, bytes: usize) -> Option<(Arc<Attached>, usize)> {
        let own = self.own.read();
        let (_, region) = own.range(..=address).next_back()?;
        let offset = region.offset(address, bytes)?;
        Some((region.clone(), offset))
    }

    /// A peer's region that holds `bytes` bytes at `address`, if it is known here, and their offset in it.
    pub fn find_known(&self, rank: usize, address: usize, bytes: usize) -> Option<(Arc<Known>, usize)> {
        let known = self.known.read();
        let (_, region) = known.get(&rank)?.range(..=address).next_back()?;
        let offset = address - region.address;
        (offset <= region.remote.len && bytes <= region.remote.len - offset).then(|| (region.clone(), offset))
    }

    /// Regions forgotten so far: to be read before one is asked for.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Keeps a peer's region, unless one was forgotten since `forgotten`: then it has to be asked for again.
    pub fn learn(&self, rank: usize, region: Known, forgotten: u64) -> Option<Arc<Known>> {
        let mut known = self.known.write();
        if self.forgotten() != forgotten {
            return None;
        }
        let region = Arc::new(region);
        known.entry(rank).or_default().insert(region.address, region.clone());
        Some(region)
    }

    /// A peer takes its region at `address` away.
    pub fn forget(&self, rank: usize, address: usize) {
        let mut known = self.known.write();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        if let Some(region) = known.get_mut(&rank).and_then(|regions| regions.remove(&address)) {
            region.gone.store(true, Ordering::Release);
        }
    }
}

/// The key of a region for whoever is reached by `transport`.
pub(crate) fn key_for(keys: &[(String, Vec<u8>)], transport: &str) -> RegionKey {
    RegionKey(keys.iter().find(|(name, _)| name == transport).map(|(_, key)| key.clone()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(address: usize, len: usize) -> Attached {
        Attached {
            address,
            memory: Span::anonymous(len).unwrap(),
            keys: Vec::new(),
            known_to: Mutex::default(),
        }
    }

    #[test]
    fn regions_may_touch_and_accesses_do_not_cross() {
        let regions = Regions::default();
        for (address, len) in [(100, 10), (110, 5), (97, 3)] {
            regions.attach(region(address, len));
        }
        assert_eq!(regions.find(109, 1).map(|(r, offset)| (r.address, offset)), Some((100, 9)));
        assert!(regions.find(109, 2).is_none(), "an access must not cross from one region to the next");
        assert!(regions.find(96, 1).is_none() && regions.find(usize::MAX, 1).is_none());
        regions.detach(100).unwrap();
        assert!(regions.find(105, 1).is_none() && regions.detach(100).is_none());
    }

    #[test]
    fn a_card_that_crosses_a_detach_is_not_kept() {
        let regions = Regions::default();
        let known = || Known {
            address: 64,
            remote: Remote { peer: 3, len: 8, direct: None, base: 0, key: 0 },
            gone: AtomicBool::new(false),
            _own: None,
        };
        let before = regions.forgotten();
        regions.forget(3, 64);
        assert!(regions.learn(3, known(), before).is_none());
        let kept = regions.learn(3, known(), regions.forgotten()).unwrap();
        assert!(regions.find_known(3, 71, 1).is_some() && regions.find_known(3, 71, 2).is_none());
        regions.forget(3, 64);
        assert!(kept.gone.load(Ordering::Acquire) && regions.find_known(3, 64, 1).is_none());
    }
}
