//! What waits to be sent to a peer: a buffer of records, and between them long data that is sent from where it is.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use arrayvec::ArrayVec;
use transom_transport::Span;
use zerocopy::{Immutable, IntoBytes};

use crate::socket::{self, PARTS, Parts, Socket};

/// A buffer that has become larger than this is given back when it is empty.
const KEPT: usize = 128 << 10;

/// Keeps long data where it is until it was sent.
#[derive(Debug)]
pub(crate) enum Hold {
    /// Its owner does, until the operation ends.
    Caller,
    /// It is part of a region.
    Region(Arc<Span>),
    /// It was copied.
    #[expect(dead_code, reason = "read through its address only")]
    Copy(Box<[u8]>),
}

/// Data that is sent from where it is.
#[derive(Debug)]
struct Long {
    /// How many bytes of the buffer come before it, counted from the buffer's first byte ever.
    behind: u64,
    address: usize,
    len: usize,
    hold: Hold,
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Bytes of the buffer that were sent.
    sent: usize,
    /// How many were sent ever.
    passed: u64,
    long: VecDeque<Long>,
    /// Bytes of `long`, and those of them that are a region's.
    long_bytes: usize,
    of_regions: usize,
}

impl Output {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.long.is_empty()
    }

    /// Bytes in the buffer.
    #[inline]
    pub fn buffered(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Bytes that wait, in the buffer and where they are.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.buffered() + self.long_bytes
    }

    /// Bytes of regions that wait where they are.
    #[inline]
    pub fn of_regions(&self) -> usize {
        self.of_regions
    }

    #[inline]
    pub fn push(&mut self, part: &(impl IntoBytes + Immutable + ?Sized)) {
        self.bytes.extend_from_slice(part.as_bytes());
    }

    /// Room for so many more bytes, to be filled by `fill`.
    pub fn push_with<E>(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        fill(&mut self.bytes[start..])
    }

    /// Appends data that stays where it is.
    pub fn push_long(&mut self, address: usize, len: usize, hold: Hold) {
        let behind = self.passed + self.buffered() as u64;
        self.long_bytes += len;
        self.of_regions += if matches!(hold, Hold::Caller) { 0 } else { len };
        self.long.push_back(Long { behind, address, len, hold });
    }

    /// Copies what waits of this region: its memory goes.
    pub fn release(&mut self, region: &Arc<Span>) {
        for long in &mut self.long {
            if matches!(&long.hold, Hold::Region(held) if Arc::ptr_eq(held, region)) {
                let mut copy = vec![0; long.len].into_boxed_slice();
                // What is not inside of the region was never pushed.
                let _ = region.copy_out(long.address - region.address(), &mut copy);
                long.address = copy.as_ptr() as usize;
                long.hold = Hold::Copy(copy);
            }
        }
    }

    /// Sends what the socket takes. Whether that was all.
    #[inline]
    pub fn send(&mut self, socket: &Socket) -> io::Result<bool> {
        while !self.is_empty() {
            let (moved, wanted) = if self.long.is_empty() {
                (socket.send(&self.bytes[self.sent..])?, self.buffered())
            } else {
                self.send_parts(socket)?
            };
            let Some(moved) = moved else { return Ok(false) };
            self.advance(moved);
            if moved < wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends what is in the buffer and `data` behind it, of which a copy is kept as far as the socket does not take it.
    pub fn send_with(&mut self, socket: &Socket, data: &[u8]) -> io::Result<()> {
        let buffered = self.buffered();
        let mut sent = 0;
        if self.long.is_empty() {
            let mut parts: Parts = ArrayVec::new();
            parts.push(socket::part(self.bytes[self.sent..].as_ptr() as usize, buffered));
            parts.push(socket::part(data.as_ptr() as usize, data.len()));
            // SAFETY: the buffer is ours, and `data` a slice.
            let moved = unsafe { socket.send_parts(&mut parts) }?.unwrap_or(0);
            self.advance(moved.min(buffered));
            sent = moved.saturating_sub(buffered);
            self.passed += sent as u64;
        }
        self.push(&data[sent..]);
        Ok(())
    }

    /// Sends records, each of several pieces, with one call, if nothing else waits: how many were begun. Of what the socket does not take
    /// of the last of these a copy is kept.
    pub fn send_records<const N: usize>(
        &mut self,
        socket: &Socket,
        records: &[[&[u8]; N]],
    ) -> io::Result<usize> {
        if !self.is_empty() {
            return Ok(0);
        }
        let all = records.iter().flatten().map(|piece| socket::part(piece.as_ptr() as usize, piece.len()));
        let mut parts: Parts = all.take(PARTS).collect();
        // SAFETY: slices.
        let mut moved = unsafe { socket.send_parts(&mut parts) }?.unwrap_or(0);
        let mut begun = 0;
        for record in records {
            if moved == 0 {
                break;
            }
            begun += 1;
            for piece in record {
                let (_, rest) = piece.split_at(moved.min(piece.len()));
                moved -= piece.len() - rest.len();
                self.push(rest);
            }
        }
        Ok(begun)
    }

    /// Sends as many pieces as go with one call: how many bytes were sent, of how many.
    fn send_parts(&mut self, socket: &Socket) -> io::Result<(Option<usize>, usize)> {
        let mut parts: Parts = ArrayVec::new();
        let (mut at, mut wanted) = (self.sent, 0);
        let mut add = |parts: &mut Parts, address: usize, len: usize| {
            if len > 0 {
                parts.push(socket::part(address, len));
                wanted += len;
            }
        };
        for long in &self.long {
            if parts.len() + 3 > PARTS {
                break;
            }
            let until = self.sent + (long.behind - self.passed) as usize;
            add(&mut parts, self.bytes[at..until].as_ptr() as usize, until - at);
            add(&mut parts, long.address, long.len);
            at = until;
        }
        if parts.len() + 3 <= PARTS {
            add(&mut parts, self.bytes[at..].as_ptr() as usize, self.bytes.len() - at);
        }
        // SAFETY: the buffer is ours. Long data stays valid while it is held: by the promise of `Transport::put`, which ends
        // with the completion (the peer's answer, or an error, after which the link's output is empty); by a span, whose
        // region copies it when it goes (`release`); or by the copy.
        let moved = unsafe { socket.send_parts(&mut parts) }?;
        Ok((moved, wanted))
    }

    fn advance(&mut self, mut moved: usize) {
        loop {
            let before = match self.long.front() {
                Some(long) => (long.behind - self.passed) as usize,
                None => self.buffered(),
            };
            let some = moved.min(before);
            self.sent += some;
            self.passed += some as u64;
            moved -= some;
            let Some(long) = self.long.front_mut() else { break };
            let gone = moved.min(long.len);
            self.long_bytes -= gone;
            if !matches!(long.hold, Hold::Caller) {
                self.of_regions -= gone;
            }
            if moved < long.len || some < before {
                long.address += moved;
                long.len -= moved;
                break;
            }
            moved -= long.len;
            self.long.pop_front();
        }
        self.tidy();
    }

    /// Forgets what was sent.
    #[inline]
    fn tidy(&mut self) {
        if self.sent == self.bytes.len() {
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent > KEPT {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}
