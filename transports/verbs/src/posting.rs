//! Makes work requests of puts, gets, atomics and messages.

use std::ops::Deref;

use ibverbs::Local;
use transom_transport::{NativeAtomic, Posted, Remote, Transfer, TransportError, TransportResult};

use crate::alone::Vacant;
use crate::link::State;
use crate::pool::Pool;
use crate::port::Port;
use crate::work::{Hold, Slot, Then, Verb, Work};

/// Puts and gets of up to so many bytes are copied through registered buffers.
pub(crate) const COPIED: usize = 8 << 10;
/// Work requests that may wait for a peer, as a multiple of those that may be under way.
const WAITING: usize = 4;

/// A put (`write`) or a get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<T> {
    pub write: bool,
    pub transfer: T,
}

impl<T> Deref for Access<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.transfer
    }
}

impl Access<Transfer<'_>> {
    /// The work request for the part from `start`, and not the local side yet.
    #[inline(always)]
    fn verb(&self, key: u32, start: usize) -> Verb {
        verb_at(self.write, self.remote, self.offset + start, key)
    }
}

/// A put or a get at an offset of a peer's region.
#[inline(always)]
pub(crate) fn verb_at(write: bool, remote: &Remote, offset: usize, key: u32) -> Verb {
    let address = remote.base.wrapping_add(offset as u64);
    if write { Verb::Write { address, key } } else { Verb::Read { address, key } }
}

/// The device's key in a key of ours.
#[inline(always)]
pub(crate) fn key_of(remote: &Remote) -> TransportResult<u32> {
    let no_key = |_| TransportError::Malformed { peer: remote.peer, what: "region key" };
    u32::try_from(remote.key).map_err(no_key)
}

#[inline(always)]
pub(crate) fn in_range(remote: &Remote, offset: usize, len: usize) -> TransportResult<()> {
    if offset > remote.len || len > remote.len - offset {
        return Err(TransportError::Range { offset, bytes: len, len: remote.len });
    }
    Ok(())
}

/// A put that travels in its work request.
#[inline(always)]
fn inline(access: &Access<Transfer<'_>>, key: u32) -> Work {
    Work {
        verb: access.verb(key, 0),
        then: Then::Report(access.context),
        local: Local { address: access.local as u64, len: access.len as u32, key: 0 },
        inline: true,
        slot: None,
        hold: None,
    }
}

/// A put or get through a buffer of ours, small or large, if one is free.
#[inline(always)]
fn copied((small, large): (&mut Pool, &mut Pool), access: &Access<Transfer<'_>>, key: u32) -> Option<Work> {
    let is_large = access.len > small.size();
    let pool = if is_large { large } else { small };
    let index = pool.take()?;
    let local = pool.local(index, access.len);
    let then = if access.write {
        // SAFETY: the caller's bytes are valid and unchanged (`Transport::put`); the buffer is free, so nobody is at it.
        unsafe {
            let bytes = std::slice::from_raw_parts(access.local.cast_const(), access.len);
            pool.fill(index, bytes, &[]);
        }
        Then::Report(access.context)
    } else {
        Then::Copy { context: access.context, to: access.local as usize }
    };
    let slot = Some(Slot { large: is_large, index });
    Some(Work { verb: access.verb(key, 0), then, local, inline: false, slot, hold: None })
}

/// Where what an atomic finds arrives, if a buffer is free.
#[inline(always)]
fn atomic_buffer(small: &mut Pool) -> Option<(u32, Local)> {
    let index = small.take()?;
    Some((index, small.local(index, size_of::<u64>())))
}

#[inline(always)]
fn atomic_work(verb: Verb, (index, local): (u32, Local), context: u64) -> Work {
    let slot = Some(Slot { large: false, index });
    Work { verb, then: Then::Value(context), local, inline: false, slot, hold: None }
}

impl Port {
    /// Most bytes of one put or get.
    pub fn max_transfer(&self) -> usize {
        self.bounds.piece.saturating_mul(self.most_waiting() / 2).min(1 << 30)
    }

    /// Most work requests that wait for a peer or are under way there.
    fn most_waiting(&self) -> usize {
        (self.bounds.depth * WAITING).max(64)
    }

    /// Whether a peer takes so many more work requests; an error if it is lost.
    pub fn has_room(&mut self, peer: usize, works: usize) -> TransportResult<bool> {
        self.check_open()?;
        let most = self.most_waiting();
        let link = self.link(peer)?;
        match &link.state {
            State::Lost(reason) => Err(TransportError::Peer { peer, reason: reason.clone() }),
            _ => Ok(link.works.len() + works <= most),
        }
    }

