//! Memory that several ranks read and write at once, as a bounds-checked span of bytes.
//!
//! This is the one place where such memory is touched by the CPU. It hands out no slice: elements go in and out by
//! copy or by CPU atomic, so that no Rust reference ever covers bytes that a stranger may change.
//!
//! Copies of 1, 2, 4 and 8 aligned bytes are single stores or loads. Longer copies are `memmove`; two of them that
//! overlap in time on the same bytes leave any mixture of the two, as MPI-4.1 §12.7 allows.

use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use memmap2::MmapRaw;

use crate::{DataType, Number, ReduceOp, TransportError, TransportResult, with_number};

/// What keeps a span's memory alive.
#[derive(Debug)]
pub enum Owner {
    /// A mapping of ours, unmapped with the last span on it.
    Mapping(MmapRaw),
    /// A mapping of a memory file that peers may map too.
    File(MmapRaw, OwnedFd),
    /// Memory of the caller's, who promised to keep it (see [`Span::from_raw`]).
    Caller,
}

/// A span of bytes that several ranks may access at once.
#[derive(Debug, Clone)]
pub struct Span {
    start: NonNull<u8>,
    len: usize,
    owner: Arc<Owner>,
}

// SAFETY: the bytes are only accessed through raw pointers, by copies and CPU atomics, from any thread; `owner` is
// `Send + Sync` (memmap2 documents MmapRaw as both).
unsafe impl Send for Span {}
// SAFETY: as above; no method gives out a reference to plain bytes.
unsafe impl Sync for Span {}

