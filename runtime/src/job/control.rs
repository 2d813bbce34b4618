//! Control words: each rank has one block of memory, seen by all ranks of its node, with a slot for each window.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use transom_transport::{Region, RegionKey, Remote, Sections, Span, Stripes, TransportResult, Updates};

use crate::engine::{CONTROL_SLOT, LockWords, Routes, UPDATES_WORD};
use crate::{Class, Error, Result};

/// Windows that a rank can have at once. Untouched slots cost address space only.
const SLOTS: usize = 1 << 16;
/// Bytes of a control block.
pub(crate) const CONTROL_BYTES: usize = SECTIONS + Sections::BYTES;
/// Where the locks of wide elements start, behind the slots; then those of many elements at once; then who is in the middle of an
/// update.
const LOCKS: usize = SLOTS * CONTROL_SLOT;
const GRANULES: usize = LOCKS + Stripes::BYTES;
const SECTIONS: usize = GRANULES + Stripes::BYTES;

#[derive(Debug)]
pub(crate) struct Control {
    memory: Span,
    _region: Option<Box<dyn Region>>,
    /// What each peer published, where it shares memory.
    keys: Vec<Option<RegionKey>>,
    peers: Box<[OnceLock<Remote>]>,
    slots: Mutex<Slots>,
    /// Of this rank's threads.
    pub sections: Arc<Sections>,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<u16>,
    /// Times that each slot was given out: part of a window's number, so that a late message finds no later window.
    generations: Vec<u16>,
}

impl Control {
    pub fn new(
        memory: Span,
        region: Option<Box<dyn Region>>,
        keys: Vec<Option<RegionKey>>,
    ) -> TransportResult<Self> {
        let peers = keys.iter().map(|_| OnceLock::new()).collect();
        let sections = Sections::new(&memory.part(SECTIONS, Sections::BYTES)?)?;
        Ok(Self {
            memory,
            _region: region,
            keys,
            peers,
            slots: Mutex::default(),
            sections: Arc::new(sections),
        })
    }

    /// A window number, and its zeroed lock.
    pub fn open(&self) -> Result<(u32, LockWords)> {
        let full = || {
            Error::new(Class::NoMemory, "window", format!("{SLOTS} windows are open at this rank: free some"))
        };
        let mut slots = self.slots.lock();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u16::try_from(slots.generations.len()).map_err(|_| full())?;
                slots.generations.push(0);
                slot
            }
        };
        let generation = slots.generations[usize::from(slot)];
        let words = self.slot(&self.memory, slot).map_err(|e| Error::transport("window", &e))?;
        Ok((u32::from(generation) << 16 | u32::from(slot), words))
    }

    /// Gives a number back.
    pub fn close(&self, window: u32) {
        let slot = (window & 0xffff) as u16;
        let _ = self.memory.copy_in(usize::from(slot) * CONTROL_SLOT, &[0; CONTROL_SLOT]);
        let mut slots = self.slots.lock();
        if let Some(generation) = slots.generations.get_mut(usize::from(slot)) {
            *generation = generation.wrapping_add(1);
        }
        slots.free.push(slot);
    }

    fn slot(&self, memory: &Span, slot: u16) -> TransportResult<LockWords> {
        LockWords::new(memory.part(usize::from(slot) * CONTROL_SLOT, CONTROL_SLOT)?)
    }

    /// The locks of wide elements at this rank.
    pub fn own_stripes(&self) -> TransportResult<Stripes> {
        Stripes::new(&self.memory.part(LOCKS, Stripes::BYTES)?)
    }

    /// The locks of wide elements at a peer, where memory is shared with the peer.
    pub fn stripes_of(&self, routes: &Routes, peer: usize) -> TransportResult<Option<Stripes>> {
        let memory = self.of_peer(routes, peer)?;
        memory.map(|memory| Stripes::new(&memory.part(LOCKS, Stripes::BYTES)?)).transpose()
    }

    /// How elements of this rank's window are updated.
    pub fn own_updates(&self, window: u32, stripes: Stripes, granularity: usize) -> TransportResult<Updates> {
        updates(&self.memory, window, stripes, granularity)
    }

    /// How elements of a peer's window are updated, where memory is shared with the peer.
    pub fn updates_of(
        &self,
        routes: &Routes,
        peer: usize,
        window: u32,
        stripes: Stripes,
        granularity: usize,
    ) -> TransportResult<Option<Updates>> {
        let memory = self.of_peer(routes, peer)?;
        memory.map(|memory| updates(memory, window, stripes, granularity)).transpose()
    }

    /// Whether no thread of a rank that shares memory with this one is in the middle of an update.
    pub fn is_outside(&self, routes: &Routes, rank: usize, own: usize) -> bool {
        let memory = if rank == own { Ok(Some(&self.memory)) } else { self.of_peer(routes, rank) };
        let sections =
            memory.and_then(|memory| memory.map(|m| m.part(SECTIONS, Sections::BYTES)).transpose());
        // Who shares no memory updates none of it.
        sections.is_ok_and(|sections| sections.is_none_or(|sections| Sections::are_empty(&sections)))
    }

    /// The lock of a peer's window, where memory is shared with the peer.
    pub fn lock_of(&self, routes: &Routes, peer: usize, window: u32) -> TransportResult<Option<LockWords>> {
        let memory = self.of_peer(routes, peer)?;
        memory.map(|memory| self.slot(memory, (window & 0xffff) as u16)).transpose()
    }

    /// A peer's control block, where memory is shared with the peer.
    fn of_peer(&self, routes: &Routes, peer: usize) -> TransportResult<Option<&Span>> {
        let Some(key) = self.keys.get(peer).and_then(Option::as_ref) else { return Ok(None) };
        let remote = match self.peers[peer].get() {
            Some(remote) => remote,
            None => {
                let remote = routes.to(peer).attach(peer, key)?;
                self.peers[peer].get_or_init(|| remote)
            }
        };
        Ok(remote.direct.as_ref())
    }
}

fn updates(control: &Span, window: u32, stripes: Stripes, granularity: usize) -> TransportResult<Updates> {
    let slot = (window & 0xffff) as usize * CONTROL_SLOT;
    let granules = Stripes::new(&control.part(GRANULES, Stripes::BYTES)?)?;
    Updates::new(&control.part(slot + UPDATES_WORD, size_of::<u32>())?, granules, stripes, granularity)
}
