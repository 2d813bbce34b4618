//! Numbers: what each operation computes, and which CPU atomic does it.

use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

use super::cell::has_cell;
use super::{Arithmetic, Basic, Bitwise, Integer, Logical, Number, Ordered, Swappable, sealed};
use crate::{DataType, ReduceOp};

/// The way of the CPU's own atomics.
macro_rules! number {
    ($t:ty, $atomic:ty, $ty:ident, $reduce:expr) => {
        impl Basic for $t {
            const TYPE: DataType = DataType::$ty;

            #[inline]
            fn reduce(op: ReduceOp, target: Self, origin: Self) -> Self {
                $reduce(op, target, origin)
            }
        }

        impl Number for $t {}
        impl Arithmetic for $t {}
        impl Ordered for $t {}

        impl sealed::Update for $t {
            #[inline]
            unsafe fn update(at: *mut u8, op: ReduceOp, origin: Self) -> Option<Self> {
                if !has_cell(at, size_of::<Self>()) {
                    return None;
                }
                // SAFETY: valid for an element by contract and aligned to its size as just checked; accesses
                // by others are CPU atomics or raw copies that MPI-4.1 §12.7 makes undefined in value only
                // (std::sync::atomic, "Memory model").
                let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
                Some(sealed::Atomic::fetch_op(cell, op, origin))
            }
        }
    };
}

pub(super) fn logical<T: From<bool>>(op: ReduceOp, a: bool, b: bool) -> T {
    T::from(match op {
        ReduceOp::Land => a && b,
        ReduceOp::Lor => a || b,
        _ => a != b,
    })
}

macro_rules! integer {
    ($($t:ty, $atomic:ty, $ty:ident;)*) => {$(
        number!($t, $atomic, $ty, |op, target: $t, origin: $t| match op {
            ReduceOp::Sum => target.wrapping_add(origin),
            ReduceOp::Prod => target.wrapping_mul(origin),
            ReduceOp::Min => target.min(origin),
            ReduceOp::Max => target.max(origin),
            ReduceOp::Land | ReduceOp::Lor | ReduceOp::Lxor => logical(op, target != 0, origin != 0),
            ReduceOp::Band => target & origin,
            ReduceOp::Bor => target | origin,
            ReduceOp::Bxor => target ^ origin,
            ReduceOp::Replace => origin,
            ReduceOp::NoOp | ReduceOp::MinLoc | ReduceOp::MaxLoc => target,
        });

        impl Integer for $t {}
        impl Logical for $t {}
        impl Bitwise for $t {}
        impl Swappable for $t {}

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
                    ReduceOp::NoOp | ReduceOp::MinLoc | ReduceOp::MaxLoc => cell.load(Ordering::Acquire),
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
        number!($t, $atomic, $ty, |op, target: $t, origin: $t| match op {
            ReduceOp::Sum => target + origin,
            ReduceOp::Prod => target * origin,
            ReduceOp::Min => target.min(origin),
            ReduceOp::Max => target.max(origin),
            ReduceOp::Replace => origin,
            _ => target,
        });

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
