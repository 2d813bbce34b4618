//! Operations with datatypes. Meaning and errors are those of [`crate::Epoch`]'s.

use transom_transport::{Basic, ReduceOp, Swappable};
use zerocopy::IntoBytes;

use super::Explicit;
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::operation::{Completion, Description, Layout};
use crate::{Element, Operation, Result};

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Put`: as [`Epoch::put_as`].
    ///
    /// # Errors
    /// As [`Epoch::put_as`]; no epoch.
    pub fn put_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        data: &[E],
        from: Layout<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        let description = Description::put(target, displacement, OriginBuffer::owned(data.as_bytes()));
        self.access.transfer(description, (from, to), Completion::Flush)
    }

    /// `MPI_Get`: as [`Epoch::get_as`], complete when the call returns.
    ///
    /// # Errors
    /// As [`Explicit::put_as`].
    pub fn get_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        data: &mut [E],
        to: Layout<'_>,
        from: Layout<'_>,
    ) -> Result<()> {
        let result = ResultBuffer::of_scope(data.as_mut_bytes());
        let description = Description::get(target, displacement, result);
        self.access.transfer(description, (to, from), Completion::Call)
    }

    /// `MPI_Accumulate`: as [`Epoch::accumulate_as`].
    ///
    /// # Errors
    /// As [`Epoch::accumulate_as`]; no epoch.
    pub fn accumulate_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: &[E],
        from: Layout<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        self.access.accumulate_as(target, displacement, op, (data.as_bytes(), from), to, None)
    }

    /// `MPI_Get_accumulate`: as [`Epoch::get_accumulate_as`].
    ///
    /// # Errors
    /// As [`Explicit::accumulate_as`].
    #[expect(clippy::too_many_arguments, reason = "the standard's, but for the window")]
    pub fn get_accumulate_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: &[E],
        from: Layout<'_>,
        result: &mut [E],
        fetch: Layout<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        let (data, result) = (data.as_bytes(), result.as_mut_bytes());
        self.access.accumulate_as(target, displacement, op, (data, from), to, Some((result, fetch)))
    }

    /// `MPI_Fetch_and_op`: as [`Epoch::fetch_op_of`].
    ///
    /// # Errors
    /// As [`Epoch::fetch_op`]; no epoch.
    pub fn fetch_op_of<B: Basic, O: Operation<B>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        value: B,
    ) -> Result<B> {
        self.access.fetch_op(target, displacement, O::OP, value)
    }

    /// `MPI_Compare_and_swap`: as [`Epoch::compare_and_swap_of`].
    ///
    /// # Errors
    /// As [`Epoch::compare_and_swap`]; no epoch.
    pub fn compare_and_swap_of<B: Swappable>(
        &self,
        target: usize,
        displacement: usize,
        compare: B,
        value: B,
    ) -> Result<B> {
        self.access.compare_swap(target, displacement, compare, value)
    }
}