    /// Starts a put or a get.
    ///
    /// # Safety
    /// The local buffer is the device's until the completion, or until the port is closed.
    #[inline(always)]
    pub unsafe fn access(&mut self, access: Access<Transfer<'_>>) -> TransportResult<Posted> {
        in_range(access.remote, access.offset, access.len)?;
        let (peer, key) = (access.remote.peer, key_of(access.remote)?);
        let Self { links, credits, uses, bounds, small, large, .. } = self;
        // Not for none at all, either.
        if access.len.wrapping_sub(1) < bounds.copied
            && let Some(vacant) = Vacant::find(links, credits, uses, peer)
        {
            let work = match access.write && access.len <= bounds.inline as usize {
                true => inline(&access, key),
                false => match copied((small, large), &access, key) {
                    Some(work) => work,
                    None => return Ok(Posted::Again),
                },
            };
            if let Err(error) = vacant.post(work) {
                self.refused(peer, &error.to_string());
            }
            return Ok(Posted::Pending);
        }
        // SAFETY: the caller's promise.
        unsafe { self.any_access(access, key) }
    }

    /// Starts a put of bytes that are copied before this returns.
    #[inline(always)]
    pub fn copy_access(&mut self, access: Access<Transfer<'_>>) -> TransportResult<Posted> {
        in_range(access.remote, access.offset, access.len)?;
        let (peer, key) = (access.remote.peer, key_of(access.remote)?);
        let Self { links, credits, uses, bounds, .. } = self;
        if access.len.wrapping_sub(1) < bounds.inline as usize
            && let Some(vacant) = Vacant::find(links, credits, uses, peer)
        {
            if let Err(error) = vacant.post(inline(&access, key)) {
                self.refused(peer, &error.to_string());
            }
            return Ok(Posted::Pending);
        }
        self.copy_any(access, key)
    }

    /// As [`Port::copy_access`], by a buffer of ours.
    #[inline(never)]
    fn copy_any(&mut self, access: Access<Transfer<'_>>, key: u32) -> TransportResult<Posted> {
        if access.len > self.bounds.copied {
            return Err(TransportError::Range { offset: 0, bytes: access.len, len: self.bounds.copied });
        }
        if access.len == 0 {
            return Ok(Posted::Complete);
        }
        match self.has_room(access.remote.peer, 1)? {
            true => self.submit_copied(&access, key),
            false => Ok(Posted::Again),
        }
    }

    /// Starts any put or get.
    ///
    /// # Safety
    /// As [`Port::access`].
    #[inline(never)]
    unsafe fn any_access(&mut self, access: Access<Transfer<'_>>, key: u32) -> TransportResult<Posted> {
        let most = self.max_transfer();
        if access.len > most {
            return Err(TransportError::Range { offset: 0, bytes: access.len, len: most });
        }
        if access.len == 0 {
            return Ok(Posted::Complete);
        }
        let peer = access.remote.peer;
        let piece = match self.bounds.short_reads_stay {
            true => self.short_piece(&access),
            false => self.bounds.piece,
        };
        let pieces = access.len.div_ceil(piece);
        if !self.has_room(peer, pieces)? {
            return Ok(Posted::Again);
        }
        if access.write && access.len <= self.bounds.inline as usize {
            self.submit(peer, inline(&access, key), false)?;
            return Ok(Posted::Pending);
        }
        if access.len <= COPIED.min(piece) {
            return self.submit_copied(&access, key);
        }
        // SAFETY: the caller's promise; the works below keep the registration until they have ended.
        let region =
            unsafe { self.registrations.cover(&self.domain, access.local, access.len, !access.write)? };
        let works: Vec<Work> = (0..pieces)
            .map(|i| {
                let (start, last) = (i * piece, i + 1 == pieces);
                let address = access.local as u64 + start as u64;
                let len = piece.min(access.len - start) as u32;
                let local = Local { address, len, key: region.local_key() };
                let then = if last { Then::Report(access.context) } else { Then::Continue(access.context) };
                Work {
                    verb: access.verb(key, start),
                    then,
                    local,
                    inline: false,
                    slot: None,
                    hold: self.hold(Hold { parts: Box::default(), _regions: vec![region.clone()] }),
                }
            })
            .collect();
        self.submit_all(peer, &works)?;
        Ok(Posted::Pending)
    }

