//! A peer's part of a window, as this rank sees it. What costs a system call is found out on first use.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use transom_transport::{RegionKey, Remote, Span, Stripes, Updates};

use super::{Core, PeerSignals};
use crate::engine::{CachedRegion, Exposed, LockWords, RegionInfo, Regions, Target};
use crate::epoch::{Coverage, HeldLock};
use crate::job::Member;
use crate::protocol::lock::LockKind;
use crate::protocol::wire::Kind;
use crate::waits::{Awaits, Held, Holds};
use crate::{Class, Error, Result};

/// A rank's part of a window.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The peer's rank in the job.
    pub world: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Displacement unit in bytes.
    pub unit: usize,
    /// The peer's number of the window.
    pub number: u32,
    /// What is outstanding.
    pub state: Target,
    pub remote: OnceLock<Remote>,
    /// The same for this rank's device, for its atomics.
    pub device: OnceLock<Remote>,
    pub lock: OnceLock<Option<LockWords>>,
    pub stripes: OnceLock<Stripes>,
    /// How its elements are updated, if others map its memory.
    pub updates: OnceLock<Arc<Updates>>,
    /// Signals to and from the peer, in epochs that use them.
    pub signals: OnceLock<Box<PeerSignals>>,
    /// Whether an epoch of this process covers it.
    covered: AtomicU8,
    /// Its lock, if this process holds it.
    pub held: HeldLock,
}

impl Peer {
    /// A peer with nothing outstanding, and nothing known beyond what it said.
    pub fn new(state: Target, world: usize, bytes: usize, unit: usize, number: u32) -> Self {
        Self {
            world,
            bytes,
            unit,
            number,
            state,
            remote: OnceLock::new(),
            device: OnceLock::new(),
            lock: OnceLock::new(),
            stripes: OnceLock::new(),
            updates: OnceLock::new(),
            signals: OnceLock::new(),
            covered: AtomicU8::new(Coverage::None as u8),
            held: HeldLock::default(),
        }
    }

    /// Whether and how an epoch of this process covers it.
    #[inline(always)]
    pub fn coverage(&self) -> Coverage {
        match self.covered.load(Ordering::Acquire) {
            active if active == Coverage::Active as u8 => Coverage::Active,
            passive if passive == Coverage::Passive as u8 => Coverage::Passive,
            deferred if deferred == Coverage::Deferred as u8 => Coverage::Deferred,
            _ => Coverage::None,
        }
    }

    /// An epoch covers it from now on, or none does any more.
    #[inline(always)]
    pub fn cover(&self, coverage: Coverage) {
        self.covered.store(coverage as u8, Ordering::Release);
    }
}

impl Holds for Peer {
    fn held(&self) -> Option<Held> {
        let kind = self.held.peek()?;
        let owner = u32::try_from(self.world).ok()?;
        Some(Held { owner, window: self.number, exclusive: kind == LockKind::Exclusive })
    }
}

/// Memory of a peer: all of its part, or what it has attached.
#[derive(Debug, Clone)]
pub(crate) enum TargetMemory<'a> {
    /// All of the peer's part of a window.
    Fixed(&'a Remote),
    /// A region of a dynamic window.
    Attached(Arc<CachedRegion>),
}

impl Deref for TargetMemory<'_> {
    type Target = Remote;

    #[inline]
    fn deref(&self) -> &Remote {
        match self {
            Self::Fixed(remote) => remote,
            Self::Attached(region) => &region.remote,
        }
    }
}

/// Memory of this rank, which is peer `own`.
fn own_memory(own: &Peer, memory: Span) -> Remote {
    Remote { peer: own.world, len: memory.len(), direct: Some(memory), base: 0, key: 0 }
}

