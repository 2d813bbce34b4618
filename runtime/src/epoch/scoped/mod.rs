//! Epochs as scopes: operations exist only inside, and buffers are borrowed until the scope has completed them.

mod layouts;
mod requests;
mod window;

use std::marker::PhantomData;

use transom_transport::{Basic, ReduceOp, Swappable};

use zerocopy::IntoBytes;

use super::access::Access;
use crate::epoch::typed::method;
use crate::operation::{Accumulate, Completion, Description};
use crate::{Element, Operation, Replace, Result, Sum};

/// An open access epoch, and the operations in it (MPI-4.1 §12.3).
///
/// Displacements count the target's displacement units. A target of [`crate::NULL_RANK`] makes an operation do nothing. Errors
/// are found before anything is sent, except those of the network, which the next flush or the end of the epoch reports.
///
/// Buffers that an operation borrows (`'env`) stay borrowed until the call that made the epoch returns:
///
/// ```compile_fail,E0597
/// # fn f(window: transom::Window<u64>) -> transom::Result<()> {
/// window.lock_all(|epoch| {
///     let edge = vec![1, 2, 3];
///     epoch.put(0, 0, &edge) // `edge` would be freed while the put still reads it
/// })
/// # }
/// ```
///
/// An operation outside an epoch does not compile:
///
/// ```compile_fail,E0599
/// # fn f(window: transom::Window<u64>) -> transom::Result<()> {
/// window.put(0, 0, &[1])
/// # }
/// ```
#[derive(Debug)]
pub struct Epoch<'w, 'env, T> {
    access: Access<'w>,
    // Invariant in 'env: a buffer's borrow must not be shortened.
    _buffers: PhantomData<&'env mut &'env ()>,
    _elements: PhantomData<T>,
}

impl<'env, T: Element> Epoch<'_, 'env, T> {
    /// Copies `data` to `target` (`MPI_Put`, §12.3.1). Complete there after a flush or the end of the epoch.
    ///
    /// # Errors
    /// No such rank, not covered by the epoch, or outside the target's window.
    #[inline]
    pub fn put(&self, target: usize, displacement: usize, data: &'env [T]) -> Result<()> {
        self.access.put(target, displacement, data.as_bytes(), false)
    }

    /// [`Epoch::put`] of one element, which is copied by the call.
    ///
    /// # Errors
    /// As [`Epoch::put`].
    #[inline]
    pub fn put_value(&self, target: usize, displacement: usize, value: T) -> Result<()> {
        self.access.put(target, displacement, value.as_bytes(), true)
    }

    /// [`Epoch::put`] of elements that are copied by the call, where they may not live long enough.
    ///
    /// # Errors
    /// As [`Epoch::put`].
    pub fn put_copy(&self, target: usize, displacement: usize, data: &[T]) -> Result<()> {
        self.access.put(target, displacement, data.as_bytes(), true)
    }

    /// [`Epoch::put`] that tells the target when the data is there: it counts one more notification of `number`, which it
    /// awaits by [`crate::Window::wait_notifications`]. No epoch or message is needed for that. The standard has no such
    /// call.
    ///
    /// # Errors
    /// As [`Epoch::put`].
    pub fn put_notify(&self, target: usize, displacement: usize, data: &'env [T], number: u64) -> Result<()> {
        let description = Description::notify(target, displacement, data.as_bytes(), number);
        self.access.perform(description, Completion::Flush)
    }

    /// Copies from `target` to `data` (`MPI_Get`, §12.3.2). The data is there after the call that made the epoch has
    /// returned; [`Epoch::read`] gives it at once.
    ///
    /// # Errors
    /// As [`Epoch::put`].
    #[inline]
    pub fn get(&self, target: usize, displacement: usize, data: &'env mut [T]) -> Result<()> {
        self.access.get(target, displacement, data.as_mut_bytes(), Completion::Flush)
    }

    /// Copies from `target` to `data`, complete when the call returns.
    ///
    /// # Errors
    /// As [`Epoch::put`], and errors of the network.
    #[inline]
    pub fn read(&self, target: usize, displacement: usize, data: &mut [T]) -> Result<()> {
        self.access.get(target, displacement, data.as_mut_bytes(), Completion::Call)
    }

    /// One element of `target`, now. Zero from the null rank.
    ///
    /// # Errors
    /// As [`Epoch::read`].
    #[inline]
    pub fn get_value(&self, target: usize, displacement: usize) -> Result<T> {
        let mut value = T::new_zeroed();
        self.access.get(target, displacement, value.as_mut_bytes(), Completion::Call)?;
        Ok(value)
    }

    /// Completes this epoch's operations to `target`, here and there (`MPI_Win_flush`, §12.5.4). In every
    /// epoch, not only in those of locks as the standard has it.
    ///
    /// # Errors
    /// No such rank, not covered; or an operation failed.
    #[inline]
    pub fn flush(&self, target: usize) -> Result<()> {
        let Access { core, .. } = self.access;
        if core.shortcut.flush_any(target) {
            return Ok(());
        }
        self.access.check_only("flush", target)?;
        core.flush(target)
    }

    /// Completes this epoch's operations to `target` here: origin buffers could be reused
    /// (`MPI_Win_flush_local`, §12.5.4). Transom's completions mean both, so this costs what [`Epoch::flush`] costs.
    ///
    /// # Errors
    /// As [`Epoch::flush`].
    pub fn flush_local(&self, target: usize) -> Result<()> {
        self.flush(target)
    }

    /// [`Epoch::flush`] to every target (`MPI_Win_flush_all`).
    ///
    /// # Errors
    /// As [`Epoch::flush`].
    pub fn flush_all(&self) -> Result<()> {
        match self.access.only {
            Some(locked) => self.flush(locked),
            None => self.access.core.flush_all("flush_all"),
        }
    }

    /// [`Epoch::flush_local`] to every target (`MPI_Win_flush_local_all`).
    ///
    /// # Errors
    /// As [`Epoch::flush`].
    pub fn flush_local_all(&self) -> Result<()> {
        self.flush_all()
    }
}

