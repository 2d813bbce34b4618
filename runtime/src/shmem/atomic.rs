//! Atomic operations (OpenSHMEM 1.5 §9.9). All go the window's one way for an element, so all are atomic to each other, whatever they do.

use transom_transport::{Basic, ReduceOp, Swappable};

use super::context::Way;
use super::{Context, Shmem};
use crate::Result;
use crate::operation::{Accumulate, Completion, Description};

impl Shmem {
    /// [`Shmem::fetch_update`] of an element that is mapped here. None, and nothing is done, if it is not.
    #[inline(always)]
    pub fn update_now<T: Basic>(&self, address: usize, op: ReduceOp, operand: T, pe: usize) -> Option<T> {
        match (self.heap.update_now(address, op, operand, pe), &self.statics) {
            (None, Some(statics)) => statics.update_now(address, op, operand, pe),
            (found, _) => found,
        }
    }

    /// [`Shmem::compare_swap`] of an element that is mapped here. None, and nothing is done, if it is not.
    #[inline(always)]
    pub fn swap_now<T: Swappable>(&self, address: usize, values: (T, T), pe: usize) -> Option<T> {
        match (self.heap.swap_now(address, values, pe), &self.statics) {
            (None, Some(statics)) => statics.swap_now(address, values, pe),
            (found, _) => found,
        }
    }

    /// `element = element op operand`; returns what was there (`shmem_atomic_fetch_*`, `shmem_atomic_swap`).
    ///
    /// # Errors
    /// No such PE; an address that is not symmetric; a peer is gone. `call` is named in them.
    #[inline(always)]
    pub fn fetch_update<T: Basic>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        match self.update_now(address, op, operand, pe) {
            Some(old) => Ok(old),
            None => self.fetch_update_otherwise(context, call, (address, pe), op, operand),
        }
    }

    #[cold]
    #[inline(never)]
    fn fetch_update_otherwise<T: Basic>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        let (segment, at) = self.check_element::<T>(call, address, pe)?;
        self.settle(context, pe, Way::Update)?;
        let access = context.access(segment, call, pe)?;
        let old = access.fetch_op(pe, at, op, operand)?;
        segment.remember(access.core, pe);
        Ok(old)
    }

    /// The same without a result: complete after the context's [`Shmem::quiet`] (`shmem_atomic_add`, `shmem_atomic_set`).
    ///
    /// # Errors
    /// As [`Shmem::fetch_update`].
    #[inline(always)]
    pub fn update<T: Basic>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<()> {
        match self.update_now(address, op, operand, pe) {
            Some(_) => Ok(()),
            None => self.update_otherwise(context, call, (address, pe), op, operand),
        }
    }

    #[cold]
    #[inline(never)]
    fn update_otherwise<T: Basic>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<()> {
        let (segment, at) = self.check_element::<T>(call, address, pe)?;
        self.settle(context, pe, Way::Update)?;
        context.touch();
        let what = Accumulate { op, ty: T::TYPE, operands: zerocopy::IntoBytes::as_bytes(&operand) };
        let access = context.access(segment, call, pe)?;
        access.perform(Description::accumulate(pe, at, what, None), Completion::Flush)?;
        segment.remember(access.core, pe);
        Ok(())
    }

    /// Stores `value` if the element is `compare`; returns what was there (`shmem_atomic_compare_swap`).
    ///
    /// # Errors
    /// As [`Shmem::fetch_update`].
    #[inline(always)]
    pub fn compare_swap<T: Swappable>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        (compare, value): (T, T),
    ) -> Result<T> {
        match self.swap_now(address, (compare, value), pe) {
            Some(old) => Ok(old),
            None => self.compare_swap_otherwise(context, call, (address, pe), (compare, value)),
        }
    }

    #[cold]
    #[inline(never)]
    fn compare_swap_otherwise<T: Swappable>(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        (compare, value): (T, T),
    ) -> Result<T> {
        let (segment, at) = self.check_element::<T>(call, address, pe)?;
        self.settle(context, pe, Way::Update)?;
        let access = context.access(segment, call, pe)?;
        let old = access.compare_swap(pe, at, compare, value)?;
        segment.remember(access.core, pe);
        Ok(old)
    }
}
