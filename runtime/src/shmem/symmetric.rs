//! Symmetric memory with types: blocks that are values, for programs in Rust.

use std::marker::PhantomData;

use transom_transport::{Basic, Integer, ReduceOp, Swappable};
use zerocopy::IntoBytes;

use super::context::Way;
use super::{Segment, Shmem};
use crate::operation::Completion;
use crate::{Class, Element, Result};

/// A block of the symmetric heap: `len` elements at each PE. [`Shmem::free`] gives it back; who drops it leaves it in use.
#[derive(Debug)]
pub struct Symmetric<T> {
    address: usize,
    len: usize,
    _elements: PhantomData<T>,
}

impl<T> Symmetric<T> {
    /// Number of elements at each PE.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Shmem {
    /// A block of `len` zeroed elements at each PE (`shmem_calloc`). Collective, with the same length everywhere.
    ///
    /// # Errors
    /// [`Class::NoMemory`]: the heap has no room. [`Class::Size`]: PEs ask for different lengths. A peer is gone.
    pub fn allocate<T: Element>(&self, len: usize) -> Result<Symmetric<T>> {
        const CALL: &str = "allocate";
        let bytes = len.checked_mul(size_of::<T>());
        let none = || {
            let message =
                format!("the symmetric heap of {} bytes has no room for {len} elements", self.heap.len());
            self.error(Class::NoMemory, CALL, message)
        };
        let address =
            self.allocate_bytes(CALL, bytes.ok_or_else(none)?.max(1), align_of::<T>())?.ok_or_else(none)?;
        let block = Symmetric { address, len, _elements: PhantomData };
        let zeroes = vec![0u8; bytes.unwrap_or(0)];
        self.heap.window().local().write(address - self.heap.base(), &zeroes)?;
        self.world().comm().barrier()?;
        Ok(block)
    }

    /// Gives a block back (`shmem_free`). Collective.
    ///
    /// # Errors
    /// [`Class::Size`]: PEs free different blocks. A peer is gone.
    pub fn free<T>(&self, block: Symmetric<T>) -> Result<()> {
        self.free_block("free", block.address)
    }

    /// Displacement of elements of a block.
    fn range<T>(
        &self,
        call: &'static str,
        block: &Symmetric<T>,
        at: usize,
        len: usize,
    ) -> Result<(&Segment, usize)> {
        if at <= block.len && len <= block.len - at {
            return Ok((&self.heap, block.address - self.heap.base() + at * size_of::<T>()));
        }
        let message = format!("{len} elements from {at} on are outside a block of {}", block.len);
        Err(self.error(Class::RmaRange, call, message))
    }

    /// Puts `data` to elements from `at` on of a PE (`shmem_put`). The data may be reused when this returns; it is there after
    /// [`Shmem::barrier_all`], or [`Shmem::quiet`] of the default context.
    ///
    /// # Errors
    /// No such PE; a range outside the block; a peer is gone.
    pub fn put<T: Element>(&self, block: &Symmetric<T>, at: usize, data: &[T], pe: usize) -> Result<()> {
        let (segment, place) = self.range("put", block, at, data.len())?;
        self.check_pe("put", pe)?;
        if data.is_empty() {
            return Ok(());
        }
        self.settle(&self.default, pe, Way::Put)?;
        self.default.touch();
        self.default.access(segment, "put", pe)?.put(pe, place, data.as_bytes(), true)
    }

    /// Gets elements from `at` on of a PE (`shmem_get`).
    ///
    /// # Errors
    /// As [`Shmem::put`].
    pub fn get<T: Element>(&self, block: &Symmetric<T>, at: usize, data: &mut [T], pe: usize) -> Result<()> {
        let (segment, place) = self.range("get", block, at, data.len())?;
        self.check_pe("get", pe)?;
        if data.is_empty() {
            return Ok(());
        }
        self.default.access(segment, "get", pe)?.get(pe, place, data.as_mut_bytes(), Completion::Call)
    }

