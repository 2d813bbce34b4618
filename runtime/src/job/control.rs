//! The control block: each rank has one, mapped by all ranks of its node, with a slot for each window.

mod peer;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use transom_transport::{Region, RegionKey, Sections, Span, Stripes, TransportResult, Updates, limits};

use crate::comm::WORLD;
use crate::engine::{
    CONTROL_SLOT, Engine, LockWords, PeerSleepers, Routes, SignalLine, Sleepers, UPDATES_WORD,
};
use crate::{Class, Error, Result};
use peer::PeerBlock;

/// Windows that a rank can have at once. Untouched slots cost address space only.
const SLOTS: usize = 1 << 16;
/// Bytes of a control block, and of one that has no lines.
const MOST: usize = SIGNAL_TABLES + SLOTS * TABLE_BYTES;
const LEAST: usize = SIGNAL_TABLES;
/// Part of a limit on address space that the control blocks of all ranks take together.
const SHARE: usize = 16;
/// Where the locks of wide elements start, behind the slots; then those of many elements at once; then the sections of
/// threads that update.
const LOCKS: usize = SLOTS * CONTROL_SLOT;
const GRANULES: usize = LOCKS + Stripes::BYTES;
const SECTIONS: usize = GRANULES + Stripes::BYTES;
/// The count of threads that sleep until they are signalled.
const SLEEPERS: usize = (SECTIONS + Sections::BYTES).next_multiple_of(PAGE);
/// Where the signals of barriers begin: a table for the communicator of all, and some that the others share. Who claims a line
/// has it to the end: nobody would know when no late signal can come.
const BARRIERS: usize = SLEEPERS + PAGE;
const BARRIER_TABLES: usize = 16;
/// Where the signals of peers begin: a table for each window, of a cache line for each of so many ranks. In larger windows,
/// ranks that leave the same remainder share a line: the first to claim it owns it, the others send messages. Where there
/// is little address space the last tables are missing, at their rank or where a peer maps them: messages, too.
const SIGNAL_TABLES: usize = BARRIERS + BARRIER_TABLES * TABLE_BYTES;
const TABLE_BYTES: usize = LINES_PER_WINDOW * SignalLine::BYTES;
const LINES_PER_WINDOW: usize = 64;
const PAGE: usize = 4096;

/// Where in a slot the state of its table of signal lines is.
const SIGNALS_STATE: usize = CONTROL_SLOT - 4;
/// All zero.
const FRESH: u32 = 0;
/// Some line is owned.
const USED: u32 = 1;
/// Of a window that not all ranks agreed to free: late signals would be taken for a later window's.
const QUARANTINED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Control {
    memory: Span,
    _region: Option<Box<dyn Region>>,
    /// What each peer published, where it shares memory.
    keys: Vec<Option<RegionKey>>,
    peers: Box<[OnceLock<PeerBlock>]>,
    slots: Mutex<Slots>,
    /// Of this rank's threads.
    pub sections: Arc<Sections>,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<u16>,
    /// How often each slot was used: part of a window's number, so that a late message finds no later window.
    generations: Vec<u16>,
}

impl Control {
    /// The memory of the control block of one of so many ranks: with as many lines as the system's limits leave room for.
    pub fn allocate(ranks: usize, make: impl Fn(usize) -> TransportResult<Span>) -> TransportResult<Span> {
        let most = limits::address_space().map_or(MOST, |limit| MOST.min(limit / SHARE / ranks.max(1)));
        let most = limits::file_size().map_or(most, |limit| most.min(limit));
        let memory = limits::as_much(most - most % PAGE, LEAST, make)?;
        // A core dump would touch all of it, and says nothing of the program.
        memory.dump(false);
        Ok(memory)
    }

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