impl Span {
    /// A span of all of a mapping.
    pub fn from_mapping(mapping: MmapRaw) -> Self {
        let start = NonNull::new(mapping.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self { start, len: mapping.len(), owner: Arc::new(Owner::Mapping(mapping)) }
    }

    /// A span of all of a mapping of `file`, which starts at the file's first byte.
    pub fn from_file(mapping: MmapRaw, file: OwnedFd) -> Self {
        let start = NonNull::new(mapping.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self { start, len: mapping.len(), owner: Arc::new(Owner::File(mapping, file)) }
    }

    /// The memory file that the span lies in, and the offset of its first byte there.
    pub fn file(&self) -> Option<(BorrowedFd<'_>, usize)> {
        match &*self.owner {
            Owner::File(map, file) => Some((file.as_fd(), self.address() - map.as_mut_ptr() as usize)),
            Owner::Mapping(_) | Owner::Caller => None,
        }
    }

    /// Zeroed private memory of this process, for what no peer maps.
    pub fn anonymous(bytes: usize) -> TransportResult<Self> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let map = memmap2::MmapMut::map_anon(bytes)
            .map_err(|e| TransportError::NoMemory { bytes, reason: format!("mmap: {e}") })?;
        Ok(Self::from_mapping(MmapRaw::from(map)))
    }

    /// A span without bytes.
    pub fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0, owner: Arc::new(Owner::Caller) }
    }

    /// A span over the caller's memory.
    ///
    /// # Safety
    /// `start..start+len` must be valid for reads and writes, and must not be accessed through Rust references while
    /// this span or a clone of it may be used.
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
    fn at(&self, offset: usize, bytes: usize) -> TransportResult<*mut u8> {
        if offset > self.len || bytes > self.len - offset {
            return Err(TransportError::Range { offset, bytes, len: self.len });
        }
        // SAFETY: offset <= len, so the result stays inside the allocation or one past its end (ptr::add).
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }

    /// Copies `data` to `offset`: a put.
    #[inline]
    pub fn copy_in(&self, offset: usize, data: &[u8]) -> TransportResult<()> {
        let to = self.at(offset, data.len())?;
        // SAFETY: `to` is valid for data.len() bytes (checked above, kept alive by `owner`); `data` is a valid slice.
        unsafe { copy_small(data.as_ptr(), to, data.len()) };
        Ok(())
    }

    /// Copies from `offset` into `data`: a get.
    #[inline]
    pub fn copy_out(&self, offset: usize, data: &mut [u8]) -> TransportResult<()> {
        let from = self.at(offset, data.len())?;
        // SAFETY: as in copy_in, with the roles exchanged; `data` is exclusively ours.
        unsafe { copy_small(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// The atomic of element type `T` at `offset`.
    #[inline]
    fn cell<T: Number>(&self, offset: usize) -> TransportResult<&T::Cell> {
        let at = self.at(offset, size_of::<T>())?;
        if !(at as usize).is_multiple_of(size_of::<T>()) {
            return Err(TransportError::Range { offset, bytes: size_of::<T>(), len: self.len });
        }
        // SAFETY: `Cell` is the std atomic of T's size (sealed trait); `at` is in bounds, aligned to that size, and
        // alive as long as `self`. Other accesses to these bytes are atomics too, or races that MPI-4.1 §12.7 leaves
        // undefined in value only: they are made by raw copies, never through references.
        Ok(unsafe { &*at.cast::<T::Cell>() })
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

    /// Applies `op` element by element to the elements of `ty` at `offset`, each as one CPU atomic. `origin` holds the
    /// operands (any alignment); `fetched`, if given, receives what was there and has the same length.
    pub fn apply(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        with_number!(ty, T => self.apply_as::<T>(op, offset, origin, fetched))
    }

    /// [`Span::apply`] for a caller who knows that nobody else updates these elements meanwhile: plain loads and stores,
    /// many elements at a time.
    pub fn apply_alone(
        &self,
        op: ReduceOp,
        ty: DataType,
        offset: usize,
        origin: &[u8],
    ) -> TransportResult<()> {
        with_number!(ty, T => {
            let target = self.at(offset, origin.len())?;
            let size = size_of::<T>();
            if !(target as usize).is_multiple_of(size) || !origin.len().is_multiple_of(size) {
                return Err(TransportError::Range { offset, bytes: origin.len(), len: self.len });
            }
            macro_rules! with_op {
                ($($op:ident)*) => { match op { $(
                    // SAFETY: `target` is aligned and in bounds for as many elements as `origin` holds, as just checked.
                    ReduceOp::$op => unsafe {
                        reduce_all::<T>(target.cast(), origin, |a, b| T::reduce(ReduceOp::$op, a, b));
                    },
                )* } };
            }
            with_op!(Sum Prod Min Max Land Lor Lxor Band Bor Bxor Replace NoOp);
            Ok(())
        })
    }

    fn apply_as<T: Number>(
        &self,
        op: ReduceOp,
        offset: usize,
        origin: &[u8],
        fetched: Option<&mut [u8]>,
    ) -> TransportResult<()> {
        let size = size_of::<T>();
        let whole =
            origin.len().is_multiple_of(size) && fetched.as_ref().is_none_or(|f| f.len() == origin.len());
        if !whole || self.at(offset, origin.len()).is_err() {
            return Err(TransportError::Range { offset, bytes: origin.len(), len: self.len });
        }
        let mut results = fetched.map(|f| f.chunks_exact_mut(size));
        for (i, bytes) in origin.chunks_exact(size).enumerate() {
            // chunks_exact gives exactly `size` bytes, so this never takes the default.
            let Ok(operand) = T::read_from_bytes(bytes) else { continue };
            let old = T::fetch_op(self.cell::<T>(offset + i * size)?, op, operand);
            if let Some(result) = results.as_mut().and_then(Iterator::next) {
                result.copy_from_slice(old.as_bytes());
            }
        }
        Ok(())
    }
}

/// Reduces the elements in `origin` (of any alignment) into those at `target`.
///
/// # Safety
/// `target` is aligned, and valid for reads and writes of as many elements as `origin` holds.
#[inline]
unsafe fn reduce_all<T: Number>(target: *mut T, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    let source: *const T = origin.as_ptr().cast();
    for i in 0..origin.len() / size_of::<T>() {
        // SAFETY: i is below the number of elements of both; every bit pattern is a T (FromBytes).
        unsafe { target.add(i).write(reduce(target.add(i).read(), source.add(i).read_unaligned())) };
    }
}

/// Copies `len` bytes; 1, 2, 4 and 8 aligned bytes as one store.
///
/// # Safety
/// `from` must be valid for reads and `to` for writes of `len` bytes.
#[inline]
unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! one {
        ($word:ty, $atomic:ty) => {{
            if (from as usize | to as usize).is_multiple_of(size_of::<$word>()) {
                // SAFETY: both are valid for `len` bytes by contract and aligned as just checked; an atomic of the
                // size may be used on any such memory (std::sync::atomic, "Memory model").
                unsafe {
                    let value = <$atomic>::from_ptr(from.cast_mut().cast()).load(Ordering::Relaxed);
                    <$atomic>::from_ptr(to.cast()).store(value, Ordering::Release);
                }
                return;
            }
        }};
    }
    match len {
        8 => one!(u64, AtomicU64),
        4 => one!(u32, AtomicU32),
        2 => one!(u16, AtomicU16),
        1 => one!(u8, AtomicU8),
        _ => {}
    }
    // SAFETY: valid for `len` bytes by contract; ptr::copy allows overlap.
    unsafe { ptr::copy(from, to, len) }
}

/// Orders every earlier store of this thread before every later load.
///
/// One locked instruction on the stack: a third of an `mfence` on x86 (which is what `fence(SeqCst)` compiles to),
/// with the same effect on write-back memory (Intel SDM vol. 3, §9.2.2; AMD APM vol. 2, §7.1).
#[inline]
pub fn store_load_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: or-ing 0 into the red zone word below the stack pointer changes nothing and touches only this thread's
    // stack (System V ABI, AMD64 supplement §3.2.2).
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp - 8], 0", options(nostack))
    };
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce_valid;
    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    #[test]
    fn copies_stay_inside() {
        let span = Span::anonymous(64).unwrap();
        for len in 0..=64 {
            let data: Vec<u8> = (0..len as u8).collect();
            let mut back = vec![0; len];
            span.copy_in(64 - len, &data).unwrap();
            span.copy_out(64 - len, &mut back).unwrap();
            assert_eq!(data, back);
        }
        for (offset, len) in [(64, 1), (60, 5), (usize::MAX, 8), (65, 0)] {
            assert!(span.copy_in(offset, &vec![0; len]).is_err());
            assert!(span.copy_out(offset, &mut vec![0; len]).is_err());
        }
    }

    #[test]
    fn unaligned_atomic_is_refused() {
        let span = Span::anonymous(64).unwrap();
        assert!(span.fetch_op::<u64>(4, ReduceOp::Sum, 1).is_err());
        assert!(span.fetch_op::<u32>(4, ReduceOp::Sum, 1).is_ok());
        assert!(span.fetch_op::<u64>(57, ReduceOp::Sum, 1).is_err());
    }

    #[test]
    fn concurrent_sums_are_exact() {
        let span = Span::anonymous(64).unwrap();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..10_000 {
                        span.fetch_op::<f64>(0, ReduceOp::Sum, 1.0).unwrap();
                        span.fetch_op::<u16>(8, ReduceOp::Sum, 1).unwrap();
                        span.fetch_op::<u8>(11, ReduceOp::Bxor, 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(span.fetch_op::<f64>(0, ReduceOp::NoOp, 0.0).unwrap(), 40_000.0);
        assert_eq!(span.fetch_op::<u16>(8, ReduceOp::NoOp, 0).unwrap(), 40_000);
        assert_eq!(span.fetch_op::<u8>(11, ReduceOp::NoOp, 0).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn apply_is_reduce_per_element(op in 0u8..12, ty in 0u8..10, a in any::<[u8; 32]>(), b in any::<[u8; 32]>()) {
            let (op, ty) = (ReduceOp::from_wire(op).unwrap(), DataType::from_wire(ty).unwrap());
            prop_assume!(reduce_valid(op, ty));
            let span = Span::anonymous(32).unwrap();
            span.copy_in(0, &a).unwrap();
            let mut old = [0; 32];
            span.apply(op, ty, 0, &b, Some(&mut old)).unwrap();
            prop_assert_eq!(old, a);
            let mut now = [0; 32];
            span.copy_out(0, &mut now).unwrap();
            span.copy_in(0, &a).unwrap();
            span.apply_alone(op, ty, 0, &b).unwrap();
            let mut alone = [0; 32];
            span.copy_out(0, &mut alone).unwrap();
            prop_assert_eq!(alone, now);
            with_number!(ty, T => for i in (0..32).step_by(size_of::<T>()) {
                let get = |x: &[u8; 32]| T::read_from_bytes(&x[i..i + size_of::<T>()]).unwrap();
                let (expected, found) = (T::reduce(op, get(&a), get(&b)), get(&now));
                prop_assert_eq!(expected.as_bytes(), found.as_bytes());
            });
        }
    }
}
