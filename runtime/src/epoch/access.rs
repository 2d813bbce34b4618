//! An access epoch without element type or scope: checks that the target is covered, remembers what must be completed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use transom_transport::memory::store_load_fence;
use transom_transport::{Basic, ReduceOp, Span, Swappable};

use super::{active, lock};
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::operation::{self, Accumulate, Place};
use crate::protocol::lock::{LockKind, Ticket};
use crate::window::{Core, Peer};
use crate::{Assert, Class, Error, Result};

/// Which targets an epoch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Covers {
    /// The one whose lock is held (or the null rank).
    One(usize),
    /// All. Each target's shared lock is taken when it is first accessed, so that the epoch costs nothing for targets
    /// that it does not touch.
    Locked,
    /// All, between fences.
    Fenced,
    /// Those of a group, each once it has posted its window.
    Started(Box<[usize]>),
}

/// An open access epoch.
#[derive(Debug)]
pub(super) struct Access<'w> {
    core: &'w Core,
    covers: Covers,
    /// Whether the matching calls or locks of others are awaited ([`Assert::NOCHECK`] is not given).
    checked: bool,
    /// The target of the last access, which is covered.
    covered: Cell<usize>,
    /// A bit per rank whose lock [`Covers::Locked`] has taken, or whose post has come.
    taken: Box<[Cell<u64>]>,
    /// The lock that [`Covers::One`] holds.
    ticket: Cell<Option<Ticket>>,
    /// The locks that [`Covers::Locked`] has taken so far.
    held: RefCell<Vec<(usize, Ticket)>>,
    /// Stores to mapped memory were made since the last flush.
    dirty: Cell<bool>,
    /// Targets reached by a transport or messages since the epoch began.
    touched: RefCell<BTreeSet<usize>>,
    /// The last of them to be touched.
    last_touched: Cell<usize>,
    closed: Cell<bool>,
}

/// A target that no rank has: nothing is covered yet.
const NOBODY: usize = usize::MAX - 1;

impl<'w> Access<'w> {
    fn open(core: &'w Core, covers: Covers, assert: Assert) -> Self {
        let bits = match covers {
            Covers::Locked | Covers::Started(_) => core.peers.len().div_ceil(64),
            Covers::One(_) | Covers::Fenced => 0,
        };
        Self {
            core,
            covers,
            checked: !assert.has(Assert::NOCHECK),
            covered: Cell::new(NOBODY),
            taken: if bits == 0 { Box::default() } else { vec![Cell::new(0); bits].into() },
            ticket: Cell::new(None),
            held: RefCell::default(),
            dirty: Cell::new(false),
            touched: RefCell::default(),
            last_touched: Cell::new(NOBODY),
            closed: Cell::new(false),
        }
    }

    /// Locks `target` and opens an epoch to it.
    #[inline]
    pub fn lock(core: &'w Core, kind: LockKind, target: usize, assert: Assert) -> Result<Self> {
        let peer = core.target("lock", target)?;
        if core.hints.no_locks || assert != Assert::NONE {
            check_locks(core, "lock", assert)?;
        }
        core.epochs.lock().open_lock(target, core.rank()).map_err(|e| core.name(e).with_target(target))?;
        let access = Self::open(core, Covers::One(target), assert);
        if let Some(peer) = peer
            && access.checked
        {
            match lock::acquire(core, target, peer, kind) {
                Ok(ticket) => access.ticket.set(Some(ticket)),
                Err(error) => {
                    access.forget();
                    return Err(error);
                }
            }
        }
        access.covered.set(target);
        core.refresh("lock")?;
        Ok(access)
    }

    /// Opens an epoch to all targets, with shared locks.
    pub fn lock_all(core: &'w Core, assert: Assert) -> Result<Self> {
        check_locks(core, "lock_all", assert)?;
        core.epochs.lock().open_all().map_err(|e| core.name(e))?;
        let access = Self::open(core, Covers::Locked, assert);
        core.refresh("lock_all")?;
        Ok(access)
    }

    /// Opens an epoch to all targets between fences.
    pub fn fence(core: &'w Core) -> Result<Self> {
        core.epochs.lock().open_fence().map_err(|e| core.name(e))?;
        Ok(Self::open(core, Covers::Fenced, Assert::NONE))
    }

    /// Opens an epoch to the ranks of `group`, which post their windows to this rank.
    pub fn start(core: &'w Core, group: &[usize], assert: Assert) -> Result<Self> {
        assert.check("start").map_err(|e| core.name(e))?;
        let group = active::check_group(core, "start", group)?;
        core.epochs.lock().open_start().map_err(|e| core.name(e))?;
        Ok(Self::open(core, Covers::Started(group), assert))
    }

