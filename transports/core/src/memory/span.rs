//! Spans: address, length and owner of memory, and the atomics of aligned numbers.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::MmapRaw;

use super::{FilePart, Sparse};
use crate::{Number, ReduceOp, TransportError, TransportResult, limits};

/// What keeps a span's memory alive.
#[derive(Debug)]
pub enum Owner {
    /// A mapping of ours, unmapped with the last span on it.
    Mapping(MmapRaw),
    /// A mapping of a memory file that peers may map too.
    File(MmapRaw, FilePart),
    /// A large mapping, of a memory file that peers may map too, or of memory of this process.
    Sparse(Sparse, Option<FilePart>),
    /// A mapping of a peer's memory file.
    Peers(Sparse),
    /// As [`Owner::Caller`]; the pages are those of a memory file, each at the offset of its address.
    InPlace(Arc<OwnedFd>),
    /// Memory that the caller has promised to keep valid (see [`Span::from_raw`]).
    Caller,
}

/// A span of bytes that several ranks may access at once.
#[derive(Debug, Clone)]
pub struct Span {
    start: NonNull<u8>,
    len: usize,
    owner: Arc<Owner>,
}

// SAFETY: the bytes are only accessed through raw pointers, by copies and CPU atomics, from any thread;
// `owner` is `Send + Sync` (memmap2 documents MmapRaw as both).
unsafe impl Send for Span {}
// SAFETY: as above; no method gives out a reference to plain bytes.
unsafe impl Sync for Span {}

impl Span {
    /// A span of all of a mapping.
    pub fn from_mapping(mapping: MmapRaw) -> Self {
        let start = NonNull::new(mapping.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self { start, len: mapping.len(), owner: Arc::new(Owner::Mapping(mapping)) }
    }

    /// A span of all of a mapping of a part of a file.
    pub fn from_file(mapping: MmapRaw, file: FilePart) -> Self {
        let start = NonNull::new(mapping.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self { start, len: mapping.len(), owner: Arc::new(Owner::File(mapping, file)) }
    }

    /// The memory file that the span lies in, and the offset of its first byte there.
    pub fn file(&self) -> Option<(BorrowedFd<'_>, usize)> {
        match &*self.owner {
            Owner::File(map, file) => {
                Some((file.as_fd(), file.start() + self.address() - map.as_mut_ptr() as usize))
            }
            Owner::Sparse(map, Some(file)) => {
                Some((file.as_fd(), file.start() + self.address() - map.start().as_ptr() as usize))
            }
            Owner::InPlace(file) => Some((std::os::fd::AsFd::as_fd(file), self.address())),
            Owner::Sparse(_, None) | Owner::Mapping(_) | Owner::Peers(_) | Owner::Caller => None,
        }
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether it is memory that the caller has promised to keep valid.
    pub fn is_callers(&self) -> bool {
        matches!(&*self.owner, Owner::Caller | Owner::InPlace(_))
    }

    /// The span of the caller's memory whose pages are those of `file`, each at the offset of its address. None if it is not the
    /// caller's.
    pub fn in_place(&self, file: Arc<OwnedFd>) -> Option<Self> {
        self.is_callers().then(|| Self { owner: Arc::new(Owner::InPlace(file)), ..*self })
    }

    /// The first `len` bytes of a part of a memory file, or zeroed memory of this process: address space only, at `address`
    /// if that is free, to which pages come when they are touched.
    pub fn reserve(file: Option<FilePart>, len: usize, address: usize) -> TransportResult<Self> {
        let map = Sparse::new(file.as_ref().map(|file| (file.as_fd(), file.start())), len, address)?;
        Ok(Self { start: map.start(), len: map.len(), owner: Arc::new(Owner::Sparse(map, file)) })
    }

    /// `len` bytes of somebody else's memory file, from `start` on.
    pub fn map(file: BorrowedFd<'_>, start: usize, len: usize) -> TransportResult<Self> {
        if len == 0 {
            return Ok(Self::empty());
        }
        let map = Sparse::new(Some((file, start)), len, 0)?;
        Ok(Self { start: map.start(), len: map.len(), owner: Arc::new(Owner::Peers(map)) })
    }

    /// Gives the span's pages back to the system: from now on its bytes are zero. For whole pages of reserved memory.
    pub fn discard(&self) -> TransportResult<()> {
        match &*self.owner {
            Owner::Sparse(map, _) => map.discard(self.start.as_ptr(), self.len),
            _ => Err(TransportError::Range { offset: 0, bytes: self.len, len: 0 }),
        }
    }

    /// Zeroed private memory of this process, for what no peer maps.
    pub fn anonymous(bytes: usize) -> TransportResult<Self> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let map = memmap2::MmapMut::map_anon(bytes).map_err(|e| limits::refused(bytes, e))?;
        Ok(Self::from_mapping(MmapRaw::from(map)))
    }

    /// A span without bytes.
    pub fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0, owner: Arc::new(Owner::Caller) }
    }

