//! The symmetric heap: one large, sparse range of memory per rank, registered once, of which allocated windows take blocks
//! at the same offset on all their ranks. So a window needs no file, registration, mapping and key of its own (MPI-4.1
//! §12.2.2).

mod block;
mod capacity;
mod free_list;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use transom_transport::{Region, RegionKey, Remote, Span, TransportError, TransportResult, limits};

use crate::engine::{Routes, key_for};
pub(crate) use block::Block;
pub(crate) use capacity::capacity;
pub(crate) use free_list::FreeList;

/// Granularity of blocks: a page, wherever the program runs. Ranks must agree on it.
pub(crate) const GRANULARITY: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 1 << 16 };

/// Where every rank would like its heap: far from where Linux puts programs, libraries, stacks, and what is mapped.
const ADDRESS: usize = 0x2000_0000_0000;

/// What is mapped of a peer's heap at first. When windows lie behind that, twice as much.
const MAPPED_BYTES: usize = 16 << 20;

/// What peers must know of a rank's heap.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeapInfo {
    address: usize,
    len: usize,
    /// By name of transport.
    keys: Vec<(String, Vec<u8>)>,
}

/// This rank's heap, and what it knows of others'.
#[derive(Debug)]
pub(crate) struct Heap {
    rank: usize,
    /// Bytes of address space that it takes if the system permits that, 0 if there is to be none.
    capacity: usize,
    /// Made with the first window that is allocated.
    own: OnceLock<Option<OwnHeap>>,
    free_list: Mutex<FreeList>,
    /// By rank in the job.
    peers: Mutex<HashMap<usize, Peer>>,
}

#[derive(Debug)]
struct OwnHeap {
    info: HeapInfo,
    _regions: Vec<Box<dyn Region>>,
    memory: Span,
}

#[derive(Debug)]
struct Peer {
    address: usize,
    len: usize,
    key: RegionKey,
    /// Its beginning, as far as windows here have reached, and the system lets this rank map it.
    remote: Option<Remote>,
}

impl Heap {
    /// The heap of a rank of the job, of `capacity` bytes.
    pub fn new(rank: usize, capacity: usize) -> Self {
        Self {
            rank,
            capacity,
            own: OnceLock::new(),
            free_list: Mutex::new(FreeList::new(0)),
            peers: Mutex::default(),
        }
    }

    /// Makes the heap if this is the first call. Its size; 0 where there is none, so that every window has memory and
    /// registrations of its own.
    pub fn open(&self, routes: &Routes) -> usize {
        let make = || {
            let free =
                |routes: &Routes| routes.transports().iter().all(|t| t.capabilities().registration_is_free);
            let made = (self.capacity > 0 && free(routes)).then(|| {
                limits::as_much(self.capacity, capacity::MIN_BYTES.min(self.capacity), |bytes| {
                    OwnHeap::new(routes, bytes)
                })
            })?;
            let own =
                made.inspect_err(|error| tracing::warn!(%error, "windows are allocated one by one")).ok()?;
            *self.free_list.lock() = FreeList::new(own.memory.len());
            Some(own)
        };
        self.own.get_or_init(make).as_ref().map_or(0, |own| own.memory.len())
    }

    /// What peers must know.
    pub fn info(&self) -> Option<HeapInfo> {
        self.own().map(|own| own.info.clone())
    }

    fn own(&self) -> Option<&OwnHeap> {
        self.own.get().and_then(Option::as_ref)
    }

    /// The high-water mark: end of the last block in use.
    pub fn high_water(&self) -> usize {
        self.free_list.lock().high_water()
    }

    /// Allocates `len` zeroed bytes, a multiple of [`GRANULARITY`], at `start` or by first fit.
    pub fn allocate(self: &Arc<Self>, len: usize, start: Option<usize>) -> Option<Block> {
        self.own()?;
        let mut free_list = self.free_list.lock();
        let start = match start {
            _ if len == 0 => 0,
            Some(start) => start,
            None => free_list.first_fit(len)?,
        };
        (len == 0 || free_list.reserve(start, len)).then(|| Block::new(self.clone(), start, len))
    }