    /// Frees a number; `agreed`: all ranks have agreed to free the window.
    pub fn close(&self, window: u32, agreed: bool) {
        let slot = (window & 0xffff) as u16;
        let lines = self.clear_signal_lines(slot, agreed).unwrap_or(QUARANTINED);
        let start = usize::from(slot) * CONTROL_SLOT;
        let _ = self.memory.copy_in(start, &[0; CONTROL_SLOT]);
        let _ = self.memory.word32(start + SIGNALS_STATE).map(|state| state.store(lines, Ordering::Release));
        let mut slots = self.slots.lock();
        if let Some(generation) = slots.generations.get_mut(usize::from(slot)) {
            *generation = generation.wrapping_add(1);
        }
        slots.free.push(slot);
    }

    fn slot(&self, memory: &Span, slot: u16) -> TransportResult<LockWords> {
        LockWords::new(&memory.part(usize::from(slot) * CONTROL_SLOT, CONTROL_SLOT)?)
    }

    /// Clears a slot's table of signal lines; returns its state.
    fn clear_signal_lines(&self, slot: u16, agreed: bool) -> TransportResult<u32> {
        let state = self.memory.word32(usize::from(slot) * CONTROL_SLOT + SIGNALS_STATE)?;
        // From here on no rank claims a line.
        match state.swap(QUARANTINED, Ordering::AcqRel) {
            USED if agreed => {
                self.memory.copy_in(SIGNAL_TABLES + usize::from(slot) * TABLE_BYTES, &[0; TABLE_BYTES])?;
                Ok(FRESH)
            }
            USED => Ok(QUARANTINED),
            fresh_or_quarantined => Ok(fresh_or_quarantined),
        }
    }

    /// The line in which rank `origin` of a window signals this rank; none if the table is quarantined.
    pub fn incoming_line(&self, window: u32, origin: usize) -> TransportResult<Option<SignalLine>> {
        let slot = (window & 0xffff) as usize;
        let state = self.memory.word32(slot * CONTROL_SLOT + SIGNALS_STATE)?.load(Ordering::Acquire);
        (state != QUARANTINED)
            .then(|| SignalLine::find(&self.memory, line_offset(window, origin)))
            .transpose()
    }

    /// The line in which this rank, `own` in the window, signals a peer; none where memory is not shared, or another rank
    /// owns the line.
    pub fn outgoing_line(
        &self,
        routes: &Routes,
        peer: usize,
        window: u32,
        own: usize,
    ) -> TransportResult<Option<SignalLine>> {
        let Some((block, key)) = self.block_of(routes, peer)? else { return Ok(None) };
        let Some(memory) = block.memory() else { return Ok(None) };
        let (slot, at) = ((window & 0xffff) as usize, line_offset(window, own));
        let Some((lines, at)) = block.line(routes, key, at, SignalLine::BYTES) else { return Ok(None) };
        let state = memory.word32(slot * CONTROL_SLOT + SIGNALS_STATE)?;
        if state.compare_exchange(FRESH, USED, Ordering::AcqRel, Ordering::Acquire) == Err(QUARANTINED) {
            return Ok(None);
        }
        let line = SignalLine::find(lines, at)?;
        Ok(line.claim(own).then_some(line))
    }

    /// The line in which rank `from` of the communicator of a context signals this rank in barriers, if it has claimed that.
    pub fn incoming_barrier_line(&self, context: u64, from: usize) -> TransportResult<SignalLine> {
        SignalLine::find(&self.memory, barrier_line_offset(context, from))
    }

    /// The line in which this rank, `own` in the communicator, signals a peer in barriers; none where memory is not shared, or
    /// another rank has the line.
    pub fn outgoing_barrier_line(
        &self,
        routes: &Routes,
        peer: usize,
        context: u64,
        own: usize,
    ) -> TransportResult<Option<SignalLine>> {
        let Some(memory) = self.of_peer(routes, peer)? else { return Ok(None) };
        let line = SignalLine::find(memory, barrier_line_offset(context, own))?;
        Ok(line.claim_in(context, own).then_some(line))
    }

