//! Operations with datatypes: the types of a window's elements say nothing here.

use transom_transport::{Basic, ReduceOp, Swappable};
use zerocopy::IntoBytes;

use super::Epoch;
use crate::epoch::typed::method;
use crate::memory::OriginBuffer;
use crate::operation::{Completion, Layout};
use crate::{Element, Operation, Result};

impl<'env, T: Element> Epoch<'_, 'env, T> {
    /// Puts what lies as `from` says in `data` where `to` says at the target (`MPI_Put`, §12.3.1). The displacement leads to
    /// the address of `to`; both sides have the same basic types in the same order.
    ///
    /// ```
    /// use transom::{Datatype, Layout};
    /// transom::local(2, |job| {
    ///     // A column of a 3 × 4 matrix there, from three numbers in a row here.
    ///     let matrix = job.allocate::<u32>(12)?;
    ///     let number = Datatype::of::<u32>();
    ///     let column = Datatype::vector(3, 1, 4, &number)?;
    ///     let numbers = [1u32, 2, 3];
    ///     matrix.fence(|epoch| {
    ///         epoch.put_as(1 - job.rank(), 1, &numbers, Layout::new(3, &number), Layout::new(1, &column))
    ///     })?;
    ///     assert_eq!(matrix.local().to_vec()?, [0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]);
    ///     matrix.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Epoch::put`]; types that do not match ([`crate::Class::Type`]); a buffer that is too short
    /// ([`crate::Class::Count`]).
    pub fn put_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        data: &'env [E],
        from: Layout<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        self.access.put_as(target, displacement, OriginBuffer::borrowed(data.as_bytes()), (from, to))
    }

    /// Gets what lies as `from` says at the target to where `to` says in `data` (`MPI_Get`, §12.3.2). It is there when the
    /// epoch's scope has ended.
    ///
    /// # Errors
    /// As [`Epoch::put_as`].
    pub fn get_as<E: Element>(
        &self,
        target: usize,
        displacement: usize,
        data: &'env mut [E],
        to: Layout<'_>,
        from: Layout<'_>,
    ) -> Result<()> {
        self.access.get_as(target, displacement, data.as_mut_bytes(), (to, from), Completion::Flush)
    }

    method! {
        /// Accumulates what lies as `from` says in `data` to where `to` says at the target (`MPI_Accumulate`, §12.3.4). Both
        /// sides consist of the same predefined type. `data` is read by the call.
        ///
        /// # Errors
        /// As [`Epoch::put_as`]; an operation that is not defined on the type ([`crate::Class::Op`]).
        accumulate_as
    }

    method! {
        /// As [`Epoch::accumulate_as`], and fetches what was there to where `fetch` says in `result`
        /// (`MPI_Get_accumulate`, §12.3.4). With [`ReduceOp::NoOp`], `data` and `from` mean nothing. Complete when the call
        /// returns.
        ///
        /// # Errors
        /// As [`Epoch::accumulate_as`].
        get_accumulate_as
    }

    method! {
        /// [`Epoch::fetch_op`] on an element of any predefined type.
        ///
        /// # Errors
        /// As [`Epoch::fetch_op`].
        #[inline]
        fetch_op_of
    }

    method! {
        /// [`Epoch::compare_and_swap`] on an element of any predefined type that it is defined for.
        ///
        /// # Errors
        /// As [`Epoch::compare_and_swap`].
        #[inline]
        compare_and_swap_of
    }
}
