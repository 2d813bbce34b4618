//! Limits of one core: stores, atomics, copies.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use transom_transport::memory::store_load_fence;

use super::Limit;
use crate::area::Buffer;

/// Private memory to work on, which begins on pages as that of [`crate::area::Area`]s does.
#[derive(Debug)]
pub struct Memory {
    word: AtomicU64,
    source: Buffer<u8>,
    target: MmapMut,
    addends: Buffer<f64>,
    sums: Buffer<f64>,
}

impl Memory {
    /// For transfers within `bytes`, and additions of up to `sums` bytes.
    ///
    /// # Errors
    /// No memory.
    pub fn new(bytes: usize, sums: usize) -> std::io::Result<Self> {
        // Its pages are there, and not all of them the system's one page of zeros.
        let mut target = MmapMut::map_anon(bytes.max(1))?;
        target.fill(1);
        Ok(Self {
            word: AtomicU64::new(0),
            source: Buffer::new(bytes, 1),
            target,
            addends: Buffer::new(sums / 8, 1.0),
            sums: Buffer::new(sums / 8, 0.0),
        })
    }

    /// Time of `count` operations; zero for limits that are not this module's.
    pub fn sample(&mut self, limit: Limit, count: u64) -> Duration {
        match limit {
            Limit::Store => time(count, || self.store()),
            Limit::LockedStore => time(count, || self.store_and_fence()),
            Limit::AtomicAdd => time(count, || self.add()),
            Limit::TwoAtomicAdds => time(2 * count, || self.add()),
            Limit::Copy(transfers) => {
                let mut offsets = transfers.offsets();
                time(count, || self.copy(offsets.step(), transfers.bytes))
            }
            Limit::CopyBack(transfers) => {
                let mut offsets = transfers.offsets();
                time(count, || self.copy_back(offsets.step(), transfers.bytes))
            }
            Limit::AddLoop(bytes) => time(count, || self.add_doubles(bytes)),
            _ => Duration::ZERO,
        }
    }

    /// One atomic addition.
    #[inline]
    pub fn add(&self) {
        black_box(&self.word).fetch_add(1, Ordering::AcqRel);
    }

    /// One store.
    #[inline]
    pub fn store(&self) {
        black_box(&self.word).store(1, Ordering::Release);
    }

    /// One store, before every later load.
    #[inline]
    pub fn store_and_fence(&self) {
        self.store();
        store_load_fence();
    }

    /// One copy of `bytes` to the mapping, at a place of both.
    #[inline]
    pub fn copy(&mut self, at: usize, bytes: usize) {
        let place = at..at + bytes;
        self.target[place.clone()].copy_from_slice(black_box(&self.source[place]));
        black_box(&mut self.target);
    }

    /// One copy of `bytes` from the mapping.
    fn copy_back(&mut self, at: usize, bytes: usize) {
        let place = at..at + bytes;
        self.source[place.clone()].copy_from_slice(black_box(&self.target[place]));
        black_box(&mut self.source);
    }

    /// One addition of `bytes` of doubles.
    fn add_doubles(&mut self, bytes: usize) {
        let addends = black_box(&self.addends[..bytes / 8]);
        self.sums.iter_mut().zip(addends).for_each(|(sum, addend)| *sum += addend);
        black_box(&mut self.sums);
    }
}

fn time(count: u64, mut operation: impl FnMut()) -> Duration {
    operation();
    let start = Instant::now();
    for _ in 0..count {
        operation();
    }
    start.elapsed()
}
