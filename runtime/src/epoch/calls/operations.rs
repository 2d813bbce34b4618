//! The operations of epochs that are calls.

use transom_transport::{Basic, Swappable};
use zerocopy::IntoBytes;

use super::Explicit;
use crate::operation::{Accumulate, Completion};
use crate::{Element, Operation, Result};

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Put`.
    ///
    /// # Errors
    /// No epoch, no such rank, or outside its window.
    pub fn put(&self, target: usize, displacement: usize, data: &[T]) -> Result<()> {
        self.access.put(target, displacement, data.as_bytes(), true)
    }

    /// `MPI_Get`.
    ///
    /// # Errors
    /// As [`Explicit::put`].
    pub fn get(&self, target: usize, displacement: usize, data: &mut [T]) -> Result<()> {
        self.access.get(target, displacement, data.as_mut_bytes(), Completion::Call)
    }
}

impl<T: Element + Basic> Explicit<'_, T> {
    /// `MPI_Accumulate`.
    ///
    /// # Errors
    /// As [`Explicit::put`].
    pub fn accumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: &[T],
    ) -> Result<()> {
        if let [one] = data {
            return self.access.accumulate_one(target, displacement, O::OP, *one);
        }
        let what = Accumulate { op: O::OP, ty: T::TYPE, operands: data.as_bytes() };
        self.access.accumulate(target, displacement, what, None)
    }

    /// `MPI_Get_accumulate`.
    ///
    /// # Errors
    /// As [`Explicit::accumulate`]; lengths differ.
    pub fn get_accumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: &[T],
        result: &mut [T],
    ) -> Result<()> {
        let what = Accumulate { op: O::OP, ty: T::TYPE, operands: data.as_bytes() };
        self.access.accumulate(target, displacement, what, Some(result.as_mut_bytes()))
    }

    /// `MPI_Fetch_and_op`.
    ///
    /// # Errors
    /// As [`Explicit::accumulate`].
    pub fn fetch_op<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        value: T,
    ) -> Result<T> {
        self.access.fetch_op(target, displacement, O::OP, value)
    }
}

impl<T: Element + Swappable> Explicit<'_, T> {
    /// `MPI_Compare_and_swap`.
    ///
    /// # Errors
    /// As [`Explicit::accumulate`].
    pub fn compare_and_swap(&self, target: usize, displacement: usize, compare: T, value: T) -> Result<T> {
        self.access.compare_swap(target, displacement, compare, value)
    }
}
