//! The operations of epochs that are calls.

use transom_transport::{Basic, Swappable};
use zerocopy::IntoBytes;

use super::Explicit;
use crate::epoch::typed::method;
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
    method! {
        /// `MPI_Accumulate`.
        ///
        /// # Errors
        /// As [`Explicit::put`].
        accumulate
    }

    method! {
        /// `MPI_Get_accumulate`.
        ///
        /// # Errors
        /// As [`Explicit::accumulate`]; lengths differ.
        get_accumulate
    }

    method! {
        /// `MPI_Fetch_and_op`.
        ///
        /// # Errors
        /// As [`Explicit::accumulate`].
        fetch_op
    }
}

impl<T: Element + Swappable> Explicit<'_, T> {
    method! {
        /// `MPI_Compare_and_swap`.
        ///
        /// # Errors
        /// As [`Explicit::accumulate`].
        compare_and_swap
    }
}