    /// Stores what a peer has told of its heap, if that was not known.
    pub fn learn(&self, routes: &Routes, peer: usize, info: HeapInfo) {
        self.peers.lock().entry(peer).or_insert_with(|| Peer {
            address: info.address,
            len: info.len,
            key: key_for(&info.keys, routes.to(peer).name()),
            remote: None,
        });
    }

    /// Where a peer's heap is in its own process, if that is known.
    pub fn address_of(&self, peer: usize) -> Option<usize> {
        self.peers.lock().get(&peer).map(|peer| peer.address)
    }

    /// Whether the heaps of these peers have the same address as this rank's.
    pub fn same_address(&self, mut peers: impl Iterator<Item = usize>) -> bool {
        let Some(own) = self.own() else { return false };
        let known = self.peers.lock();
        peers.all(|peer| known.get(&peer).is_some_and(|known| known.address == own.info.address))
    }

    /// Makes `bytes` bytes at `start` of a peer's heap accessible here.
    pub fn attach(
        &self,
        routes: &Routes,
        peer: usize,
        start: usize,
        bytes: usize,
    ) -> TransportResult<Remote> {
        let unknown = || TransportError::Peer { peer, reason: "its heap is not known".into() };
        let mut peers = self.peers.lock();
        let known = peers.get_mut(&peer).ok_or_else(unknown)?;
        let end = start.saturating_add(bytes);
        if known.remote.as_ref().is_none_or(|remote| remote.len < end)
            && let Some(more) = self.attach_beginning(routes, peer, known, end)?
        {
            // Windows keep what they have of the mapping before.
            known.remote = Some(more);
        }
        match &known.remote {
            Some(remote) if start <= remote.len && bytes <= remote.len - start => remote.part(start, bytes),
            _ => routes.to(peer).attach_part(peer, &known.key, start, bytes),
        }
    }

    /// The beginning of a peer's heap, `least` bytes and room for more, or as much as the system lets this rank map; none if it refuses
    /// `least`.
    fn attach_beginning(
        &self,
        routes: &Routes,
        peer: usize,
        known: &Peer,
        least: usize,
    ) -> TransportResult<Option<Remote>> {
        match self.own() {
            // Not mapped a second time.
            Some(own) if peer == self.rank && own.memory.file().is_some() => {
                let memory = own.memory.clone();
                Ok(Some(Remote { peer, len: memory.len(), direct: Some(memory), base: 0, key: 0 }))
            }
            // Windows lie where all their ranks have a heap: behind the end of this rank's, nobody's is accessed from here.
            own => {
                let most = own.map_or(0, |own| own.memory.len());
                let most = most.min(least.checked_next_power_of_two().unwrap_or(least).max(MAPPED_BYTES));
                let map = |bytes| routes.to(peer).attach_part(peer, &known.key, 0, bytes);
                match limits::as_much(known.len.min(most), least, map) {
                    Err(TransportError::NoMemory { .. }) => Ok(None),
                    attached => attached.map(Some),
                }
            }
        }
    }
}

impl OwnHeap {
    fn new(routes: &Routes, bytes: usize) -> TransportResult<Self> {
        let reserve = || {
            for transport in routes.transports() {
                if let Some(memory) = transport.reserve(bytes, ADDRESS)? {
                    return Ok(memory);
                }
            }
            Span::reserve(None, bytes, ADDRESS)
        };
        let memory: Span = reserve()?;
        // Where pages cannot be given back, windows that come and go would fill the memory.
        memory.part(0, GRANULARITY)?.discard()?;
        let (regions, keys) = routes.register(&memory)?;
        let info = HeapInfo { address: memory.address(), len: bytes, keys };
        Ok(Self { info, _regions: regions, memory })
    }
}
