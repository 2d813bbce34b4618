//! Puts and gets of several parts of the caller's memory by one work request: copied through a buffer of ours where they are
//! short, else named to the device one by one.

use std::ops::Range;
use std::sync::Arc;

use ibverbs::{Local, MemoryRegion};
use transom_transport::{ListTransfer, Lists, Part, Posted, TransportError, TransportResult};

use crate::port::Port;
use crate::posting::{Access, COPIED, in_range, key_of, verb_at};
use crate::work::{Hold, Then, Verb, Work};

/// Bytes of all parts that the device is named.
const LISTED: usize = 1 << 20;
/// Memory from the first part to the last is registered as one if it is at most so many times what is in the parts.
const SPARSE: usize = 4;

impl Access<ListTransfer<'_>> {
    fn verb(&self, key: u32) -> Verb {
        verb_at(self.write, self.remote, self.offset, key)
    }

    /// The parts, as memory of this process that a key stands for.
    fn locals(&self, key: impl Fn(usize) -> u32) -> Box<[Local]> {
        let address = self.local as u64;
        let local = |(i, part): (usize, &Part)| Local {
            address: address + part.offset as u64,
            len: part.len as u32,
            key: key(i),
        };
        self.parts.iter().enumerate().map(local).collect()
    }
}

impl Port {
    /// What lists may be. None for soft-iWARP, of whose short reads each needs a look at where it is (`Port::short_piece`).
    pub fn lists(&self) -> Option<Lists> {
        let bytes = LISTED.min(self.bounds.piece);
        let lists = Lists { put: self.bounds.put_parts, get: self.bounds.get_parts, bytes };
        (!self.bounds.short_reads_stay).then_some(lists)
    }

    /// Most bytes that are copied.
    fn most_copied(&self) -> usize {
        COPIED.min(self.bounds.piece)
    }

    /// Starts a put or a get.
    ///
    /// # Safety
    /// The local buffer is the device's until the completion, or until the port is closed.
    pub unsafe fn list(&mut self, access: &Access<ListTransfer<'_>>) -> TransportResult<Posted> {
        let (bytes, _) = Part::measure(access.parts);
        in_range(access.remote, access.offset, bytes)?;
        if bytes == 0 {
            return Ok(Posted::Complete);
        }
        let key = key_of(access.remote)?;
        if !self.has_room(access.remote.peer, 1)? {
            return Ok(Posted::Again);
        }
        if bytes <= self.most_copied() {
            return self.copied_list(access, key, bytes);
        }
        let most = if access.write { self.bounds.put_parts } else { self.bounds.get_parts };
        if access.parts.len() > most || bytes > LISTED.min(self.bounds.piece) {
            return Err(TransportError::Range { offset: 0, bytes, len: LISTED });
        }
        // SAFETY: the caller's promise; the work keeps the registrations until it has ended.
        let list = unsafe { self.registered(access, bytes)? };
        let local = Local { address: 0, len: bytes as u32, key: 0 };
        let hold = self.hold(list);
        self.submit(
            access.remote.peer,
            Work {
                verb: access.verb(key),
                then: Then::Report(access.context),
                local,
                inline: false,
                slot: None,
                hold,
            },
            false,
        )?;
        Ok(Posted::Pending)
    }

    /// By way of a buffer of ours.
    fn copied_list(
        &mut self,
        access: &Access<ListTransfer<'_>>,
        key: u32,
        bytes: usize,
    ) -> TransportResult<Posted> {
        let Some(slot) = self.take_slot(bytes) else { return Ok(Posted::Again) };
        let inline = access.write && bytes <= self.bounds.inline as usize;
        let pool = self.pool(slot);
        let local = pool.local(slot.index, bytes);
        let (then, hold) = if access.write {
            let mut to = pool.at(slot.index);
            for part in access.parts {
                // SAFETY: the caller's bytes are valid and unchanged (`Transport::put_list`); the buffer is free, so nobody is
                // at it, and holds the sum of all parts.
                unsafe {
                    let from = access.local.wrapping_add(part.offset).cast_const();
                    std::ptr::copy_nonoverlapping(from, to, part.len);
                    to = to.add(part.len);
                }
            }
            (Then::Report(access.context), None)
        } else {
            let hold = Hold { parts: access.locals(|_| 0), _regions: Vec::new() };
            (Then::Scatter(access.context), self.hold(hold))
        };
        let verb = access.verb(key);
        let work = Work { verb, then, local, inline, slot: Some(slot), hold };
        self.submit(access.remote.peer, work, false)?;
        Ok(Posted::Pending)
    }

    /// The parts, registered: with what is between them, or one by one where that is much.
    ///
    /// # Safety
    /// As [`Port::list`], while the result lives.
    unsafe fn registered(
        &mut self,
        access: &Access<ListTransfer<'_>>,
        bytes: usize,
    ) -> TransportResult<Hold> {
        let start = access.parts.iter().map(|part| part.offset).min().unwrap_or(0);
        let end = Part::measure(access.parts).1;
        let mut cover = |range: Range<usize>| -> TransportResult<Arc<MemoryRegion>> {
            let start = access.local.wrapping_add(range.start);
            // SAFETY: the device is named the parts only, which are valid; registering what is no memory fails (ibv_reg_mr(3)).
            unsafe { self.registrations.cover(&self.domain, start, range.len(), !access.write) }
        };
        // What is between them need not even be memory.
        let whole = if end - start <= SPARSE * bytes { cover(start..end).ok() } else { None };
        let regions = match whole {
            Some(region) => vec![region],
            None => {
                let each = access.parts.iter().map(|part| cover(part.offset..part.offset + part.len));
                each.collect::<TransportResult<Vec<_>>>()?
            }
        };
        let parts = access.locals(|i| regions.get(i).unwrap_or(&regions[0]).local_key());
        Ok(Hold { parts, _regions: regions })
    }
}
