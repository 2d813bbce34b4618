//! Requests on their way to a queue pair: built in place, without the heap, and posted as one chain.

use std::ffi::c_int;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use ibverbs_sys as sys;

use crate::{AddressHandle, Local, VerbsError};

/// Requests that a batch holds.
pub const BATCH: usize = 32;
/// Parts that a request can have.
pub const MAX_PARTS: usize = 16;
/// Parts that a batch holds: enough for a long list in each request.
const PARTS: usize = BATCH * MAX_PARTS;

/// What a request does (ibv_post_send(3)).
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// Writes to the peer's memory.
    Write {
        /// Where, in the peer's process.
        address: u64,
        /// The key of the peer's region.
        key: u32,
    },
    /// Reads the peer's memory.
    Read {
        /// Where, in the peer's process.
        address: u64,
        /// The key of the peer's region.
        key: u32,
    },
    /// Adds to 64 bits of the peer's memory and brings the old value.
    FetchAdd {
        /// Where, in the peer's process; a multiple of eight.
        address: u64,
        /// The key of the peer's region.
        key: u32,
        /// What to add; the sum wraps.
        add: u64,
    },
    /// Replaces 64 bits of the peer's memory if they are as expected, and brings the old value.
    CompareSwap {
        /// Where, in the peer's process; a multiple of eight.
        address: u64,
        /// The key of the peer's region.
        key: u32,
        /// What is expected.
        compare: u64,
        /// What to replace it by.
        swap: u64,
    },
    /// Sends a message.
    Send,
    /// Sends a datagram.
    SendTo {
        /// The way to the peer.
        handle: &'a AddressHandle,
        /// The peer's queue pair.
        number: u32,
        /// What the peer expects ([`crate::QueuePair::initialise_datagram`]).
        qkey: u32,
    },
}

/// A request to a peer (ibv_post_send(3)).
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// A number for its completion.
    pub id: u64,
    /// What it does.
    pub operation: Operation<'a>,
    /// Memory of this process: what is sent, one after the other, or where the answer is put.
    pub parts: &'a [Local],
    /// Whether its success is reported. A failure always is.
    pub signalled: bool,
    /// Whether the bytes travel in the request, which then needs no registered memory. Not for reads and atomics.
    pub inline: bool,
    /// Whether it waits for reads and atomics posted before it.
    pub fence: bool,
    /// Whether a message sets off a notification that asked for such ones only.
    pub solicited: bool,
}

/// A request that does not go into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// Post first.
    #[error("the batch is full")]
    Full,
    /// It never will.
    #[error("a request has more than {MAX_PARTS} parts")]
    TooManyParts,
}

/// A batch that was not taken whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}; {taken} requests before it were taken")]
pub struct PostError {
    /// Requests that the device took, from the front. They will complete.
    pub taken: usize,
    /// Why the next one was refused.
    pub error: VerbsError,
}

/// Up to [`BATCH`] requests. About 12 KiB that are written once here and then only where requests are put: keep it and use
/// it again.
pub struct Batch {
    requests: [sys::ibv_send_wr; BATCH],
    parts: [Local; PARTS],
    /// Requests `first..end` are there, and have the parts `first_part..end_part`, in the same order without gaps.
    first: usize,
    end: usize,
    first_part: usize,
    end_part: usize,
}

impl Batch {
    /// An empty one.
    pub fn new() -> Batch {
        // SAFETY: numbers, pointers that are not followed before `link` sets them, and unions of such: zero is valid.
        let requests = unsafe { std::mem::zeroed() };
        let parts = [Local { address: 0, len: 0, key: 0 }; PARTS];
        Batch { requests, parts, first: 0, end: 0, first_part: 0, end_part: 0 }
    }

    /// Appends a request.
    #[inline]
    pub fn push(&mut self, request: &Request<'_>) -> Result<(), PushError> {
        let count = request.parts.len();
        let space = self.parts.get_mut(self.end_part..self.end_part + count);
        let (Some(slot), Some(space)) = (self.requests.get_mut(self.end), space) else {
            return Err(if count > MAX_PARTS { PushError::TooManyParts } else { PushError::Full });
        };
        if count > MAX_PARTS {
            return Err(PushError::TooManyParts);
        }
        match (request.parts, space) {
            // The most common: no call to copy.
            ([part], [place]) => *place = *part,
            (parts, space) => space.copy_from_slice(parts),
        }
        // SAFETY: an exclusive borrow.
        unsafe { fill(slot, request) };
        self.end += 1;
        self.end_part += count;
        Ok(())
    }

    /// Requests in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Drops all requests.
    #[inline]
    pub fn clear(&mut self) {
        (self.first, self.end, self.first_part, self.end_part) = (0, 0, 0, 0);
    }

    /// Drops the first `count` requests, or all.
    pub fn skip(&mut self, count: usize) {
        let skipped = self.first..self.first + count.min(self.len());
        self.first = skipped.end;
        self.first_part +=
            self.requests[skipped].iter().map(|request| request.num_sge as usize).sum::<usize>();
        if self.is_empty() {
            self.clear();
        }
    }

