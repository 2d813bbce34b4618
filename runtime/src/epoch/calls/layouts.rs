//! Operations with datatypes. Meaning and errors are those of [`crate::Epoch`]'s.

use transom_transport::{Basic, ReduceOp, Swappable};
use zerocopy::IntoBytes;

use super::Explicit;
use crate::epoch::typed::method;
use crate::memory::OriginBuffer;
use crate::operation::{Completion, Layout};
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
        self.access.put_as(target, displacement, OriginBuffer::owned(data.as_bytes()), (from, to))
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
        self.access.get_as(target, displacement, data.as_mut_bytes(), (to, from), Completion::Call)
    }

    method! {
        /// `MPI_Accumulate`: as [`Epoch::accumulate_as`].
        ///
        /// # Errors
        /// As [`Epoch::accumulate_as`]; no epoch.
        accumulate_as
    }

    method! {
        /// `MPI_Get_accumulate`: as [`Epoch::get_accumulate_as`].
        ///
        /// # Errors
        /// As [`Explicit::accumulate_as`].
        get_accumulate_as
    }

    method! {
        /// `MPI_Fetch_and_op`: as [`Epoch::fetch_op_of`].
        ///
        /// # Errors
        /// As [`Epoch::fetch_op`]; no epoch.
        fetch_op_of
    }

    method! {
        /// `MPI_Compare_and_swap`: as [`Epoch::compare_and_swap_of`].
        ///
        /// # Errors
        /// As [`Epoch::compare_and_swap`]; no epoch.
        compare_and_swap_of
    }
}
