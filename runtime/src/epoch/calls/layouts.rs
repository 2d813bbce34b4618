//! Operations with datatypes. Meaning and errors are those of [`crate::Epoch`]'s.

use transom_transport::{Basic, ReduceOp, Swappable};
use zerocopy::IntoBytes;

use super::Explicit;
use crate::epoch::typed::method;
use crate::memory::OriginBuffer;
use crate::operation::{Completion, Layout};
use crate::{Element, Operation, Result};

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Put`: as [`crate::Epoch::put_as`].
    ///
    /// # Errors
    /// As [`crate::Epoch::put_as`]; no epoch.
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

    /// `MPI_Get`: as [`crate::Epoch::get_as`], complete when the call returns.
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
        /// `MPI_Accumulate`: as [`crate::Epoch::accumulate_as`].
        ///
        /// # Errors
        /// As [`crate::Epoch::accumulate_as`]; no epoch.
        accumulate_as
    }

    method! {
        /// `MPI_Get_accumulate`: as [`crate::Epoch::get_accumulate_as`].
        ///
        /// # Errors
        /// As [`Explicit::accumulate_as`].
        get_accumulate_as
    }

    method! {
        /// `MPI_Fetch_and_op`: as [`crate::Epoch::fetch_op_of`].
        ///
        /// # Errors
        /// As [`crate::Epoch::fetch_op`]; no epoch.
        fetch_op_of
    }

    method! {
        /// `MPI_Compare_and_swap`: as [`crate::Epoch::compare_and_swap_of`].
        ///
        /// # Errors
        /// As [`crate::Epoch::compare_and_swap`]; no epoch.
        compare_and_swap_of
    }
}