impl<T: Element + Basic> Epoch<'_, '_, T> {
    method! {
        /// `target = target op data`, atomically for each element (`MPI_Accumulate`, §12.3.4). `data` is read by the call.
        ///
        /// ```compile_fail,E0277
        /// # fn f(epoch: &transom::Epoch<'_, '_, f64>) -> transom::Result<()> {
        /// epoch.accumulate(0, 0, transom::Bxor, &[1.0]) // no bitwise operations on floating types
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`Epoch::put`].
        #[inline]
        accumulate
    }

    method! {
        /// As [`Epoch::accumulate`], and fetches to `result` what was there (`MPI_Get_accumulate`, §12.3.4). Complete when
        /// the call returns.
        ///
        /// # Errors
        /// As [`Epoch::accumulate`]; lengths differ.
        get_accumulate
    }

    method! {
        /// One element: `target = target op value`, returns what was there (`MPI_Fetch_and_op`, §12.3.4). Complete when the
        /// call returns. Zero from the null rank.
        ///
        /// # Errors
        /// As [`Epoch::accumulate`].
        #[inline]
        fetch_op
    }

    /// [`Epoch::fetch_op`] with [`Sum`].
    ///
    /// # Errors
    /// As [`Epoch::accumulate`].
    #[inline]
    pub fn fetch_add(&self, target: usize, displacement: usize, value: T) -> Result<T>
    where
        T: crate::Arithmetic,
    {
        self.fetch_op(target, displacement, Sum, value)
    }

    /// [`Epoch::fetch_op`] with [`Replace`].
    ///
    /// # Errors
    /// As [`Epoch::accumulate`].
    #[inline]
    pub fn swap(&self, target: usize, displacement: usize, value: T) -> Result<T> {
        self.fetch_op(target, displacement, Replace, value)
    }

    /// One element, atomically read: [`Epoch::fetch_op`] with no operation.
    ///
    /// # Errors
    /// As [`Epoch::accumulate`].
    #[inline]
    pub fn fetch(&self, target: usize, displacement: usize) -> Result<T> {
        self.access.fetch_op(target, displacement, ReduceOp::NoOp, T::new_zeroed())
    }
}

impl<T: Element + Swappable> Epoch<'_, '_, T> {
    method! {
        /// Stores `value` if the element is `compare`; returns what was there (`MPI_Compare_and_swap`, §12.3.4). Complete
        /// when the call returns. Zero from the null rank.
        ///
        /// # Errors
        /// As [`Epoch::accumulate`].
        #[inline]
        compare_and_swap
    }
}