    /// Adds to an element of a PE; returns what was there (`shmem_atomic_fetch_add`).
    ///
    /// # Errors
    /// As [`Shmem::put`].
    pub fn fetch_add<T: Integer>(&self, block: &Symmetric<T>, at: usize, value: T, pe: usize) -> Result<T> {
        self.fetch_op(block, at, ReduceOp::Sum, value, pe)
    }

    /// Stores an element of a PE; returns what was there (`shmem_atomic_swap`).
    ///
    /// # Errors
    /// As [`Shmem::put`].
    pub fn swap<T: Basic>(&self, block: &Symmetric<T>, at: usize, value: T, pe: usize) -> Result<T> {
        self.fetch_op(block, at, ReduceOp::Replace, value, pe)
    }

    /// An element of a PE, atomically (`shmem_atomic_fetch`).
    ///
    /// # Errors
    /// As [`Shmem::put`].
    pub fn fetch<T: Basic>(&self, block: &Symmetric<T>, at: usize, pe: usize) -> Result<T> {
        self.fetch_op(block, at, ReduceOp::NoOp, T::new_zeroed(), pe)
    }

    fn fetch_op<T: Basic>(
        &self,
        block: &Symmetric<T>,
        at: usize,
        op: ReduceOp,
        value: T,
        pe: usize,
    ) -> Result<T> {
        self.range("fetch", block, at, 1)?;
        self.fetch_update(&self.default, "fetch", (block.address + at * size_of::<T>(), pe), op, value)
    }

    /// Stores `value` in an element of a PE if that is `compare`; returns what was there (`shmem_atomic_compare_swap`).
    ///
    /// # Errors
    /// As [`Shmem::put`].
    pub fn compare_exchange<T: Swappable>(
        &self,
        block: &Symmetric<T>,
        at: usize,
        (compare, value): (T, T),
        pe: usize,
    ) -> Result<T> {
        self.range("compare_exchange", block, at, 1)?;
        self.compare_swap(
            &self.default,
            "compare_exchange",
            (block.address + at * size_of::<T>(), pe),
            (compare, value),
        )
    }

    /// This PE's element at `at`.
    ///
    /// # Errors
    /// It is outside the block.
    pub fn load<T: Element>(&self, block: &Symmetric<T>, at: usize) -> Result<T> {
        let (segment, place) = self.range("load", block, at, 1)?;
        let mut value = T::new_zeroed();
        segment.window().local().read(place, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Stores this PE's element at `at`.
    ///
    /// # Errors
    /// It is outside the block.
    pub fn store<T: Element>(&self, block: &Symmetric<T>, at: usize, value: T) -> Result<()> {
        let (segment, place) = self.range("store", block, at, 1)?;
        segment.window().local().write(place, value.as_bytes())
    }

    /// Waits until this PE's element at `at` is as `ready` wants it (`shmem_wait_until`). Returns it.
    ///
    /// # Errors
    /// It is outside the block; a peer is gone; the deadline passes.
    pub fn wait_until<T: Element>(
        &self,
        block: &Symmetric<T>,
        at: usize,
        ready: impl Fn(T) -> bool,
    ) -> Result<T> {
        let what = || format!("element {at} to change");
        self.await_that("wait_until", &what, || self.load(block, at).map(&ready))?;
        self.load(block, at)
    }

    /// Waits for a lock, an element that is 0 at first (`shmem_set_lock`).
    ///
    /// # Errors
    /// As [`Shmem::wait_until`].
    pub fn lock(&self, block: &Symmetric<u64>, at: usize) -> Result<()> {
        self.range("set_lock", block, at, 1)?;
        self.set_lock("set_lock", block.address + at * size_of::<u64>())
    }

    /// Releases a lock (`shmem_clear_lock`).
    ///
    /// # Errors
    /// As [`Shmem::wait_until`].
    pub fn unlock(&self, block: &Symmetric<u64>, at: usize) -> Result<()> {
        self.range("clear_lock", block, at, 1)?;
        self.clear_lock("clear_lock", block.address + at * size_of::<u64>())
    }
}
