//! Limits of one core: stores, atomics, copies.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use transom_transport::memory::store_load_fence;

use super::Limit;

/// Private memory to work on: a source on the heap and a target in a mapping of its own, like a window.
#[derive(Debug)]
pub struct Memory {
    word: AtomicU64,
    source: Vec<u8>,
    target: MmapMut,
    addends: Vec<f64>,
    sums: Vec<f64>,
}

impl Memory {
    /// For transfers of up to `bytes`.
    ///
    /// # Errors
    /// No memory.
    pub fn new(bytes: usize) -> std::io::Result<Self> {
        Ok(Self {
            word: AtomicU64::new(0),
            source: vec![1; bytes],
            target: MmapMut::map_anon(bytes.max(1))?,
            addends: vec![1.0; bytes / 8],
            sums: vec![0.0; bytes / 8],
        })
    }

    /// Time of `count` operations; zero for limits that are not this module's.
    pub fn sample(&mut self, limit: Limit, count: u64) -> Duration {
        match limit {
            Limit::Store => time(count, || self.store()),
            Limit::LockedStore => time(count, || self.store_and_fence()),
            Limit::AtomicAdd => time(count, || self.add()),
            Limit::TwoAtomicAdds => time(2 * count, || self.add()),
            Limit::Copy(bytes) => time(count, || self.copy(bytes)),
            Limit::CopyBack(bytes) => time(count, || self.copy_back(bytes)),
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

    /// One copy of `bytes` to the mapping.
    #[inline]
    pub fn copy(&mut self, bytes: usize) {
        self.target[..bytes].copy_from_slice(black_box(&self.source[..bytes]));
        black_box(&mut self.target);
    }

    /// One copy of `bytes` from the mapping. Unlike the mapping, the heap's memory begins 16 bytes after a page, which
    /// makes stores to it slower.
    fn copy_back(&mut self, bytes: usize) {
        self.source[..bytes].copy_from_slice(black_box(&self.target[..bytes]));
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
