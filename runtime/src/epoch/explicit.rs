//! Epochs as calls, for programs translated from MPI: what types check in [`crate::Epoch`] is checked at run time here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use transom_transport::{Integer, Number};

use super::access::Access;
use zerocopy::IntoBytes;

use crate::operation::Accumulate;
use crate::window::Core;
use crate::{Class, Element, LockKind, Operation, Result};

/// Epochs of a window that are opened and closed by calls (MPI-4.1 §12.5). Closed at the latest when this value goes.
///
/// Origin buffers are copied by the call, gets are complete when the call returns: no buffer is borrowed. Errors are as
/// those of [`crate::Epoch`], and [`Class::RmaSync`] for an operation without an epoch that covers it.
///
/// ```
/// transom::local(2, |job| {
///     let window = job.allocate::<u32>(1)?;
///     let rma = window.explicit();
///     let error = rma.put(0, 0, &[1]).unwrap_err();
///     assert_eq!(error.class(), transom::Class::RmaSync);
///     rma.lock(transom::LockKind::Exclusive, 0)?;
///     rma.put(0, 0, &[1])?;
///     rma.unlock(0)?;
///     drop(rma);
///     window.free()
/// })?;
/// # Ok::<(), transom::Error>(())
/// ```
#[derive(Debug)]
pub struct Explicit<'w, T> {
    core: &'w Core,
    locks: RefCell<BTreeMap<usize, Access<'w>>>,
    all: RefCell<Option<Access<'w>>>,
    _elements: PhantomData<T>,
}

impl<'w, T: Element> Explicit<'w, T> {
    pub(crate) fn new(core: &'w Core) -> Self {
        Self { core, locks: RefCell::default(), all: RefCell::new(None), _elements: PhantomData }
    }

    /// Opens an epoch to `target` (`MPI_Win_lock`).
    ///
    /// # Errors
    /// No such rank; an epoch is open that does not go with it.
    pub fn lock(&self, kind: LockKind, target: usize) -> Result<()> {
        let access = Access::lock(self.core, kind, target)?;
        self.locks.borrow_mut().insert(target, access);
        Ok(())
    }

    /// Completes everything at `target` and closes the epoch (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// No lock of `target` is held; an operation failed.
    pub fn unlock(&self, target: usize) -> Result<()> {
        match self.locks.borrow_mut().remove(&target) {
            Some(access) => access.close(),
            None => {
                let message = "no lock of this rank is held: call lock first";
                Err(self.core.error(Class::RmaSync, "unlock", message.into()).with_target(target))
            }
        }
    }

    /// Opens an epoch to all ranks (`MPI_Win_lock_all`).
    ///
    /// # Errors
    /// Another epoch is open.
    pub fn lock_all(&self) -> Result<()> {
        *self.all.borrow_mut() = Some(Access::lock_all(self.core)?);
        Ok(())
    }

    /// Completes everything and closes the epoch (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// No such epoch is open; an operation failed.
    pub fn unlock_all(&self) -> Result<()> {
        match self.all.borrow_mut().take() {
            Some(access) => access.close(),
            None => {
                let message = "no lock_all epoch is open: call lock_all first";
                Err(self.core.error(Class::RmaSync, "unlock_all", message.into()))
            }
        }
    }

    /// The epoch that covers `target`.
    fn access<R>(
        &self,
        operation: &'static str,
        target: usize,
        use_it: impl FnOnce(&Access<'w>) -> Result<R>,
    ) -> Result<R> {
        if let Some(access) = self.all.borrow().as_ref() {
            return use_it(access);
        }
        if let Some(access) = self.locks.borrow().get(&target) {
            return use_it(access);
        }
        self.core.target(operation, target)?;
        let message = "no access epoch to this rank is open: call lock or lock_all first";
        Err(self.core.error(Class::RmaSync, operation, message.into()).with_target(target))
    }

    /// `MPI_Put`.
    ///
    /// # Errors
    /// No epoch, no such rank, or outside its window.
    pub fn put(&self, target: usize, displacement: usize, data: &[T]) -> Result<()> {
        self.access("put", target, |access| access.put(target, displacement, data.as_bytes(), true))
    }

    /// `MPI_Get`.
    ///
    /// # Errors
    /// As [`Explicit::put`].
    pub fn get(&self, target: usize, displacement: usize, data: &mut [T]) -> Result<()> {
        self.access("get", target, |access| access.get_now(target, displacement, data.as_mut_bytes()))
    }

    /// `MPI_Win_flush`.
    ///
    /// # Errors
    /// No epoch; an operation failed.
    pub fn flush(&self, target: usize) -> Result<()> {
        self.access("flush", target, |access| access.flush(target))
    }
}

impl<T: Element + Number> Explicit<'_, T> {
    /// `MPI_Accumulate`.
    ///
    /// # Errors
    /// As [`Explicit::put`]; an element would not be aligned.
    pub fn accumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: &[T],
    ) -> Result<()> {
        let what = Accumulate { op: O::OP, ty: T::TYPE, operands: data.as_bytes() };
        self.access("accumulate", target, |access| access.accumulate(target, displacement, what))
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
        self.access("fetch_and_op", target, |access| access.fetch_op(target, displacement, O::OP, value))
    }
}

impl<T: Element + Integer> Explicit<'_, T> {
    /// `MPI_Compare_and_swap`.
    ///
    /// # Errors
    /// As [`Explicit::accumulate`].
    pub fn compare_and_swap(&self, target: usize, displacement: usize, compare: T, value: T) -> Result<T> {
        self.access("compare_and_swap", target, |access| {
            access.compare_swap(target, displacement, compare, value)
        })
    }
}