    /// Makes a chain of the requests, valid until the batch is moved or changed; none if it is empty.
    #[inline]
    pub(crate) fn link(&mut self) -> Option<*mut sys::ibv_send_wr> {
        let (first, end, mut part) = (self.first, self.end, self.first_part);
        if first == end {
            return None;
        }
        let requests = self.requests.as_mut_ptr();
        let parts = self.parts.as_mut_ptr().cast::<sys::ibv_sge>();
        for index in first..end {
            // SAFETY: `push` keeps `end` within the array, and the sum of all parts within theirs. Pointers are made from
            // the whole arrays', so that following them stays within what they may reach.
            unsafe {
                let request = requests.add(index);
                (*request).sg_list = parts.add(part);
                (*request).next = if index + 1 < end { requests.add(index + 1) } else { null_mut() };
                part += (*request).num_sge as usize;
            }
        }
        // SAFETY: as above.
        Some(unsafe { requests.add(first) })
    }

    /// How many requests are before the one at that address; zero if it is none of these.
    pub(crate) fn position(&self, request: *const sys::ibv_send_wr) -> usize {
        let all = &self.requests[self.first..self.end];
        all.iter().position(|at| std::ptr::eq(at, request)).unwrap_or(0)
    }
}

/// A request alone, with its parts where they are. What its opcode does not use stays as it was.
#[inline(always)]
pub(crate) fn write(raw: &mut MaybeUninit<sys::ibv_send_wr>, request: &Request<'_>) -> *mut sys::ibv_send_wr {
    let raw = raw.as_mut_ptr();
    // SAFETY: fields of an exclusive borrow, which are written without being read.
    unsafe {
        (&raw mut (*raw).next).write(null_mut());
        (&raw mut (*raw).sg_list).write(request.parts.as_ptr().cast_mut().cast());
        fill(raw, request);
    }
    raw
}

/// Writes all of a request but its links to other memory.
///
/// # Safety
/// `raw` is valid for writes.
#[inline(always)]
unsafe fn fill(raw: *mut sys::ibv_send_wr, request: &Request<'_>) {
    // SAFETY: fields of what the caller vouches for, written without being read.
    unsafe {
        (&raw mut (*raw).wr_id).write(request.id);
        (&raw mut (*raw).num_sge).write(request.parts.len() as c_int);
        (&raw mut (*raw).send_flags).write(flags(request));
        let (opcode, target) = (&raw mut (*raw).opcode, &raw mut (*raw).wr);
        let rdma = |address, key| {
            (&raw mut (*target).rdma.remote_addr).write(address);
            (&raw mut (*target).rdma.rkey).write(key);
        };
        let atomic = |address, key, compare_add, swap| {
            let atomic = sys::ibv_send_wr_atomic { remote_addr: address, compare_add, swap, rkey: key };
            (&raw mut (*target).atomic).write(atomic);
        };
        match request.operation {
            Operation::Write { address, key } => {
                opcode.write(sys::IBV_WR_RDMA_WRITE);
                rdma(address, key);
            }
            Operation::Read { address, key } => {
                opcode.write(sys::IBV_WR_RDMA_READ);
                rdma(address, key);
            }
            Operation::FetchAdd { address, key, add } => {
                opcode.write(sys::IBV_WR_ATOMIC_FETCH_AND_ADD);
                atomic(address, key, add, 0);
            }
            Operation::CompareSwap { address, key, compare, swap } => {
                opcode.write(sys::IBV_WR_ATOMIC_CMP_AND_SWP);
                atomic(address, key, compare, swap);
            }
            Operation::Send => opcode.write(sys::IBV_WR_SEND),
            Operation::SendTo { handle, number, qkey } => {
                opcode.write(sys::IBV_WR_SEND);
                let ud = sys::ibv_send_wr_ud { ah: handle.as_ptr(), remote_qpn: number, remote_qkey: qkey };
                (&raw mut (*target).ud).write(ud);
            }
        }
    }
}

#[inline(always)]
fn flags(request: &Request<'_>) -> u32 {
    let flag = |set: bool, flag: sys::ibv_send_flags| if set { flag } else { 0 };
    flag(request.signalled, sys::IBV_SEND_SIGNALED)
        | flag(request.inline, sys::IBV_SEND_INLINE)
        | flag(request.fence, sys::IBV_SEND_FENCE)
        | flag(request.solicited, sys::IBV_SEND_SOLICITED)
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("requests", &self.len()).finish_non_exhaustive()
    }
}

// SAFETY: the pointers in it are set by `link` and followed only by the call that comes right after; an address handle's is
// followed only by `QueuePair::post`, whose caller vouches for it, and may be used from any thread.
unsafe impl Send for Batch {}
// SAFETY: as above; nothing changes behind a shared reference.
unsafe impl Sync for Batch {}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
