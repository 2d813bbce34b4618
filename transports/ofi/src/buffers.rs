//! Memory for messages: buffers of one size, in one mapping that the provider may read and write.

use memmap2::{MmapMut, MmapRaw};
use transom_transport::{TransportError, TransportResult};

/// Buffers of one size. Pages are taken from the system when first used.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: MmapRaw,
    size: usize,
    count: usize,
}

impl Buffers {
    pub fn new(count: usize, size: usize) -> TransportResult<Self> {
        let bytes = count * size;
        let memory = MmapMut::map_anon(bytes)
            .map_err(|e| TransportError::NoMemory { bytes, reason: format!("message buffers: {e}") })?;
        Ok(Self { memory: memory.into(), size, count })
    }

    pub fn len(&self) -> usize {
        self.size * self.count
    }

    pub fn start(&self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }

    /// First byte of a buffer of [`Buffers::size`] bytes.
    pub fn at(&self, index: usize) -> *mut u8 {
        assert!(index < self.count, "no such buffer");
        self.start().wrapping_add(index * self.size)
    }

    /// Bytes of each buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first bytes of a buffer.
    ///
    /// # Safety
    /// Nobody writes to the buffer, the provider included, while the slice lives.
    pub unsafe fn bytes(&self, index: usize, len: usize) -> &[u8] {
        // SAFETY: inside the mapping by `at` and the bound on len; zeroed or written, so initialised; not written to
        // meanwhile, by contract.
        unsafe { std::slice::from_raw_parts(self.at(index), len.min(self.size)) }
    }

    /// Fills the start of a buffer with two parts.
    ///
    /// # Safety
    /// Nobody reads or writes the buffer meanwhile, the provider included.
    pub unsafe fn fill(&self, index: usize, first: &[u8], second: &[u8]) {
        assert!(first.len() + second.len() <= self.size, "a message longer than its buffer");
        let to = self.at(index);
        // SAFETY: both parts fit, as just checked; nobody else is at the buffer, by contract, so that no part overlaps it.
        unsafe {
            std::ptr::copy_nonoverlapping(first.as_ptr(), to, first.len());
            std::ptr::copy_nonoverlapping(second.as_ptr(), to.add(first.len()), second.len());
        }
    }
}