    /// The sleeping threads of this rank. To be called once.
    pub fn sleepers(memory: &Span) -> TransportResult<Sleepers> {
        Sleepers::new(&memory.part(SLEEPERS, Sleepers::BYTES)?)
    }

    /// The sleeping threads of a peer, where memory is shared with the peer.
    pub fn sleepers_at(&self, engine: &Engine, peer: usize) -> TransportResult<Option<PeerSleepers>> {
        let Some(memory) = self.of_peer(&engine.routes, peer)? else { return Ok(None) };
        PeerSleepers::new(&memory.part(SLEEPERS, Sleepers::BYTES)?, &engine.sleepers).map(Some)
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

    /// Whether no thread of a rank that shares memory with this one is in an update section.
    pub fn has_no_update_under_way(&self, routes: &Routes, rank: usize, own: usize) -> bool {
        let memory = if rank == own { Ok(Some(&self.memory)) } else { self.of_peer(routes, rank) };
        let sections =
            memory.and_then(|memory| memory.map(|m| m.part(SECTIONS, Sections::BYTES)).transpose());
        // A rank that shares no memory updates none of it.
        sections.is_ok_and(|sections| sections.is_none_or(|sections| Sections::are_empty(&sections)))
    }

    /// The lock of a peer's window, where memory is shared with the peer.
    pub fn lock_of(&self, routes: &Routes, peer: usize, window: u32) -> TransportResult<Option<LockWords>> {
        let memory = self.of_peer(routes, peer)?;
        memory.map(|memory| self.slot(memory, (window & 0xffff) as u16)).transpose()
    }

    /// A peer's control block, where memory is shared with the peer.
    fn of_peer(&self, routes: &Routes, peer: usize) -> TransportResult<Option<&Span>> {
        Ok(self.block_of(routes, peer)?.and_then(|(block, _)| block.memory()))
    }

    fn block_of(&self, routes: &Routes, peer: usize) -> TransportResult<Option<(&PeerBlock, &RegionKey)>> {
        let Some(key) = self.keys.get(peer).and_then(Option::as_ref) else { return Ok(None) };
        let block = match self.peers[peer].get() {
            Some(block) => block,
            None => {
                let block = PeerBlock::attach(routes, peer, key, self.memory.len())?;
                self.peers[peer].get_or_init(|| block)
            }
        };
        Ok(Some((block, key)))
    }
}

fn updates(control: &Span, window: u32, stripes: Stripes, granularity: usize) -> TransportResult<Updates> {
    let slot = (window & 0xffff) as usize * CONTROL_SLOT;
    let granules = Stripes::new(&control.part(GRANULES, Stripes::BYTES)?)?;
    Updates::new(&control.part(slot + UPDATES_WORD, size_of::<u32>())?, granules, stripes, granularity)
}

/// The offset of the signal line of a rank of a window.
fn line_offset(window: u32, rank: usize) -> usize {
    SIGNAL_TABLES + (window & 0xffff) as usize * TABLE_BYTES + rank % LINES_PER_WINDOW * SignalLine::BYTES
}

/// The offset of the line in which a rank of the communicator of a context signals in barriers.
fn barrier_line_offset(context: u64, rank: usize) -> usize {
    let table = if context == WORLD { 0 } else { 1 + (context % (BARRIER_TABLES as u64 - 1)) as usize };
    BARRIERS + table * TABLE_BYTES + rank % LINES_PER_WINDOW * SignalLine::BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_barriers_are_between_the_sleepers_and_the_windows() {
        for context in [WORLD, 1, 2, 14, 15, 16, 1 << 40, u64::MAX] {
            for rank in [0, 1, 63, 64, 1000] {
                let at = barrier_line_offset(context, rank);
                assert!((BARRIERS..=SIGNAL_TABLES - SignalLine::BYTES).contains(&at), "{context}, {rank}");
                assert_eq!(at < BARRIERS + TABLE_BYTES, context == WORLD);
            }
        }
    }
}
