//! Registered buffers of one size.

use std::sync::Arc;

use ibverbs::{Access, Local, MemoryRegion, ProtectionDomain};
use memmap2::{MmapMut, MmapRaw};
use transom_transport::{TransportError, TransportResult};

use crate::setup::refused;

/// Buffers of one size, in one mapping that the device may access. The registration goes first.
#[derive(Debug)]
pub(crate) struct Pool {
    region: Option<MemoryRegion>,
    /// The registration's, for work requests; 0 without one.
    key: u32,
    memory: MmapRaw,
    size: usize,
    count: usize,
    free: Vec<u32>,
}

impl Pool {
    pub fn new(
        domain: &Arc<ProtectionDomain>,
        count: usize,
        size: usize,
        access: Access,
    ) -> TransportResult<Self> {
        let mut pool = Self::unregistered(count, size)?;
        let (memory, bytes) = (pool.memory.as_mut_ptr(), count * size);
        // SAFETY: the mapping outlives the registration, which is dropped first, and is only used through pointers.
        let region = unsafe { MemoryRegion::register(domain, memory, bytes, access) };
        let region = region.map_err(|e| refused(bytes, &e))?;
        pool.key = region.local_key();
        pool.region = Some(region);
        Ok(pool)
    }

    /// The same without a registration: somebody else makes one of each part that is used.
    pub fn unregistered(count: usize, size: usize) -> TransportResult<Self> {
        let bytes = count * size;
        let memory: MmapRaw = MmapMut::map_anon(bytes)
            .map_err(|e| TransportError::NoMemory { bytes, reason: format!("buffers: {e}") })?
            .into();
        Ok(Self { region: None, key: 0, memory, size, count, free: (0..count as u32).rev().collect() })
    }

    /// The key by which peers access it, if they may.
    pub fn remote_key(&self) -> u32 {
        self.region.as_ref().map_or(0, MemoryRegion::remote_key)
    }

    /// Bytes of each buffer.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Takes a free buffer.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives one back, which nobody uses any more.
    #[inline]
    pub fn give(&mut self, index: u32) {
        self.free.push(index);
    }

    /// First byte of a buffer of [`Pool::size`] bytes.
    #[inline(always)]
    pub fn at(&self, index: u32) -> *mut u8 {
        assert!((index as usize) < self.count, "no such buffer");
        self.memory.as_mut_ptr().wrapping_add(index as usize * self.size)
    }

    /// A buffer's first bytes, for a work request.
    #[inline]
    pub fn local(&self, index: u32, len: usize) -> Local {
        Local { address: self.at(index) as u64, len: len.min(self.size) as u32, key: self.key }
    }

    /// The first bytes of a buffer.
    ///
    /// # Safety
    /// Nobody writes to the buffer, the device included, while the slice lives.
    #[inline]
    pub unsafe fn bytes(&self, index: u32, len: usize) -> &[u8] {
        // SAFETY: inside the mapping by `at` and the bound on len; zeroed or written, so initialised; not written to
        // meanwhile, by contract.
        unsafe { std::slice::from_raw_parts(self.at(index), len.min(self.size)) }
    }

    /// The first 8 bytes of a buffer, which has so many.
    ///
    /// # Safety
    /// As [`Pool::bytes`].
    #[inline(always)]
    pub unsafe fn word(&self, index: u32) -> u64 {
        assert!(self.size >= size_of::<u64>(), "less than a word");
        // SAFETY: inside the mapping by `at` and the size; initialised and not written to, as in `bytes`.
        unsafe { self.at(index).cast::<u64>().read_unaligned() }
    }

    /// Fills the start of a buffer with two parts.
    ///
    /// # Safety
    /// Nobody reads or writes the buffer meanwhile, the device included.
    pub unsafe fn fill(&self, index: u32, first: &[u8], second: &[u8]) {
        assert!(first.len() + second.len() <= self.size, "more than the buffer holds");
        let to = self.at(index);
        // SAFETY: both parts fit, as just checked; nobody else is at the buffer, by contract, so that no part overlaps it.
        unsafe {
            std::ptr::copy_nonoverlapping(first.as_ptr(), to, first.len());
            std::ptr::copy_nonoverlapping(second.as_ptr(), to.add(first.len()), second.len());
        }
    }
}
