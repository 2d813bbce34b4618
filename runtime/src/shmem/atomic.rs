//! Atomic operations (OpenSHMEM 1.5 §9.9). All go the window's one way for an element, so all are atomic to each other, whatever they do.

use transom_transport::{Basic, ReduceOp, Swappable};

use super::{Context, Shmem};
use crate::Result;
use crate::operation::{Accumulate, Completion, Description};

impl Shmem {
    /// [`Shmem::fetch_update`] of a word that is mapped here, by addition. None, and nothing is done, if it is not.
    #[inline(always)]
    pub fn add_now(&self, address: usize, operand: u64, pe: usize) -> Option<u64> {
        let (short, at) = self.find(address)?;
        short.add(pe, at, operand)
    }

    /// [`Shmem::compare_swap`] of a word that is mapped here. None, and nothing is done, if it is not.
    #[inline(always)]
    pub fn swap_now(&self, address: usize, (compare, value): (u64, u64), pe: usize) -> Option<u64> {
        let (short, at) = self.find(address)?;
        short.swap(pe, at, compare, value)
    }

    /// `element = element op operand`; returns what was there (`shmem_atomic_fetch_*`, `shmem_atomic_swap`).
    ///
    /// # Errors
    /// No such PE; an address that is not symmetric; a peer is gone. `call` is named in them.
    #[inline(always)]
    pub fn fetch_update<T: Basic>(
        &self,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        let now = self.find(address).and_then(|(short, at)| short.update_one(pe, at, op, operand));
        match now {
            Some(old) => Ok(old),
            None => self.fetch_update_otherwise(call, (address, pe), op, operand),
        }
    }

    #[inline(never)]
    fn fetch_update_otherwise<T: Basic>(
        &self,
        call: &'static str,
        (address, pe): (usize, usize),
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        let (segment, at) = self.check_element::<T>(call, address, pe)?;
        segment.access().fetch_op(pe, at, op, operand)
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
        let now = self.find(address).and_then(|(short, at)| short.update_one(pe, at, op, operand));
        match now {
            Some(_) => Ok(()),
            None => self.update_otherwise(context, call, (address, pe), op, operand),
        }
    }

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
        context.touch();
        let what = Accumulate { op, ty: T::TYPE, operands: zerocopy::IntoBytes::as_bytes(&operand) };
        segment.access().perform(Description::accumulate(pe, at, what, None), Completion::Flush)
    }

    /// Stores `value` if the element is `compare`; returns what was there (`shmem_atomic_compare_swap`).
    ///
    /// # Errors
    /// As [`Shmem::fetch_update`].
    #[inline(always)]
    pub fn compare_swap<T: Swappable>(
        &self,
        call: &'static str,
        (address, pe): (usize, usize),
        (compare, value): (T, T),
    ) -> Result<T> {
        let now = self.find(address).and_then(|(short, at)| short.compare_swap_one(pe, at, (compare, value)));
        match now {
            Some(old) => Ok(old),
            None => self.compare_swap_otherwise(call, (address, pe), (compare, value)),
        }
    }

    #[inline(never)]
    fn compare_swap_otherwise<T: Swappable>(
        &self,
        call: &'static str,
        (address, pe): (usize, usize),
        (compare, value): (T, T),
    ) -> Result<T> {
        let (segment, at) = self.check_element::<T>(call, address, pe)?;
        segment.access().compare_swap(pe, at, compare, value)
    }
}
