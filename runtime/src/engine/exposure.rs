//! What a window exposes to the agent: its memory, its lock, and the ranks whose memory has been revoked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};
use transom_transport::{
    DataType, ReduceOp, Reduction, Sections, Span, Stripes, TransportResult, Updates, Words,
};

use super::regions::Regions;
use crate::protocol::lock::{Ticket, TicketLock};
use crate::protocol::lock_queue::{AgentTicket, LockQueue};
use crate::protocol::pscw;

/// Bytes of a window's control words at one rank: one cache line.
pub(crate) const CONTROL_SLOT: usize = 64;
/// Where among them the word is that says how elements are updated. The lock's are the first five.
pub(crate) const UPDATES_WORD: usize = 32;

/// A window's lock at one rank, in memory that all ranks of that rank's node see.
#[derive(Debug, Clone)]
pub(crate) struct LockWords(Words<{ CONTROL_SLOT / size_of::<u32>() }>);

impl LockWords {
    /// The lock in a control slot.
    pub fn new(slot: &Span) -> TransportResult<Self> {
        Words::new(slot, 0).map(Self)
    }

    /// The lock's words.
    #[inline(always)]
    pub fn lock(&self) -> TicketLock<'_, AtomicU32> {
        TicketLock { next: &self.0[0], read: &self.0[1], write: &self.0[2] }
    }

    /// The lock and its waiters.
    #[inline(always)]
    pub fn queue(&self) -> LockQueue<'_, AtomicU32> {
        LockQueue { lock: self.lock(), sleepers: &self.0[3], agent_tickets: &self.0[4] }
    }
}

/// A rank of another node that waits for a lock.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub claim: Claim,
    /// The operations of the claim.
    pub operations: Vec<u8>,
}

/// What a rank of another node wants of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub origin: usize,
    /// Its number of the request.
    pub request: u32,
    /// How many operations are to be carried out.
    pub count: u64,
    /// Whether it keeps the lock then.
    pub keeps: bool,
}

/// How a window's elements at this rank are updated, and this rank's threads that do.
#[derive(Debug)]
pub(crate) struct SharedUpdates {
    pub updates: Updates,
    pub sections: Arc<Sections>,
}

/// What a window exposes at this rank.
#[derive(Debug)]
pub(crate) enum Exposed {
    /// One range of memory, from offset 0.
    Fixed(Span),
    /// What is attached at the time, by address.
    Dynamic(Regions),
}

/// One window, as the agent sees it.
#[derive(Debug)]
pub(crate) struct Exposure {
    pub exposed: Exposed,
    pub lock: LockWords,
    /// Locks of wide elements.
    pub stripes: Stripes,
    /// How elements of memory that others map are updated.
    pub shared: Option<SharedUpdates>,
    /// Tickets that the agent holds.
    pub agent_tickets: Mutex<Vec<AgentTicket<Waiter>>>,
    /// To whom the agent has granted the lock, where ranks outlive others.
    pub granted: Mutex<Vec<(usize, Ticket)>>,
    /// No other process updates this memory: it is in no memory file that others map. Then only the agent and this rank's
    /// own operations do, and `update_lock` excludes them from each other: the agent updates many elements at once under
    /// it.
    pub private: bool,
    /// Held for reading by this rank's own updates of private memory, for writing by the agent's large ones.
    pub update_lock: RwLock<()>,
    /// Ranks whose memory has been freed. Held for reading while memory is accessed that its owner may revoke.
    pub revoked: RwLock<HashSet<usize>>,
    /// Posts and completes that have arrived by messages; whether any have.
    calls: Mutex<pscw::Arrivals>,
    called: AtomicBool,
    /// Notifications that have arrived, by number.
    notified: Mutex<HashMap<u64, u64>>,
}

impl Exposure {
    pub fn new(exposed: Exposed, lock: LockWords, stripes: Stripes, updates: SharedUpdates) -> Self {
        let private = match &exposed {
            Exposed::Fixed(memory) => memory.file().is_none(),
            Exposed::Dynamic(regions) => !regions.are_shared(),
        };
        Self {
            private,
            shared: (!private).then_some(updates),
            exposed,
            lock,
            stripes,
            agent_tickets: Mutex::default(),
            granted: Mutex::default(),
            update_lock: RwLock::default(),
            revoked: RwLock::default(),
            calls: Mutex::default(),
            called: AtomicBool::new(false),
            notified: Mutex::default(),
        }
    }

