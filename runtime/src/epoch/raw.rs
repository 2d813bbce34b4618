//! Operations of epochs that are calls, for doors to other languages: types and operations are values, and buffers are
//! where the program keeps them until the operation is complete. Meaning and errors are those of the methods with types.

use transom_transport::{DataType, ReduceOp, reduce_valid, swap_valid, with_basic};
use zerocopy::{FromBytes, IntoBytes};

use super::Explicit;
use crate::memory::{Foreign, OriginBuffer};
use crate::operation::{Accumulate, Layout};
use crate::{Class, Element, Error, Result};

/// Does something in the epoch that covers a target; in that of lock_all without a further call.
macro_rules! in_epoch {
    ($epochs:expr, $operation:expr, $target:expr, $access:ident => $body:expr) => {{
        if let Some($access) = $epochs.at_once() {
            return $body;
        }
        $epochs.access($operation, $target, |$access| $body)
    }};
}

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Put` of bytes.
    ///
    /// # Errors
    /// As [`Explicit::put`].
    #[inline]
    pub fn put_foreign(&self, target: usize, displacement: usize, origin: Foreign) -> Result<()> {
        self.access("put", target, |access| access.put(target, displacement, origin.bytes(), false))
    }

    /// `MPI_Get` of bytes, which are there when the epoch ends or a flush has completed it.
    ///
    /// # Errors
    /// As [`Explicit::put`].
    #[inline]
    pub fn get_foreign(&self, target: usize, displacement: usize, result: Foreign) -> Result<()> {
        self.access("get", target, |access| access.get(target, displacement, result.bytes_mut()))
    }

    /// `MPI_Put`.
    ///
    /// # Errors
    /// As [`Explicit::put_as`].
    pub fn put_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        origin: Foreign,
        from: Layout<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        self.access("put", target, |access| {
            access.put_shaped(target, displacement, OriginBuffer::of_scope(origin.bytes()), &from, &to)
        })
    }

    /// `MPI_Get`.
    ///
    /// # Errors
    /// As [`Explicit::get_as`].
    pub fn get_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        result: Foreign,
        to: Layout<'_>,
        from: Layout<'_>,
    ) -> Result<()> {
        self.access("get", target, |access| {
            access.get_shaped(target, displacement, result.bytes_mut(), &to, &from)
        })
    }

    /// `MPI_Accumulate` of consecutive elements.
    ///
    /// # Errors
    /// As [`Explicit::accumulate`]; an operation that is not defined on the type.
    #[inline]
    pub fn accumulate_raw(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        ty: DataType,
        operands: &[u8],
    ) -> Result<()> {
        // What programs do most is compiled for it; wrapping sums are the same with and without a sign.
        if op == ReduceOp::Sum && operands.len() == 8 && matches!(ty, DataType::I64 | DataType::U64) {
            let one = element::<u64>(operands)?;
            if self.add_at_once(target, displacement, one).is_some() {
                return Ok(());
            }
        }
        self.accumulate_any(target, displacement, (op, ty), operands)
    }

    fn accumulate_any(
        &self,
        target: usize,
        displacement: usize,
        (op, ty): (ReduceOp, DataType),
        operands: &[u8],
    ) -> Result<()> {
        self.check_op("accumulate", op, ty)?;
        self.access("accumulate", target, |access| {
            if operands.len() == ty.size() {
                return with_basic!(ty, B => access.accumulate_one(target, displacement, op, element::<B>(operands)?));
            }
            access.accumulate(target, displacement, Accumulate { op, ty, operands })
        })
    }

    /// `MPI_Get_accumulate` of consecutive elements.
    ///
    /// # Errors
    /// As [`Explicit::accumulate_raw`]; lengths differ.
    pub fn get_accumulate_raw(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        ty: DataType,
        operands: &[u8],
        result: &mut [u8],
    ) -> Result<()> {
        self.check_op("get_accumulate", op, ty)?;
        let what = Accumulate { op, ty, operands };
        self.access("get_accumulate", target, |access| {
            access.get_accumulate(target, displacement, what, result)
        })
    }

    /// `MPI_Fetch_and_op`. Nothing is written to `result` if the target is the null rank.
    ///
    /// # Errors
    /// As [`Explicit::accumulate_raw`].
    #[inline]
    pub fn fetch_op_raw(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        ty: DataType,
        value: &[u8],
        result: &mut [u8],
    ) -> Result<()> {
        // As in `accumulate_raw`.
        if op == ReduceOp::Sum && matches!(ty, DataType::I64 | DataType::U64) {
            let one = element::<u64>(value)?;
            if let Some(old) = self.add_at_once(target, displacement, one) {
                return keep(target, old, result);
            }
        }
        self.fetch_op_any(target, displacement, (op, ty), value, result)
    }

    fn fetch_op_any(
        &self,
        target: usize,
        displacement: usize,
        (op, ty): (ReduceOp, DataType),
        value: &[u8],
        result: &mut [u8],
    ) -> Result<()> {
        self.check_op("fetch_and_op", op, ty)?;
        self.access("fetch_and_op", target, |access| {
            with_basic!(ty, B => {
                let old = access.fetch_op(target, displacement, op, element::<B>(value)?)?;
                keep(target, old, result)
            })
        })
    }

    /// `MPI_Compare_and_swap`. Nothing is written to `result` if the target is the null rank.
    ///
    /// # Errors
    /// As [`Explicit::compare_and_swap`]; a type that it is not defined on.
    #[inline]
    pub fn compare_and_swap_raw(
        &self,
        target: usize,
        displacement: usize,
        ty: DataType,
        compare: &[u8],
        value: &[u8],
        result: &mut [u8],
    ) -> Result<()> {
        const NAME: &str = "compare_and_swap";
        if !swap_valid(ty) {
            let message = format!("it is defined on integers, logical and byte types, not on {ty:?}");
            return Err(self.core().error(Class::Type, NAME, message));
        }
        // Bytes are compared: integers of the same size stand for all.
        macro_rules! swap {
            ($swapped:ty) => {{
                let (compare, value) = (element::<$swapped>(compare)?, element::<$swapped>(value)?);
                in_epoch!(self, NAME, target, access => {
                    keep(target, access.compare_swap(target, displacement, compare, value)?, result)
                })
            }};
        }
        match ty.size() {
            1 => swap!(u8),
            2 => swap!(u16),
            4 => swap!(u32),
            _ => swap!(u64),
        }
    }

    /// Whether an operation with a request may be started: an epoch of lock or lock_all covers `target` (§12.3.5).
    ///
    /// # Errors
    /// [`Class::RmaSync`]: none does.
    pub fn check_requests(&self, operation: &'static str, target: usize) -> Result<()> {
        self.access(operation, target, |access| access.check_requests(operation, target))
    }

    /// Whether the window can be freed: no epoch is open, but for that of a fence after which nothing was done.
    ///
    /// # Errors
    /// [`Class::RmaSync`]: one is.
    pub fn check_closed(&self, operation: &'static str) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let message = "an epoch is open: end it first";
        Err(self.core().error(Class::RmaSync, operation, message))
    }

    #[inline]
    fn check_op(&self, operation: &'static str, op: ReduceOp, ty: DataType) -> Result<()> {
        if reduce_valid(op, ty) {
            return Ok(());
        }
        let message = format!("{op:?} is not defined on {ty:?} (MPI-4.1 §6.9.2)");
        Err(self.core().error(Class::Op, operation, message))
    }
}

/// The first element of some bytes.
#[inline]
fn element<B: FromBytes>(bytes: &[u8]) -> Result<B> {
    B::read_from_prefix(bytes).map(|(element, _)| element).map_err(|_| short())
}

/// What was there, to where the caller wants it.
#[inline]
fn keep<B: IntoBytes + zerocopy::Immutable>(target: usize, old: B, result: &mut [u8]) -> Result<()> {
    if target == crate::NULL_RANK {
        return Ok(());
    }
    old.write_to_prefix(result).map_err(|_| short())
}

#[cold]
fn short() -> Error {
    Error::new(Class::Count, "operation", "a buffer is shorter than one element")
}
