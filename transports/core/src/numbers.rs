//! Numbers that accumulates work on: what each operation computes, and which CPU atomic does it.

use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{DataType, ReduceOp};

/// An element that the predefined operations work on.
///
/// Sealed: the implementations are the integer types of 1 to 8 bytes, `f32` and `f64`.
pub trait Number:
    sealed::Atomic + FromBytes + IntoBytes + Immutable + Copy + PartialEq + Send + Sync + 'static
{
    /// The name of this type on the wire.
    const TYPE: DataType;

    /// What `op` makes of the target's value and the origin's.
    fn reduce(op: ReduceOp, target: Self, origin: Self) -> Self;
}

/// A number that compare-and-swap, logical and bitwise operations are defined for (MPI-4.1 §12.3.4, §6.9.2).
pub trait Integer: Number + Eq {}

pub(crate) mod sealed {
    use crate::ReduceOp;

    /// Elements as CPU atomics. The cell is the target's element, shared with other ranks.
    pub trait Atomic: Sized {
        /// The CPU's atomic of the same size.
        type Cell;
        /// `cell = cell op origin`, returns what was there.
        fn fetch_op(cell: &Self::Cell, op: ReduceOp, origin: Self) -> Self;
        /// `if cell == compare { cell = origin }`, returns what was there. Compares bytes.
        fn compare_swap(cell: &Self::Cell, compare: Self, origin: Self) -> Self;
    }
}

fn logical<T: From<bool>>(op: ReduceOp, a: bool, b: bool) -> T {
    T::from(match op {
        ReduceOp::Land => a && b,
        ReduceOp::Lor => a || b,
        _ => a != b,
    })
}

macro_rules! integer {
    ($($t:ty, $atomic:ty, $ty:ident;)*) => {$(
        impl Number for $t {
            const TYPE: DataType = DataType::$ty;

            #[inline]
            fn reduce(op: ReduceOp, target: Self, origin: Self) -> Self {
                match op {
                    ReduceOp::Sum => target.wrapping_add(origin),
                    ReduceOp::Prod => target.wrapping_mul(origin),
                    ReduceOp::Min => target.min(origin),
                    ReduceOp::Max => target.max(origin),
                    ReduceOp::Land | ReduceOp::Lor | ReduceOp::Lxor => logical(op, target != 0, origin != 0),
                    ReduceOp::Band => target & origin,
                    ReduceOp::Bor => target | origin,
                    ReduceOp::Bxor => target ^ origin,
                    ReduceOp::Replace => origin,
                    ReduceOp::NoOp => target,
                }
            }
        }

        impl Integer for $t {}

        impl sealed::Atomic for $t {
            type Cell = $atomic;

            #[inline]
            fn fetch_op(cell: &$atomic, op: ReduceOp, origin: Self) -> Self {
                const ORDER: Ordering = Ordering::AcqRel;
                match op {
                    ReduceOp::Sum => cell.fetch_add(origin, ORDER),
                    ReduceOp::Band => cell.fetch_and(origin, ORDER),
                    ReduceOp::Bor => cell.fetch_or(origin, ORDER),
                    ReduceOp::Bxor => cell.fetch_xor(origin, ORDER),
                    ReduceOp::Replace => cell.swap(origin, ORDER),
                    ReduceOp::NoOp => cell.load(Ordering::Acquire),
                    ReduceOp::Min | ReduceOp::Max | ReduceOp::Prod | ReduceOp::Land | ReduceOp::Lor
                    | ReduceOp::Lxor => {
                        let mut old = cell.load(Ordering::Relaxed);
                        loop {
                            let new = Self::reduce(op, old, origin);
                            match cell.compare_exchange_weak(old, new, ORDER, Ordering::Relaxed) {
                                Ok(_) => return old,
                                Err(now) => old = now,
                            }
                        }
                    }
                }
            }

            #[inline]
            fn compare_swap(cell: &$atomic, compare: Self, origin: Self) -> Self {
                match cell.compare_exchange(compare, origin, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
        }
    )*};
}

integer! {
    i8, AtomicI8, I8;
    i16, AtomicI16, I16;
    i32, AtomicI32, I32;
    i64, AtomicI64, I64;
    u8, AtomicU8, U8;
    u16, AtomicU16, U16;
    u32, AtomicU32, U32;
    u64, AtomicU64, U64;
}

macro_rules! float {
    ($($t:ty, $atomic:ty, $ty:ident;)*) => {$(
        impl Number for $t {
            const TYPE: DataType = DataType::$ty;

            /// Operations that the standard does not define on floating types leave the target as it is; the
            /// runtime refuses them before they get here.
            #[inline]
            fn reduce(op: ReduceOp, target: Self, origin: Self) -> Self {
                match op {
                    ReduceOp::Sum => target + origin,
                    ReduceOp::Prod => target * origin,
                    ReduceOp::Min => target.min(origin),
                    ReduceOp::Max => target.max(origin),
                    ReduceOp::Replace => origin,
                    _ => target,
                }
            }
        }

        impl sealed::Atomic for $t {
            type Cell = $atomic;

            #[inline]
            fn fetch_op(cell: &$atomic, op: ReduceOp, origin: Self) -> Self {
                match op {
                    ReduceOp::Replace => Self::from_bits(cell.swap(origin.to_bits(), Ordering::AcqRel)),
                    ReduceOp::NoOp => Self::from_bits(cell.load(Ordering::Acquire)),
                    _ => {
                        let mut old = cell.load(Ordering::Relaxed);
                        loop {
                            let new = Self::reduce(op, Self::from_bits(old), origin).to_bits();
                            match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                                Ok(_) => return Self::from_bits(old),
                                Err(now) => old = now,
                            }
                        }
                    }
                }
            }

            #[inline]
            fn compare_swap(cell: &$atomic, compare: Self, origin: Self) -> Self {
                let bits = (compare.to_bits(), origin.to_bits());
                match cell.compare_exchange(bits.0, bits.1, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(old) | Err(old) => Self::from_bits(old),
                }
            }
        }
    )*};
}

float! {
    f32, AtomicU32, F32;
    f64, AtomicU64, F64;
}

/// Runs `$body` with `$T` bound to the Rust type that a [`DataType`] names.
#[macro_export]
macro_rules! with_number {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            $crate::DataType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DataType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DataType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DataType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DataType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DataType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DataType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DataType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DataType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DataType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