    /// Calls `access` with the memory that holds `bytes` bytes at `offset`, and their offset there. `None` if nothing
    /// does.
    pub fn with<R>(&self, offset: usize, bytes: usize, access: impl FnOnce(&Span, usize) -> R) -> Option<R> {
        match &self.exposed {
            Exposed::Fixed(memory) => {
                let inside = offset <= memory.len() && bytes <= memory.len() - offset;
                inside.then(|| access(memory, offset))
            }
            Exposed::Dynamic(regions) => {
                let Some((region, offset)) = regions.find(offset, bytes) else {
                    return regions.with_left(offset, bytes, access);
                };
                Some(access(&region.memory, offset))
            }
        }
    }

    /// The regions of a dynamic window.
    pub fn regions(&self) -> Option<&Regions> {
        match &self.exposed {
            Exposed::Fixed(_) => None,
            Exposed::Dynamic(regions) => Some(regions),
        }
    }

    /// A post or a complete has arrived by a message of a rank of the job.
    pub fn count_call(&self, call: pscw::Call, rank: usize) {
        self.calls.lock().arrived(call, rank);
        self.called.store(true, Ordering::Release);
    }

    /// How many have, of one rank.
    #[inline]
    pub fn count_calls(&self, call: pscw::Call, rank: impl FnOnce() -> usize) -> u64 {
        if self.called.load(Ordering::Acquire) { self.calls.lock().count(call, rank()) } else { 0 }
    }

    /// Counts notifications of a number that have arrived.
    pub fn count_notification(&self, number: u64, count: u64) {
        let mut notified = self.notified.lock();
        let arrived = notified.entry(number).or_insert(0);
        *arrived = arrived.saturating_add(count);
    }

    /// Takes `count` notifications of a number, if there are so many.
    pub fn take_notifications(&self, number: u64, count: u64) -> bool {
        let mut notified = self.notified.lock();
        match notified.get_mut(&number) {
            _ if count == 0 => true,
            Some(arrived) if *arrived > count => {
                *arrived -= count;
                true
            }
            Some(arrived) if *arrived == count => {
                notified.remove(&number);
                true
            }
            _ => false,
        }
    }
}

impl Exposure {
    /// Bytes from which on taking the update lock pays.
    const LARGE: usize = 1024;

    /// Accumulates for the agent, atomically for each element. `None` if that cannot be.
    pub fn accumulate(&self, op: ReduceOp, ty: DataType, offset: usize, operands: &[u8]) -> Option<()> {
        self.update(op, ty, offset, operands, None)
    }

    /// Accumulates for the agent, and fetches what was there. `None` if that cannot be.
    pub fn get_accumulate(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        operands: &[u8],
        fetched: &mut [u8],
    ) -> Option<()> {
        self.update(op, ty, offset, operands, Some(fetched))
    }

    fn update(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        operands: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> Option<()> {
        self.with(offset, operands.len(), |memory, at| {
            if let Some(SharedUpdates { updates, sections }) = &self.shared {
                let what = Reduction { op, ty, operands };
                return updates.many(sections, memory, offset as u64, at, what, fetched).ok();
            }
            if memory.file().is_some() || operands.len() < Self::LARGE {
                return memory.update(&self.stripes, offset as u64, op, ty, at, operands, fetched).ok();
            }
            let _alone = self.update_lock.write();
            if let Some(fetched) = fetched {
                memory.copy_out(at, fetched).ok()?;
            }
            memory.apply_exclusive(op, ty, at, operands).ok()
        })?
    }

    /// Compares and swaps one element for the agent. `None` if that cannot be.
    pub fn compare_swap(
        &self,
        ty: DataType,
        offset: usize,
        compare: &[u8],
        value: &[u8],
        fetched: &mut [u8],
    ) -> Option<()> {
        self.with(offset, ty.size(), |memory, at| {
            let place = offset as u64;
            let mut swap =
                || memory.compare_swap_bytes(&self.stripes, place, ty, at, compare, value, fetched);
            match &self.shared {
                Some(SharedUpdates { updates, sections }) => updates.one(sections, place, swap).ok(),
                None => swap().ok(),
            }
        })?
    }
}

/// The windows of this rank, by number.
#[derive(Debug, Default)]
pub(crate) struct Exposures(RwLock<HashMap<u32, Arc<Exposure>>>);

impl Exposures {
    pub fn get(&self, window: u32) -> Option<Arc<Exposure>> {
        self.0.read().get(&window).cloned()
    }

    pub fn insert(&self, window: u32, exposure: Arc<Exposure>) {
        self.0.write().insert(window, exposure);
    }

    /// All of them.
    pub fn all(&self) -> Vec<(u32, Arc<Exposure>)> {
        self.0.read().iter().map(|(window, exposure)| (*window, exposure.clone())).collect()
    }

    pub fn remove(&self, window: u32) {
        self.0.write().remove(&window);
    }
}
