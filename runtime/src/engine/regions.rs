//! Memory attached to a dynamic window: this rank's own regions, and its cache of others' (MPI-4.1 §12.2.4).
//!
//! An origin asks for a region once, and caches the answer. The target keeps the set of ranks that have asked, and notifies
//! them when the region is detached, so no operation reads a table at the target and none accesses memory that was
//! detached. Where the program's language cannot promise that nobody does, its memory is *left*: what peers still ask for is served by
//! the owner's agent, as long as it is there and until they can know better.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use transom_transport::{RegionKey, Remote, Span};

use super::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, RwLock};
use crate::memory::{Left, Lingering};

/// Of so many regions that were detached it is remembered, for messages to those who still access them.
const DETACHED: usize = 64;

/// A region that was detached.
#[derive(Debug)]
struct Gone {
    range: Range<usize>,
    left: State,
}

/// What is left of it.
#[derive(Debug)]
enum State {
    Nothing,
    /// Peers are being told; then it will be left.
    Leaving(Left),
    Left(Left),
}

impl State {
    fn memory(&self) -> Option<Left> {
        match self {
            Self::Nothing => None,
            Self::Leaving(left) | Self::Left(left) => Some(*left),
        }
    }
}

/// One attached region of this rank.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Where the program sees it.
    pub address: usize,
    /// What others access.
    pub memory: Span,
    /// Its keys, by transport.
    pub keys: Vec<(String, Vec<u8>)>,
    /// Ranks that cache it.
    pub known_to: Mutex<BTreeSet<usize>>,
}

impl Attached {
    /// Offset of `bytes` bytes at `address`, if they are inside.
    fn offset(&self, address: usize, bytes: usize) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        (offset <= self.memory.len() && bytes <= self.memory.len() - offset).then_some(offset)
    }
}

/// The owner's answer to a rank that asks for a region.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RegionInfo {
    Attached {
        address: usize,
        key: Vec<u8>,
    },
    /// There was one, of so many bytes.
    Detached {
        address: usize,
        bytes: usize,
    },
    /// There was one, whose memory is there still: the owner's agent accesses it.
    Left {
        address: usize,
        bytes: usize,
    },
    /// One is being detached: ask again.
    Leaving,
}

/// A peer's region, cached here.
#[derive(Debug)]
pub(crate) struct CachedRegion {
    pub address: usize,
    pub remote: Remote,
    /// It was detached before it was asked for: only the owner's agent reaches it.
    pub left: bool,
    /// The owner has detached it.
    pub gone: AtomicBool,
    /// The region itself, where it is this rank's: `detach` waits for the last of these.
    pub _own: Option<Arc<Attached>>,
}

/// Attached regions, by address.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Whether peers may map them.
    shared: bool,
    own: RwLock<BTreeMap<usize, Arc<Attached>>>,
    /// Where this rank's regions were that it has detached last.
    detached: Mutex<VecDeque<Gone>>,
    /// By rank of the job, then by address.
    known: RwLock<HashMap<usize, BTreeMap<usize, Arc<CachedRegion>>>>,
    /// Regions that peers have detached: an answer that was asked for before must not be cached after.
    forgotten: AtomicU64,
}

impl Regions {
    /// No regions yet; whether peers may map those to come.
    pub fn new(shared: bool) -> Self {
        Self { shared, ..Self::default() }
    }

    /// Whether peers may map them.
    pub fn are_shared(&self) -> bool {
        self.shared
    }

    /// Attaches a region. The owner sees to it that it overlaps no other: it owns the memory of each.
    pub fn attach(&self, region: Attached) {
        let (start, end) = (region.address, region.address + region.memory.len());
        self.detached.lock().retain(|gone| gone.range.end <= start || end <= gone.range.start);
        self.own.write().insert(region.address, Arc::new(region));
    }

    /// Removes the region that starts at `address` from this rank's table.
    /// Where its memory is to be left, that is when all peers have been told ([`Regions::leave`]).
    pub fn detach(&self, address: usize, lingering: Option<Lingering>) -> Option<Arc<Attached>> {
        // Who asks finds the region in one of the two tables.
        let mut own = self.own.write();
        let mut detached = self.detached.lock();
        let region = own.remove(&address)?;
        let len = region.memory.len();
        let left = lingering.map_or(State::Nothing, |lingering| State::Leaving(lingering.of(address, len)));
        detached.truncate(DETACHED - 1);
        detached.push_front(Gone { range: address..address + len, left });
        Some(region)
    }

