//! Operations with a request of their own (MPI-4.1 §12.3.5): they own their buffers.

use std::sync::Arc;

use transom_transport::{Basic, ReduceOp};
use zerocopy::IntoBytes;

use super::access::Access;
use super::{Epoch, Explicit};
use crate::engine::Promise;
use crate::operation::{self, Accumulate, Place};
use crate::{Class, Element, Operation, Request, Result};

impl<'w> Access<'w> {
    /// The place of an operation with a request.
    pub(super) fn requested_place(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Result<Option<Place<'w>>> {
        let place = self.place(operation, target, displacement, bytes)?;
        if place.as_ref().is_some_and(|place| place.remote.direct.is_none()) {
            self.touch(target);
        }
        Ok(place)
    }

    /// Whether operations with requests are allowed: in epochs of locks (§12.3.5).
    pub(super) fn check_requests(&self, operation: &'static str, target: usize) -> Result<()> {
        if self.is_passive() {
            return Ok(());
        }
        let message = "operations with requests are for epochs of lock and lock_all";
        Err(self.core().error(Class::RmaSync, operation, message).with_target(target))
    }

    fn done<R: Send + 'static>(&self, operation: &'static str, value: R) -> Request<R> {
        Request::done(&self.core().member, operation, Ok(value))
    }

    pub(super) fn under_way<R: Send + 'static>(
        &self,
        operation: &'static str,
        promise: Arc<Promise<R>>,
    ) -> Request<R> {
        Request::of(&self.core().member, operation, promise)
    }

    fn rput<T: Element>(&self, target: usize, displacement: usize, data: Vec<T>) -> Result<Request<Vec<T>>> {
        const NAME: &str = "rput";
        let bytes = size_of_val(&data[..]);
        self.check_requests(NAME, target)?;
        match self.requested_place(NAME, target, displacement, bytes) {
            Ok(Some(place)) if place.remote.direct.is_none() => {
                operation::rput(self.core(), &place, data).map(|promise| self.under_way(NAME, promise))
            }
            Ok(Some(_)) => {
                self.put(target, displacement, data.as_bytes(), false)?;
                Ok(self.done(NAME, data))
            }
            Ok(None) => Ok(self.done(NAME, data)),
            Err(error) => {
                // Over several regions: copied.
                self.put_over((target, displacement, error), data.as_bytes(), true)?;
                Ok(self.done(NAME, data))
            }
        }
    }

    fn rget<T: Element>(&self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
        const NAME: &str = "rget";
        // More than an address space holds is outside every window.
        let bytes = len.saturating_mul(size_of::<T>());
        self.check_requests(NAME, target)?;
        let place = match self.requested_place(NAME, target, displacement, bytes) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(self.done(NAME, Vec::new())),
            Err(error) => {
                self.check_pieces("get", &(target, displacement, error), bytes)?;
                let mut data = vec![T::new_zeroed(); len];
                self.get_now(target, displacement, data.as_mut_bytes())?;
                return Ok(self.done(NAME, data));
            }
        };
        let mut data = vec![T::new_zeroed(); len];
        if place.remote.direct.is_none() {
            return operation::rget(self.core(), &place, data).map(|promise| self.under_way(NAME, promise));
        }
        self.get(target, displacement, data.as_mut_bytes())?;
        Ok(self.done(NAME, data))
    }

    fn raccumulate<T: Element + Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        const NAME: &str = "raccumulate";
        let what = Accumulate { op, ty: T::TYPE, operands: data.as_bytes() };
        self.check_requests(NAME, target)?;
        // The operands are read by the call.
        self.accumulate(target, displacement, what)?;
        Ok(self.done(NAME, data))
    }

    fn rget_accumulate<T: Element + Basic>(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: &[T],
    ) -> Result<Request<Vec<T>>> {
        let what = Accumulate { op, ty: T::TYPE, operands: data.as_bytes() };
        self.check_requests(operation, target)?;
        let old = || vec![T::new_zeroed(); data.len()];
        match self.requested_place(operation, target, displacement, what.operands.len()) {
            Ok(Some(place)) => {
                let promise = operation::rget_accumulate(self.core(), operation, &place, what)?;
                Ok(self.under_way(operation, promise))
            }
            Ok(None) => Ok(self.done(operation, old())),
            Err(error) => {
                let mut old = old();
                let refused = (target, displacement, error);
                self.accumulate_over(operation, refused, what, Some(old.as_mut_bytes()))?;
                Ok(self.done(operation, old))
            }
        }
    }
}