impl Core {
    /// The peer's memory that holds an access of `bytes` bytes at `displacement`, and the byte offset there.
    #[inline]
    pub fn resolve<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
        displacement: usize,
        bytes: usize,
    ) -> Result<(TargetMemory<'a>, usize)> {
        if let Some(regions) = self.exposure.regions() {
            return self.resolve_attached(regions, operation, target, peer, displacement, bytes);
        }
        let offset = self.locate(operation, target, peer, displacement, bytes)?;
        Ok((TargetMemory::Fixed(self.remote(operation, target, peer)?), offset))
    }

    /// The peer's memory that holds an access from byte `low` to byte `high` behind `displacement`, and the offset of
    /// its first byte.
    pub fn resolve_span<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
        displacement: usize,
        (low, high): (i64, i64),
    ) -> Result<(TargetMemory<'a>, usize)> {
        let start = self.locate_span(operation, (target, peer), displacement, (low, high))?;
        if let Some(regions) = self.exposure.regions() {
            let bytes = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX);
            return self.resolve_attached(regions, operation, target, peer, start, bytes);
        }
        Ok((TargetMemory::Fixed(self.remote(operation, target, peer)?), start))
    }

    /// The peer's memory, attached.
    #[inline]
    pub fn remote<'a>(&self, operation: &'static str, target: usize, peer: &'a Peer) -> Result<&'a Remote> {
        match peer.remote.get() {
            Some(remote) => Ok(remote),
            None => self.attach_peer(operation, target, peer),
        }
    }

    /// Whether a target's part is known to be mapped here: operations on it are complete when their calls return.
    pub fn is_mapped(&self, target: usize) -> bool {
        let remote = |peer: &Peer| self.remote("window", target, peer).is_ok_and(|r| r.direct.is_some());
        self.exposure.regions().is_none()
            && (0..self.peers.len()).contains(&target)
            && self.peers.get(target).is_some_and(remote)
    }

    #[cold]
    fn attach_peer<'a>(&self, operation: &'static str, target: usize, peer: &'a Peer) -> Result<&'a Remote> {
        let remote = match &self.exposure.exposed {
            // This rank's own part needs no transport.
            Exposed::Fixed(memory) if target == self.rank() => own_memory(peer, memory.clone()),
            _ => self.peers.attach(target).map_err(|e| self.failed(operation, target, &e))?,
        };
        Ok(peer.remote.get_or_init(|| remote))
    }

    /// The peer's memory as this rank's device reaches it, in a window whose elements it updates.
    #[inline]
    pub fn device_remote<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a Remote>> {
        match peer.device.get() {
            Some(remote) => Ok(Some(remote)),
            None => self.attach_device(operation, target, peer),
        }
    }

    #[cold]
    fn attach_device<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a Remote>> {
        let Some(remote) = self.peers.attach_device(target) else { return Ok(None) };
        let remote = remote.map_err(|e| self.failed(operation, target, &e))?;
        Ok(Some(peer.device.get_or_init(|| remote)))
    }

    #[cold]
    #[inline(never)]
    fn resolve_attached<'a>(
        &self,
        regions: &Regions,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
        address: usize,
        bytes: usize,
    ) -> Result<(TargetMemory<'a>, usize)> {
        if target == self.rank() {
            let Some((region, offset)) = regions.find(address, bytes) else {
                return Err(match regions.find_detached(address, bytes) {
                    Some(gone) => {
                        self.detached(operation, target, (address, bytes), (gone.start, gone.len()))
                    }
                    None => self.not_attached(operation, target, address, bytes),
                });
            };
            let remote = own_memory(peer, region.memory.clone());
            let known = CachedRegion {
                address: region.address,
                remote,
                left: false,
                gone: AtomicBool::new(false),
                _own: Some(region),
            };
            return Ok((TargetMemory::Attached(Arc::new(known)), offset));
        }
        loop {
            if let Some((region, offset)) = regions.find_known(peer.world, address, bytes) {
                return Ok((TargetMemory::Attached(region), offset));
            }
            if let Some(left) = self.ask_for_region(regions, operation, target, peer, address, bytes)? {
                return Ok(left);
            }
        }
    }

    /// Asks the target for the region that holds an access, and keeps the answer; but for what is left of one that was detached.
    fn ask_for_region<'a>(
        &self,
        regions: &Regions,
        operation: &'static str,
        target: usize,
        peer: &Peer,
        address: usize,
        bytes: usize,
    ) -> Result<Option<(TargetMemory<'a>, usize)>> {
        let engine = &self.member.engine;
        let forgotten = regions.forgotten();
        let mut header = engine.header(Kind::FindRegion);
        header.window = peer.number;
        header.offset = address as u64;
        header.count = bytes as u64;
        let request = engine.request(operation, peer.world, header, &[])?;
        let what =
            || Awaits::target(format!("rank {target} to say where {address:#x} is attached"), peer.world);
        let found = engine.wait_until(operation, &what, None, || request.outcome().map(Ok))?;
        if !found {
            return Err(self.not_attached(operation, target, address, bytes));
        }
        let failed = |e| self.failed(operation, target, &e);
        let card: RegionInfo = postcard::from_bytes(&request.take_data())
            .map_err(|e| self.error(Class::Peer, operation, format!("the card of a region: {e}")))?;
        let (start, key) = match card {
            RegionInfo::Attached { address, key } => (address, key),
            RegionInfo::Detached { address: start, bytes: len } => {
                return Err(self.detached(operation, target, (address, bytes), (start, len)));
            }
            RegionInfo::Leaving => return Ok(None),
            RegionInfo::Left { address: start, bytes: len } => {
                let inside = address.checked_sub(start).filter(|at| *at <= len && bytes <= len - at);
                let offset = inside.ok_or_else(|| self.not_attached(operation, target, address, bytes))?;
                let remote = Remote { peer: peer.world, len, direct: None, base: 0, key: 0 };
                let left = CachedRegion {
                    address: start,
                    remote,
                    left: true,
                    gone: AtomicBool::new(false),
                    _own: None,
                };
                return Ok(Some((TargetMemory::Attached(Arc::new(left)), offset)));
            }
        };
        let remote = engine.routes.to(peer.world).attach(peer.world, &RegionKey(key)).map_err(failed)?;
        let inside = address
            .checked_sub(start)
            .is_some_and(|offset| offset <= remote.len && bytes <= remote.len - offset);
        if !inside {
            return Err(self.not_attached(operation, target, address, bytes));
        }
        let known =
            CachedRegion { address: start, remote, left: false, gone: AtomicBool::new(false), _own: None };
        regions.learn(peer.world, known, forgotten);
        Ok(None)
    }

    #[cold]
    fn not_attached(&self, operation: &'static str, target: usize, address: usize, bytes: usize) -> Error {
        let message = format!(
            "no region that the target has attached holds {bytes} bytes at address {address:#x}: attach it there first"
        );
        self.error(Class::RmaRange, operation, message).with_target(target)
    }

    #[cold]
    fn detached(
        &self,
        operation: &'static str,
        target: usize,
        (address, bytes): (usize, usize),
        (start, len): (usize, usize),
    ) -> Error {
        let message = format!(
            "rank {target} has detached the {len} bytes at address {start:#x}, which held the {bytes} at {address:#x}, and this \
             access came after: complete all accesses before the target detaches, and tell it so, as by a barrier"
        );
        self.error(Class::RmaRange, operation, message).with_target(target)
    }

    /// The locks of wide elements at a peer whose memory is mapped here.
    pub fn stripes<'a>(&self, operation: &'static str, target: usize, peer: &'a Peer) -> Result<&'a Stripes> {
        if let Some(stripes) = peer.stripes.get() {
            return Ok(stripes);
        }
        let control = &self.member.control;
        let found = if target == self.rank() {
            control.own_stripes().map(Some)
        } else {
            control.stripes_of(&self.member.engine.routes, peer.world)
        };
        let found = found.map_err(|e| self.failed(operation, target, &e))?;
        let stripes = found.ok_or_else(|| {
            let message = "its memory is mapped here, but not the locks of its wide elements";
            self.error(Class::System, operation, message).with_target(target)
        })?;
        Ok(peer.stripes.get_or_init(|| stripes.coarser(self.hints.granularity)))
    }

    /// How elements of a peer are updated whose memory others map.
    #[inline]
    pub fn updates<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<&'a Arc<Updates>> {
        match peer.updates.get() {
            Some(updates) => Ok(updates),
            None => self.find_updates(operation, target, peer),
        }
    }

    #[cold]
    fn find_updates<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<&'a Arc<Updates>> {
        let stripes = self.stripes(operation, target, peer)?.clone();
        let (control, engine) = (&self.member.control, &self.member.engine);
        let granularity = engine.granularity(self.hints.granularity);
        let found = if target == self.rank() {
            control.own_updates(self.number, stripes, granularity).map(Some)
        } else {
            control.updates_of(&engine.routes, peer.world, peer.number, stripes, granularity)
        };
        let found = found.map_err(|e| self.failed(operation, target, &e))?;
        let updates = found.ok_or_else(|| {
            let message = "its memory is mapped here, but not the words that say how it is updated";
            self.error(Class::System, operation, message).with_target(target)
        })?;
        Ok(peer.updates.get_or_init(|| Arc::new(updates)))
    }

    /// Whether no rank that maps memory of this window is in an update section.
    pub fn no_update_under_way(&self) -> bool {
        let Member { control, engine, .. } = &*self.member;
        (0..self.peers.len())
            .all(|rank| control.has_no_update_under_way(&engine.routes, self.peers.world(rank), engine.rank))
    }

    /// The peer's lock, if it is in memory that this rank sees.
    #[inline]
    pub fn lock_words<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a LockWords>> {
        match peer.lock.get() {
            Some(words) => Ok(words.as_ref()),
            None => self.find_lock(operation, target, peer),
        }
    }

    #[cold]
    fn find_lock<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a LockWords>> {
        let engine = &self.member.engine;
        let words = if target == self.rank() {
            Some(self.own_lock().clone())
        } else if engine.outlives {
            // Its agent knows who holds it, and takes it back from ranks that die.
            None
        } else {
            let found = self.member.control.lock_of(&engine.routes, peer.world, peer.number);
            found.map_err(|e| self.failed(operation, target, &e))?
        };
        Ok(peer.lock.get_or_init(|| words).as_ref())
    }
}
