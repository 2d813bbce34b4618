//! Operations with a request of their own (MPI-4.1 §12.3.5).

use transom_transport::Basic;

use super::Explicit;
use crate::{Element, Operation, Request, Result};

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Rput`: as [`Epoch::rput`].
    ///
    /// # Errors
    /// As [`Epoch::rput`]; no epoch.
    pub fn rput(&self, target: usize, displacement: usize, data: Vec<T>) -> Result<Request<Vec<T>>> {
        self.access.rput(target, displacement, data)
    }

    /// `MPI_Rget`: as [`Epoch::rget`].
    ///
    /// # Errors
    /// As [`Explicit::rput`].
    pub fn rget(&self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
        self.access.rget(target, displacement, len)
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
        self.access.raccumulate(target, displacement, O::OP, data)
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
        self.access.rget_accumulate("rget_accumulate", target, displacement, O::OP, data)
    }
}