impl<T: Element> Epoch<'_, '_, T> {
    /// A put with a request of its own (`MPI_Rput`, §12.3.5): it owns the data, and gives it back when it may be reused.
    /// Complete at the target after a flush or the end of the epoch; these complete the request, too. For epochs of lock
    /// and lock_all.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let window = job.allocate::<u32>(4)?;
    ///     window.lock_all(|epoch| {
    ///         let put = epoch.rput(1 - job.rank(), 0, vec![1, 2, 3])?;
    ///         let data = put.wait()?; // or: put.await
    ///         assert_eq!(data, [1, 2, 3]);
    ///         epoch.flush(1 - job.rank())?;
    ///         assert_eq!(epoch.rget(1 - job.rank(), 1, 2)?.wait()?, [2, 3]);
    ///         Ok(())
    ///     })?;
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Epoch::put`]; an epoch of another kind. Errors of the network come with the request.
    pub fn rput(&self, target: usize, displacement: usize, data: Vec<T>) -> Result<Request<Vec<T>>> {
        self.access.rput(target, displacement, data)
    }

    /// A get of `len` elements with a request of its own (`MPI_Rget`), which gives them. Nothing from the null rank.
    ///
    /// # Errors
    /// As [`Epoch::rput`].
    pub fn rget(&self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
        self.access.rget(target, displacement, len)
    }
}

impl<T: Element + Basic> Epoch<'_, '_, T> {
    /// An accumulate with a request of its own (`MPI_Raccumulate`), which gives the data back.
    ///
    /// # Errors
    /// As [`Epoch::rput`].
    pub fn raccumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        self.access.raccumulate(target, displacement, O::OP, data)
    }

    /// A fetching accumulate with a request of its own (`MPI_Rget_accumulate`), which gives what was there. `data` is read
    /// by the call.
    ///
    /// # Errors
    /// As [`Epoch::rput`].
    pub fn rget_accumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: &[T],
    ) -> Result<Request<Vec<T>>> {
        self.access.rget_accumulate("rget_accumulate", target, displacement, O::OP, data)
    }

    /// [`Epoch::fetch_op`] with a request of its own, which gives what was there. The standard has no such call.
    ///
    /// # Errors
    /// As [`Epoch::rput`].
    pub fn rfetch_op<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        value: T,
    ) -> Result<Request<T>> {
        let request = self.access.rget_accumulate("rfetch_and_op", target, displacement, O::OP, &[value])?;
        Ok(request.map(|old| Ok(old.first().copied().unwrap_or_else(T::new_zeroed))))
    }
}

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Rput`: as [`Epoch::rput`].
    ///
    /// # Errors
    /// As [`Epoch::rput`]; no epoch.
    pub fn rput(&self, target: usize, displacement: usize, data: Vec<T>) -> Result<Request<Vec<T>>> {
        self.access("rput", target, |access| access.rput(target, displacement, data))
    }

    /// `MPI_Rget`: as [`Epoch::rget`].
    ///
    /// # Errors
    /// As [`Explicit::rput`].
    pub fn rget(&self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
        self.access("rget", target, |access| access.rget(target, displacement, len))
    }
}

impl<T: Element + Basic> Explicit<'_, T> {
    /// `MPI_Raccumulate`: as [`Epoch::raccumulate`].
    ///
    /// # Errors
    /// As [`Explicit::rput`].
    pub fn raccumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        self.access("raccumulate", target, |access| access.raccumulate(target, displacement, O::OP, data))
    }

    /// `MPI_Rget_accumulate`: as [`Epoch::rget_accumulate`].
    ///
    /// # Errors
    /// As [`Explicit::rput`].
    pub fn rget_accumulate<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        data: &[T],
    ) -> Result<Request<Vec<T>>> {
        self.access("rget_accumulate", target, |access| {
            access.rget_accumulate("rget_accumulate", target, displacement, O::OP, data)
        })
    }
}