    /// Bytes of a work request for soft-iWARP, which answers short reads wrongly whose source crosses a page (`siw_try_1seg` in
    /// Linux' siw_qp_tx.c copies as many bytes from the first page as are in the second): of such a read none does.
    fn short_piece(&self, access: &Access<Transfer<'_>>) -> usize {
        const SHORT: usize = 32;
        const PAGE: u64 = 4096;
        let start = access.remote.base.wrapping_add(access.offset as u64);
        let left = (PAGE - start % PAGE) as usize;
        let is_hit = !access.write && access.len <= SHORT && access.len > left;
        if is_hit { left } else { self.bounds.piece }
    }

    /// A put or get through a buffer of ours.
    fn submit_copied(&mut self, access: &Access<Transfer<'_>>, key: u32) -> TransportResult<Posted> {
        let pools = (&mut self.small, &mut self.large);
        let Some(work) = copied(pools, access, key) else { return Ok(Posted::Again) };
        self.submit(access.remote.peer, work, false)?;
        Ok(Posted::Pending)
    }

    /// Starts an atomic of the device.
    #[inline(always)]
    pub fn atomic(
        &mut self,
        remote: &Remote,
        offset: usize,
        operation: NativeAtomic,
        context: u64,
    ) -> TransportResult<Posted> {
        const WORD: usize = 8;
        in_range(remote, offset, WORD)?;
        let key = key_of(remote)?;
        let address = remote.base.wrapping_add(offset as u64);
        if !address.is_multiple_of(WORD as u64) {
            return Err(TransportError::Range { offset, bytes: WORD, len: remote.len });
        }
        let Self { links, credits, uses, small, .. } = self;
        if let Some(vacant) = Vacant::find(links, credits, uses, remote.peer) {
            let Some(buffer) = atomic_buffer(small) else { return Ok(Posted::Again) };
            // Each with its own work request, whose words the compiler then knows.
            let posted = match operation {
                NativeAtomic::FetchAdd(add) => {
                    vacant.post(atomic_work(Verb::FetchAdd { address, key, add }, buffer, context))
                }
                NativeAtomic::CompareSwap { compare, swap } => {
                    let verb = Verb::CompareSwap { address, key, compare, swap };
                    vacant.post(atomic_work(verb, buffer, context))
                }
            };
            if let Err(error) = posted {
                self.refused(remote.peer, &error.to_string());
            }
            return Ok(Posted::Pending);
        }
        self.atomic_behind(remote.peer, (address, key), operation, context)
    }

    /// The same where others are under way or wait, or there is no connection.
    #[inline(never)]
    fn atomic_behind(
        &mut self,
        peer: usize,
        (address, key): (u64, u32),
        operation: NativeAtomic,
        context: u64,
    ) -> TransportResult<Posted> {
        let verb = match operation {
            NativeAtomic::FetchAdd(add) => Verb::FetchAdd { address, key, add },
            NativeAtomic::CompareSwap { compare, swap } => Verb::CompareSwap { address, key, compare, swap },
        };
        if !self.has_room(peer, 1)? {
            return Ok(Posted::Again);
        }
        let Some(buffer) = atomic_buffer(&mut self.small) else { return Ok(Posted::Again) };
        self.submit(peer, atomic_work(verb, buffer, context), false)?;
        Ok(Posted::Pending)
    }

    /// Sends a message, which is copied.
    pub fn send(&mut self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        let len = header.len() + payload.len();
        if len > self.large.size() {
            return Err(TransportError::Range { offset: 0, bytes: len, len: self.large.size() });
        }
        if !self.has_room(peer, 1)? {
            return Ok(Posted::Again);
        }
        let Some(slot) = self.take_slot(len) else { return Ok(Posted::Again) };
        let inline = len <= self.bounds.inline as usize;
        let local = self.fill(slot, header, payload);
        let work =
            Work { verb: Verb::Send, then: Then::Nothing, local, inline, slot: Some(slot), hold: None };
        self.submit(peer, work, true)?;
        Ok(Posted::Complete)
    }

    fn fill(&mut self, slot: Slot, header: &[u8], payload: &[u8]) -> Local {
        let pool = self.pool(slot);
        // SAFETY: the buffer was free: the device does not have it, and we are under the port's lock.
        unsafe { pool.fill(slot.index, header, payload) };
        pool.local(slot.index, header.len() + payload.len())
    }
}