    /// The region at `address` is detached by now.
    pub fn leave(&self, address: usize) {
        for gone in self.detached.lock().iter_mut().filter(|gone| gone.range.start == address) {
            gone.left = gone.left.memory().map_or(State::Nothing, State::Left);
        }
    }

    /// All peers know by now what has been detached.
    pub fn leave_nothing(&self) {
        self.detached.lock().iter_mut().for_each(|gone| gone.left = State::Nothing);
    }

    /// Calls `access` with a copy of memory that has been detached and is there still; what has changed is written back.
    pub fn with_left<R>(
        &self,
        address: usize,
        bytes: usize,
        access: impl FnOnce(&Span, usize) -> R,
    ) -> Option<R> {
        let end = address.checked_add(bytes)?;
        // Held meanwhile, so that what is read is not changed by another access before it is written.
        let detached = self.detached.lock();
        let gone = detached.iter().find(|gone| gone.range.start <= address && end <= gone.range.end)?;
        gone.left.memory()?.with(address, bytes, access)
    }

    /// The answer about memory that is attached no more; none if it was not.
    pub fn say_detached(&self, address: usize, bytes: usize) -> Option<RegionInfo> {
        let end = address.checked_add(bytes)?;
        let detached = self.detached.lock();
        let gone = detached.iter().find(|gone| gone.range.start <= address && end <= gone.range.end)?;
        let (start, len) = (gone.range.start, gone.range.len());
        Some(match &gone.left {
            State::Leaving(_) => RegionInfo::Leaving,
            State::Left(left) if left.is_there(address, bytes) => {
                RegionInfo::Left { address: start, bytes: len }
            }
            State::Left(_) | State::Nothing => RegionInfo::Detached { address: start, bytes: len },
        })
    }

    /// The region that has been detached and held `bytes` bytes at `address`.
    pub fn find_detached(&self, address: usize, bytes: usize) -> Option<Range<usize>> {
        let end = address.checked_add(bytes)?;
        let detached = self.detached.lock();
        let gone = detached.iter().find(|gone| gone.range.start <= address && end <= gone.range.end)?;
        Some(gone.range.clone())
    }

    /// Takes the set of peers that cache a region: they must be notified that it has been detached.
    pub fn known_to(region: &Attached) -> BTreeSet<usize> {
        std::mem::take(&mut *region.known_to.lock())
    }

    /// Removes all of this rank's regions.
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

    /// [`Regions::find`] for a peer, which is notified from now on when the region is detached.
    pub fn find_for(&self, peer: usize, address: usize, bytes: usize) -> Option<Arc<Attached>> {
        let (region, _) = self.find(address, bytes)?;
        region.known_to.lock().insert(peer);
        // A detach from now on finds the peer among those to be notified. (One before waits until `region` is dropped here:
        // nothing else can be attached at its address yet.)
        self.find(address, bytes).map(|_| region)
    }

    /// A peer's region that holds `bytes` bytes at `address`, if it is known here, and their offset in it.
    pub fn find_known(
        &self,
        rank: usize,
        address: usize,
        bytes: usize,
    ) -> Option<(Arc<CachedRegion>, usize)> {
        let known = self.known.read();
        let (_, region) = known.get(&rank)?.range(..=address).next_back()?;
        let offset = address - region.address;
        (offset <= region.remote.len && bytes <= region.remote.len - offset).then(|| (region.clone(), offset))
    }

    /// Regions forgotten so far: to be read before one is asked for.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Caches a peer's region, unless one was forgotten since `forgotten`: then it has to be asked for again.
    pub fn learn(&self, rank: usize, region: CachedRegion, forgotten: u64) -> Option<Arc<CachedRegion>> {
        let mut known = self.known.write();
        if self.forgotten() != forgotten {
            return None;
        }
        let region = Arc::new(region);
        known.entry(rank).or_default().insert(region.address, region.clone());
        Some(region)
    }

    /// A peer detaches its region at `address`.
    pub fn forget(&self, rank: usize, address: usize) {
        let mut known = self.known.write();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        if let Some(region) = known.get_mut(&rank).and_then(|regions| regions.remove(&address)) {
            region.gone.store(true, Ordering::Release);
        }
    }
}

/// The key of a region for peers on `transport`.
pub(crate) fn key_for(keys: &[(String, Vec<u8>)], transport: &str) -> RegionKey {
    RegionKey(keys.iter().find(|(name, _)| name == transport).map(|(_, key)| key.clone()).unwrap_or_default())
}
