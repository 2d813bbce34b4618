//! Non-contiguous accesses in a message: a list of runs (offset, length), then their bytes one behind the other.

use zerocopy::native_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One run of bytes in the target's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct WireRun {
    /// As the target's agent counts it.
    offset: U64,
    /// Bytes.
    bytes: U64,
}

impl WireRun {
    /// Offset and length, if this process can count them.
    pub fn parts(&self) -> Option<(usize, usize)> {
        Some((usize::try_from(self.offset.get()).ok()?, usize::try_from(self.bytes.get()).ok()?))
    }
}

/// Bytes of a run on the wire.
pub const RUN_BYTES: usize = size_of::<WireRun>();

/// Splits a payload into `count` runs and what follows them.
pub fn split(payload: &[u8], count: u64) -> Option<(&[WireRun], &[u8])> {
    let count = usize::try_from(count).ok()?;
    let (runs, data) = payload.split_at_checked(count.checked_mul(RUN_BYTES)?)?;
    Some((<[WireRun]>::ref_from_bytes(runs).ok()?, data))
}

/// Collects runs until a message is full.
#[derive(Debug)]
pub struct Batch {
    room: usize,
    runs: Vec<WireRun>,
    data: Vec<u8>,
    /// Bytes that the runs have at the target: those of `data`, or of the reply.
    bytes: usize,
}

impl Batch {
    /// For messages of `capacity` bytes of payload.
    pub fn new(room: usize) -> Self {
        Self { room, runs: Vec::new(), data: Vec::new(), bytes: 0 }
    }

    /// How many of `bytes` more bytes fit: whole elements of `unit` bytes.
    pub fn fits(&self, bytes: usize, unit: usize) -> usize {
        let used = (self.runs.len() + 1) * RUN_BYTES + self.bytes;
        let free = self.room.saturating_sub(used).min(bytes);
        free - free % unit.max(1)
    }

    /// Adds a run; `data` is what goes there, or nothing if it is asked for.
    pub fn push(&mut self, offset: u64, bytes: usize, data: &[u8]) {
        match self.runs.last_mut() {
            Some(last) if last.offset.get() + last.bytes.get() == offset => last.bytes += bytes as u64,
            _ => self.runs.push(WireRun { offset: offset.into(), bytes: (bytes as u64).into() }),
        }
        self.data.extend_from_slice(data);
        self.bytes += bytes;
    }

    /// Number of runs, the payload, and the bytes that the runs have; leaves the batch empty.
    pub fn take(&mut self) -> (usize, Vec<u8>, usize) {
        let mut payload = self.runs.as_bytes().to_vec();
        payload.append(&mut self.data);
        let taken = (self.runs.len(), payload, self.bytes);
        self.runs.clear();
        self.bytes = 0;
        taken
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_apart_again() {
        let mut batch = Batch::new(100);
        assert_eq!(batch.fits(1000, 8), 80);
        batch.push(64, 8, &[1; 8]);
        batch.push(72, 8, &[2; 8]);
        assert_eq!(batch.fits(1000, 8), 48);
        batch.push(200, 4, &[3; 4]);
        let (count, payload, bytes) = batch.take();
        assert_eq!((count, bytes, batch.is_empty()), (2, 20, true));
        let (runs, data) = split(&payload, 2).unwrap();
        let runs: Vec<_> = runs.iter().filter_map(WireRun::parts).collect();
        assert_eq!(runs, [(64, 16), (200, 4)]);
        assert_eq!(data.len(), 20);
        assert!(split(&payload, 4).is_none() && split(&payload, u64::MAX).is_none());
    }
}