    /// Memory and offset of an access to a target that has been accessed before in this epoch, if its part of the window is
    /// mapped and holds the access. Everything else, errors above all, is [`Access::place`]'s.
    #[inline]
    fn at_hand(&self, target: usize, displacement: usize, bytes: usize) -> Option<(&'w Span, usize)> {
        if self.covered.get() != target && !self.is_taken(target) {
            return None;
        }
        let peer = self.core.peers.made(target)?;
        let memory = peer.remote.get()?.direct.as_ref()?;
        let offset = displacement.checked_mul(peer.unit)?;
        (offset <= peer.bytes && bytes <= peer.bytes - offset).then_some((memory, offset))
    }

    /// The place of an access, if the epoch covers the target and the window holds it. `None` for the null rank.
    pub fn place(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Result<Option<Place<'w>>> {
        let core = self.core;
        let Some(peer) = core.target(operation, target)? else { return Ok(None) };
        self.check_covered(operation, target, peer)?;
        let (remote, offset) = core.reach(operation, target, peer, displacement, bytes)?;
        Ok(Some(Place { target, peer, remote, offset }))
    }

    /// Makes sure that the epoch covers `target`.
    #[inline]
    pub(super) fn check_covered(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        if self.covered.get() == target || self.is_taken(target) {
            return Ok(());
        }
        self.cover(operation, target, peer)
    }

    /// Whether this is an epoch of locks.
    pub(super) fn is_passive(&self) -> bool {
        matches!(self.covers, Covers::One(_) | Covers::Locked)
    }

