//! Collectives that combine elements, by a predefined operation or a function of the program's own. Elements are combined in
//! the order of ranks; how they are bracketed depends on the number of ranks only.

use std::sync::Arc;

use transom_transport::memory::reduce_into;
use zerocopy::IntoBytes;

use super::raw::{self, Combine};
use super::typed::elements;
use crate::{Basic, Communicator, Element, Operation, ReduceOp, Request, Result};

/// A function of two elements, the left of which is of lower ranks, as one of bytes.
fn function<T: Element>(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Combine {
    Arc::new(move |left: &[u8], right: &mut [u8]| {
        let size = size_of::<T>().max(1);
        for (left, right) in left.chunks_exact(size).zip(right.chunks_exact_mut(size)) {
            if let (Ok(a), Ok(b)) = (T::read_from_bytes(left), T::read_from_bytes(right)) {
                right.copy_from_slice(function(a, b).as_bytes());
            }
        }
    })
}

fn predefined<T: Basic, O: Operation<T>>() -> Combine {
    match O::OP {
        // What these leave depends on the order of their operands.
        ReduceOp::Replace | ReduceOp::NoOp => function(|left: T, right: T| T::reduce(O::OP, left, right)),
        op => Arc::new(move |left: &[u8], right: &mut [u8]| reduce_into(op, T::TYPE, right, left)),
    }
}

fn whole<T: Element>(operation: &'static str, bytes: Option<Vec<u8>>) -> Result<Option<Vec<T>>> {
    bytes.map(|bytes| elements(operation, &bytes)).transpose()
}

fn lengths<T>(counts: &[usize]) -> Vec<usize> {
    counts.iter().map(|count| count.saturating_mul(size_of::<T>())).collect()
}

impl Communicator {
    /// `op` over every rank's `data`, element by element, at rank `root` (`MPI_Reduce`, MPI-4.1 §6.9.1). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; `root` is not a rank; lengths differ.
    pub fn reduce<T: Basic, O: Operation<T>>(
        &self,
        root: usize,
        _op: O,
        data: &[T],
    ) -> Result<Option<Vec<T>>> {
        whole("reduce", raw::reduce(self, root, data.as_bytes().to_vec(), predefined::<T, O>())?)
    }

    /// [`Communicator::reduce`] with a function of the program's, which need not be commutative; its first argument is
    /// of lower ranks.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    pub fn reduce_with<T: Element>(
        &self,
        root: usize,
        data: &[T],
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<Option<Vec<T>>> {
        whole("reduce", raw::reduce(self, root, data.as_bytes().to_vec(), function(op))?)
    }

    /// [`Communicator::reduce`], nonblocking (`MPI_Ireduce`, §6.12.7).
    pub fn ireduce<T: Basic, O: Operation<T>>(
        &self,
        root: usize,
        _op: O,
        data: &[T],
    ) -> Request<Option<Vec<T>>> {
        raw::ireduce(self, root, data.as_bytes().to_vec(), predefined::<T, O>())
            .map(|bytes| whole("reduce", bytes))
    }

    /// `op` over every rank's `data`, element by element, in an order that depends on the number of ranks only
    /// (`MPI_Allreduce`, §6.9.6). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; lengths differ.
    pub fn allreduce<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Result<Vec<T>> {
        elements("allreduce", &raw::allreduce(self, data.as_bytes().to_vec(), predefined::<T, O>())?)
    }

    /// [`Communicator::allreduce`] with a function as in [`Communicator::reduce_with`].
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn allreduce_with<T: Element>(
        &self,
        data: &[T],
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        elements("allreduce", &raw::allreduce(self, data.as_bytes().to_vec(), function(op))?)
    }

    /// [`Communicator::allreduce`], nonblocking (`MPI_Iallreduce`, §6.12.8).
    pub fn iallreduce<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Request<Vec<T>> {
        raw::iallreduce(self, data.as_bytes().to_vec(), predefined::<T, O>())
            .map(|bytes| elements("allreduce", &bytes))
    }

    /// `op` over the `data` of this and all lower ranks (`MPI_Scan`, §6.11.1). Collective.
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn scan<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Result<Vec<T>> {
        elements("scan", &raw::scan(self, data.as_bytes().to_vec(), predefined::<T, O>())?)
    }

    /// [`Communicator::scan`] with a function as in [`Communicator::reduce_with`].
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn scan_with<T: Element>(
        &self,
        data: &[T],
        op: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        elements("scan", &raw::scan(self, data.as_bytes().to_vec(), function(op))?)
    }

    /// [`Communicator::scan`], nonblocking (`MPI_Iscan`).
    pub fn iscan<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Request<Vec<T>> {
        raw::iscan(self, data.as_bytes().to_vec(), predefined::<T, O>()).map(|bytes| elements("scan", &bytes))
    }

    /// `op` over the `data` of all lower ranks; nothing at rank 0 (`MPI_Exscan`, §6.11.2). Collective.
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn exscan<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Result<Option<Vec<T>>> {
        whole("exscan", raw::exscan(self, data.as_bytes().to_vec(), predefined::<T, O>())?)
    }

    /// [`Communicator::exscan`], nonblocking (`MPI_Iexscan`).
    pub fn iexscan<T: Basic, O: Operation<T>>(&self, _op: O, data: &[T]) -> Request<Option<Vec<T>>> {
        raw::iexscan(self, data.as_bytes().to_vec(), predefined::<T, O>()).map(|bytes| whole("exscan", bytes))
    }

    /// `op` over every rank's `data`, of which rank i gets `counts[i]` elements (`MPI_Reduce_scatter`, §6.10.2; with equal
    /// counts `MPI_Reduce_scatter_block`). Collective.
    ///
    /// # Errors
    /// As [`Communicator::allreduce`]; counts that do not add up to the data, or one too many or few.
    pub fn reduce_scatter<T: Basic, O: Operation<T>>(
        &self,
        _op: O,
        data: &[T],
        counts: &[usize],
    ) -> Result<Vec<T>> {
        let (bytes, combine) = (data.as_bytes().to_vec(), predefined::<T, O>());
        elements("reduce_scatter", &raw::reduce_scatter(self, bytes, lengths::<T>(counts), combine)?)
    }

    /// [`Communicator::reduce_scatter`], nonblocking (`MPI_Ireduce_scatter`).
    pub fn ireduce_scatter<T: Basic, O: Operation<T>>(
        &self,
        _op: O,
        data: &[T],
        counts: &[usize],
    ) -> Request<Vec<T>> {
        let (bytes, combine) = (data.as_bytes().to_vec(), predefined::<T, O>());
        raw::ireduce_scatter(self, bytes, lengths::<T>(counts), combine)
            .map(|bytes| elements("reduce_scatter", &bytes))
    }
}