    /// A span over the caller's memory.
    ///
    /// # Safety
    /// `start..start+len` must be valid for reads and writes, and must not be accessed through Rust
    /// references while this span or a clone of it may be used.
    pub unsafe fn from_raw(start: *mut u8, len: usize) -> Self {
        match NonNull::new(start) {
            Some(start) => Self { start, len, owner: Arc::new(Owner::Caller) },
            None => Self::empty(),
        }
    }

    /// A part of this span, alive as long as the whole.
    pub fn part(&self, offset: usize, len: usize) -> TransportResult<Self> {
        let start = NonNull::new(self.at(offset, len)?).unwrap_or(NonNull::dangling());
        Ok(Self { start, len, owner: self.owner.clone() })
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the span has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, for registration with a provider.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Address of `bytes` bytes at `offset`, if they are inside.
    #[inline]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> TransportResult<*mut u8> {
        if offset > self.len || bytes > self.len - offset {
            return Err(TransportError::Range { offset, bytes, len: self.len });
        }
        // SAFETY: offset <= len, so the result stays inside the allocation or one past its end (ptr::add).
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }

    /// The atomic of element type `T` at `offset`.
    #[inline]
    pub(super) fn cell<T: Number>(&self, offset: usize) -> TransportResult<&T::Cell> {
        let at = self.at(offset, size_of::<T>())?;
        if !(at as usize).is_multiple_of(size_of::<T>()) {
            return Err(TransportError::Range { offset, bytes: size_of::<T>(), len: self.len });
        }
        // SAFETY: `Cell` is the std atomic of T's size (sealed trait); `at` is in bounds, aligned to that
        // size, and alive as long as `self`. Other accesses to these bytes are atomics too, or races that
        // MPI-4.1 §12.7 leaves undefined in value only: they are made by raw copies, never through
        // references.
        Ok(unsafe { &*at.cast::<T::Cell>() })
    }

    /// Has the cache line at `offset` brought near: another core has written it.
    #[inline]
    pub fn prefetch(&self, offset: usize) -> TransportResult<()> {
        let _at = self.at(offset, 1)?;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch changes nothing but caches, wherever it points to (Intel SDM vol. 2, PREFETCHh).
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_at.cast());
        }
        Ok(())
    }

    /// Has the cache lines of a range brought near, to be written: another core has read them.
    #[inline]
    pub fn prefetch_for_writing(&self, offset: usize, bytes: usize) -> TransportResult<()> {
        let _at = self.at(offset, bytes)?;
        #[cfg(target_arch = "x86_64")]
        for line in (0..bytes).step_by(64) {
            // SAFETY: a prefetch changes nothing but caches, wherever it points to, and is nothing on processors that do not
            // have it (Intel SDM vol. 2, PREFETCHW).
            unsafe {
                std::arch::asm!(
                    "prefetchw [{}]",
                    in(reg) _at.wrapping_add(line),
                    options(nostack, preserves_flags, readonly)
                );
            }
        }
        Ok(())
    }

    /// `element = element op origin` as one CPU atomic; returns what was there.
    #[inline]
    pub fn fetch_op<T: Number>(&self, offset: usize, op: ReduceOp, origin: T) -> TransportResult<T> {
        Ok(T::fetch_op(self.cell::<T>(offset)?, op, origin))
    }

    /// Stores `origin` if the element equals `compare`, as one CPU atomic; returns what was there.
    #[inline]
    pub fn compare_swap<T: Number>(&self, offset: usize, compare: T, origin: T) -> TransportResult<T> {
        Ok(T::compare_swap(self.cell::<T>(offset)?, compare, origin))
    }

    /// A 32-bit word for protocols (locks, flags, queues).
    #[inline]
    pub fn word32(&self, offset: usize) -> TransportResult<&AtomicU32> {
        self.cell::<u32>(offset)
    }

    /// A 64-bit word for protocols.
    #[inline]
    pub fn word64(&self, offset: usize) -> TransportResult<&AtomicU64> {
        self.cell::<u64>(offset)
    }

    /// The words of a cache line for protocols.
    #[inline]
    pub fn line(&self, offset: usize) -> TransportResult<&[AtomicU64; 8]> {
        const BYTES: usize = size_of::<[AtomicU64; 8]>();
        let at = self.at(offset, BYTES)?;
        if !(at as usize).is_multiple_of(BYTES) {
            return Err(TransportError::Range { offset, bytes: BYTES, len: self.len });
        }
        // SAFETY: as in `cell`; an array of atomics is aligned as one of them is.
        Ok(unsafe { &*at.cast::<[AtomicU64; 8]>() })
    }
}