    /// The window.
    pub(super) fn core(&self) -> &'w Core {
        self.core
    }

    /// Stores were made to mapped memory.
    pub(super) fn stored(&self) {
        self.dirty.set(true);
    }

    /// Whether the lock of `target` has been taken in an epoch to all ranks.
    #[inline]
    fn is_taken(&self, target: usize) -> bool {
        self.taken.get(target / 64).is_some_and(|bits| bits.get() & (1 << (target % 64)) != 0)
    }

    /// Makes sure that `target` is covered.
    #[cold]
    fn cover(&self, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
        match &self.covers {
            Covers::One(locked) => {
                let message =
                    format!("the epoch covers rank {locked} only: lock rank {target}, or use lock_all");
                return Err(self.core.error(Class::RmaSync, operation, message).with_target(target));
            }
            Covers::Locked => {
                if self.checked {
                    let ticket = lock::acquire(self.core, target, peer, LockKind::Shared)?;
                    self.held.borrow_mut().push((target, ticket));
                }
                self.take(target);
            }
            Covers::Started(group) => {
                if group.binary_search(&target).is_err() {
                    let message = format!("the epoch covers ranks {group:?} only: name this one to start");
                    return Err(self.core.error(Class::RmaSync, operation, message).with_target(target));
                }
                if self.checked {
                    active::await_post(self.core, operation, target)?;
                }
                self.take(target);
            }
            Covers::Fenced => {}
        }
        self.covered.set(target);
        Ok(())
    }

    fn take(&self, target: usize) {
        let bits = &self.taken[target / 64];
        bits.set(bits.get() | 1 << (target % 64));
    }

    #[inline]
    pub fn put(&self, target: usize, displacement: usize, bytes: &[u8], owned: bool) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            self.dirty.set(true);
            return memory.copy_in(offset, bytes).map_err(|e| self.failed("put", target, &e));
        }
        self.put_elsewhere(target, displacement, bytes, owned)
    }

    #[inline(never)]
    fn put_elsewhere(&self, target: usize, displacement: usize, bytes: &[u8], owned: bool) -> Result<()> {
        let Some(place) = self.place("put", target, displacement, bytes.len())? else { return Ok(()) };
        match &place.remote.direct {
            Some(memory) => {
                self.dirty.set(true);
                memory.copy_in(place.offset, bytes).map_err(|e| self.failed("put", target, &e))
            }
            None => {
                self.touch(target);
                let origin = if owned { OriginBuffer::owned(bytes) } else { OriginBuffer::of_scope(bytes) };
                operation::put(self.core, &place, &origin, None)
            }
        }
    }

    #[inline]
    pub fn get(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            return memory.copy_out(offset, bytes).map_err(|e| self.failed("get", target, &e));
        }
        self.get_elsewhere(target, displacement, bytes)
    }

    #[inline(never)]
    fn get_elsewhere(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        let Some(place) = self.place("get", target, displacement, bytes.len())? else { return Ok(()) };
        match &place.remote.direct {
            Some(memory) => memory.copy_out(place.offset, bytes).map_err(|e| self.failed("get", target, &e)),
            None => {
                self.touch(target);
                operation::get(self.core, &place, &mut ResultBuffer::of_scope(bytes), None)
            }
        }
    }

    /// A put that tells the target when it is there.
    pub fn put_notify(&self, target: usize, displacement: usize, bytes: &[u8], number: u64) -> Result<()> {
        let Some(place) = self.place("put_notify", target, displacement, bytes.len())? else { return Ok(()) };
        if place.remote.direct.is_none() {
            self.touch(target);
        }
        operation::notify(self.core, &place, bytes, number)
    }

    /// A get that is complete when the call returns.
    #[inline]
    pub fn get_now(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            return memory.copy_out(offset, bytes).map_err(|e| self.failed("get", target, &e));
        }
        self.get_now_elsewhere(target, displacement, bytes)
    }

    #[inline(never)]
    fn get_now_elsewhere(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        let Some(place) = self.place("get", target, displacement, bytes.len())? else { return Ok(()) };
        match &place.remote.direct {
            Some(memory) => memory.copy_out(place.offset, bytes).map_err(|e| self.failed("get", target, &e)),
            None => operation::get_now(self.core, &place, bytes),
        }
    }

    /// Updates an element at hand by a CPU atomic, if that can be; returns what was there.
    #[inline]
    fn update_at_hand<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Option<T> {
        let (memory, offset) = self.at_hand(target, displacement, size_of::<T>())?;
        if self.core.private { None } else { memory.update_one(offset, op, operand).ok()? }
    }

    /// [`Access::accumulate`] of one element: what programs do most.
    #[inline]
    pub fn accumulate_one<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        one: T,
    ) -> Result<()> {
        const NAME: &str = "accumulate";
        if self.update_at_hand(target, displacement, op, one).is_some() {
            return Ok(());
        }
        let Some(place) = self.place(NAME, target, displacement, size_of::<T>())? else { return Ok(()) };
        if place.remote.direct.is_some() {
            return operation::fetch_op(self.core, &place, op, one).map(drop);
        }
        self.touch(target);
        operation::accumulate(self.core, &place, Accumulate { op, ty: T::TYPE, operands: one.as_bytes() })
    }

    pub fn accumulate(&self, target: usize, displacement: usize, what: Accumulate<'_>) -> Result<()> {
        let bytes = what.operands.len();
        let Some(place) = self.place("accumulate", target, displacement, bytes)? else { return Ok(()) };
        if place.remote.direct.is_none() {
            self.touch(target);
        }
        operation::accumulate(self.core, &place, what)
    }

    pub fn get_accumulate(
        &self,
        target: usize,
        displacement: usize,
        what: Accumulate<'_>,
        result: &mut [u8],
    ) -> Result<()> {
        const NAME: &str = "get_accumulate";
        if result.len() != what.operands.len() {
            let message = format!(
                "{} bytes of operands, but room for {} of results",
                what.operands.len(),
                result.len()
            );
            return Err(self.core.error(Class::Count, NAME, message).with_target(target));
        }
        match self.place(NAME, target, displacement, result.len())? {
            Some(place) => operation::get_accumulate(self.core, &place, what, result),
            None => Ok(()),
        }
    }

    #[inline]
    pub fn fetch_op<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        if let Some(old) = self.update_at_hand(target, displacement, op, operand) {
            return Ok(old);
        }
        match self.place("fetch_and_op", target, displacement, size_of::<T>())? {
            Some(place) => operation::fetch_op(self.core, &place, op, operand),
            None => Ok(T::new_zeroed()),
        }
    }

    #[inline]
    pub fn compare_swap<T: Swappable>(
        &self,
        target: usize,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Result<T> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, size_of::<T>())
            && !self.core.private
            && let Ok(Some(old)) = memory.compare_swap_one(offset, compare, value)
        {
            return Ok(old);
        }
        match self.place("compare_and_swap", target, displacement, size_of::<T>())? {
            Some(place) => operation::compare_swap(self.core, &place, compare, value),
            None => Ok(T::new_zeroed()),
        }
    }

    #[cold]
    fn failed(
        &self,
        operation: &'static str,
        target: usize,
        error: &transom_transport::TransportError,
    ) -> Error {
        self.core.name(Error::transport(operation, error)).with_target(target)
    }

    pub(super) fn touch(&self, target: usize) {
        if self.last_touched.replace(target) != target {
            self.touched.borrow_mut().insert(target);
        }
    }

    /// Completes all operations to `target`, there and here.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        if self.core.target("flush", target)?.is_none() {
            return Ok(());
        }
        self.check_flush(target)?;
        self.flush_stores();
        if self.touched.borrow().contains(&target) { self.complete("flush", &[target]) } else { Ok(()) }
    }

    #[inline]
    fn check_flush(&self, target: usize) -> Result<()> {
        match &self.covers {
            Covers::One(locked) if *locked != target => {
                let message = format!("the epoch covers rank {locked} only");
                Err(self.core.error(Class::RmaSync, "flush", message).with_target(target))
            }
            _ => Ok(()),
        }
    }

    /// Waits until nothing is under way to `target`, so that buffers can go; if that fails, ends all traffic.
    pub fn end_gets(&self, target: usize) -> Result<()> {
        let Some(peer) = self.core.target("get", target)? else { return Ok(()) };
        let ended = operation::complete(self.core, "get", target, peer, None);
        if !peer.state.is_idle() {
            operation::abandon(self.core);
        }
        ended
    }

    /// Completes all operations to all targets.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_stores();
        let touched: Vec<usize> = self.touched.borrow().iter().copied().collect();
        self.complete("flush_all", &touched)
    }

    /// Orders stores to mapped memory before whatever follows.
    #[inline]
    fn flush_stores(&self) {
        if self.dirty.replace(false) {
            store_load_fence();
        }
    }

    /// Confirmations are asked of all targets before the first is awaited. Every target is completed, whatever happens
    /// to the others; the first error is returned.
    fn complete(&self, operation: &'static str, targets: &[usize]) -> Result<()> {
        let peers = targets.iter().map(|target| (*target, &self.core.peers[*target]));
        let asked: Vec<_> =
            peers.map(|(t, peer)| (t, peer, operation::start_complete(self.core, operation, peer))).collect();
        let mut result = Ok(());
        for (target, peer, confirmation) in asked {
            let completed = confirmation.and_then(|confirmation| {
                operation::complete(self.core, operation, target, peer, confirmation.as_ref())
            });
            result = result.and(completed);
        }
        result
    }

    /// Completes everything and releases every lock.
    #[inline]
    pub fn close(&self) -> Result<()> {
        if self.closed.replace(true) {
            return Ok(());
        }
        let operation = match &self.covers {
            Covers::One(_) => "unlock",
            Covers::Locked => "unlock_all",
            Covers::Fenced => "fence",
            Covers::Started(_) => "complete",
        };
        let mut result = self.complete_all(operation);
        match &self.covers {
            Covers::One(target) => {
                result = result.and(self.core.publish(operation));
                if let Some(ticket) = self.ticket.take() {
                    let peer = &self.core.peers[*target];
                    result = result.and(lock::release(self.core, *target, peer, ticket));
                } else {
                    self.flush_stores();
                }
            }
            Covers::Locked => {
                result = result.and(self.core.publish(operation));
                self.flush_stores();
                for (target, ticket) in self.held.take() {
                    result = result.and(lock::release(self.core, target, &self.core.peers[target], ticket));
                }
            }
            Covers::Fenced => self.flush_stores(),
            Covers::Started(group) => {
                self.flush_stores();
                result = result.and(active::complete(self.core, group, self.checked));
            }
        }
        self.forget();
        result
    }

    /// Completes all operations, or ends all traffic: their buffers are about to go.
    #[inline]
    fn complete_all(&self, operation: &'static str) -> Result<()> {
        if self.touched.borrow().is_empty() {
            return Ok(());
        }
        let touched: Vec<usize> = self.touched.take().into_iter().collect();
        let result = self.complete(operation, &touched);
        if touched.iter().any(|target| !self.core.peers[*target].state.is_idle()) {
            operation::abandon(self.core);
        }
        result
    }

    /// The epoch is no longer open.
    fn forget(&self) {
        self.closed.set(true);
        let mut epochs = self.core.epochs.lock();
        match &self.covers {
            Covers::One(target) => epochs.close_lock(*target),
            Covers::Locked | Covers::Fenced | Covers::Started(_) => epochs.close_access(),
        }
    }
}

#[cold]
fn check_locks(core: &Core, operation: &'static str, assert: Assert) -> Result<()> {
    assert.check(operation).map_err(|e| core.name(e))?;
    if core.hints.no_locks {
        let message = "the window was made with the hint no_locks: make it without, or use fence or start";
        return Err(core.error(Class::RmaSync, operation, message));
    }
    Ok(())
}

impl Drop for Access<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.closed.get()
            && let Err(error) = self.close()
        {
            tracing::error!(%error, "an epoch ended by unwinding is not complete");
        }
    }
}
