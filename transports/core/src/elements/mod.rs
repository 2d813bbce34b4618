//! Elements that accumulates work on: the Rust type of each [`DataType`], and what each operation makes of
//! it.
//!
//! [`Basic`] is every one of them. [`Number`]s are those that one CPU instruction (or a short loop around
//! one) updates: the fast way of single elements is theirs.

mod bytes;
pub(crate) mod cell;
mod complex;
mod long_double;
mod numbers;
mod pairs;
#[cfg(test)]
mod tests;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use bytes::{Byte, Char, Flag, WideChar};
pub use complex::{Complex, ComplexLongDouble};
pub use long_double::LongDouble;
pub use pairs::{F32I32, F64I32, F80I32, I16I32, I32I32, I64I32};

use crate::{DataType, ReduceOp};

/// An element that the predefined operations work on (MPI-4.1 §6.9.2, §6.9.4). Any can be replaced and read
/// atomically; the traits below say what else.
///
/// Sealed: the implementations are the types that [`DataType`] names.
pub trait Basic:
    sealed::Update + FromBytes + IntoBytes + Immutable + KnownLayout + Copy + PartialEq + Send + Sync + 'static
{
    /// The name of this type on the wire.
    const TYPE: DataType;

    /// What `op` makes of the target's value and the origin's. Padding stays the target's. An operation that
    /// the standard does not define on the type leaves the target as it is;
    /// [`reduce_valid`](crate::reduce_valid) tells.
    fn reduce(op: ReduceOp, target: Self, origin: Self) -> Self;
}

/// Elements that `SUM` and `PROD` are defined for: integers, real and complex floating types.
pub trait Arithmetic: Basic {}

/// Elements that `MIN` and `MAX` are defined for: integers and real floating types.
pub trait Ordered: Basic {}

/// Elements that `LAND`, `LOR` and `LXOR` are defined for: integers and [`Flag`].
pub trait Logical: Basic {}

/// Elements that `BAND`, `BOR` and `BXOR` are defined for: integers and [`Byte`].
pub trait Bitwise: Basic {}

/// Elements that `MINLOC` and `MAXLOC` are defined for: values with an index.
pub trait Located: Basic {}

/// Elements that compare-and-swap is defined for: those of [`swap_valid`](crate::swap_valid).
pub trait Swappable: Basic + Eq {}

/// A number that the CPU updates atomically: an integer, `f32` or `f64`.
pub trait Number: Arithmetic + Ordered + sealed::Atomic {}

/// An integer of 1 to 8 bytes.
pub trait Integer: Number + Logical + Bitwise + Swappable {}

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

    /// Elements at any address.
    pub trait Update: Sized {
        /// `element = element op origin` as one CPU atomic, returns what was there. None, and nothing is
        /// done, where the CPU has no atomic for it: the element is wider than 8 bytes or not aligned to its
        /// size.
        ///
        /// # Safety
        /// `at` is valid for reads and writes of an element, and all others that write there meanwhile do so by CPU atomics
        /// or raw copies.
        unsafe fn update(at: *mut u8, op: ReduceOp, origin: Self) -> Option<Self>;
    }
}

/// Runs `$body` with `$T` bound to the Rust type that a [`DataType`] names if that is a [`Number`], else
/// `$other`.
#[macro_export]
macro_rules! with_number {
    (@ $ty:expr, $T:ident => $body:expr, $other:expr; $($name:ident $rust:ty),*) => {
        match $ty {
            $($crate::DataType::$name => {
                type $T = $rust;
                $body
            })*
            _ => $other,
        }
    };
    ($ty:expr, $T:ident => $body:expr, else => $other:expr) => {
        $crate::with_number!(@ $ty, $T => $body, $other;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64)
    };
}

/// Runs `$body` with `$T` bound to the Rust type, a [`Basic`], that a [`DataType`] names.
#[macro_export]
macro_rules! with_basic {
    (@ $ty:expr, $T:ident => $body:expr; $($name:ident $rust:ty),*) => {
        match $ty {
            $($crate::DataType::$name => {
                type $T = $rust;
                $body
            })*
        }
    };
    ($ty:expr, $T:ident => $body:expr) => {
        $crate::with_basic!(@ $ty, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64,
            Bool $crate::Flag, Byte $crate::Byte, Char $crate::Char, WideChar $crate::WideChar,
            F80 $crate::LongDouble,
            C32 $crate::Complex<f32>, C64 $crate::Complex<f64>, C80 $crate::ComplexLongDouble,
            F32I32 $crate::F32I32, F64I32 $crate::F64I32, I64I32 $crate::I64I32, I32I32 $crate::I32I32,
            I16I32 $crate::I16I32, F80I32 $crate::F80I32)
    };
}

/// What `op` makes of an element of `ty`, of 8 bytes, and an operand; all as numbers of the machine. Padding, and elements
/// of other sizes, stay as they are.
pub fn reduce_word(op: ReduceOp, ty: DataType, target: u64, origin: u64) -> u64 {
    with_basic!(ty, T => {
        if size_of::<T>() != size_of::<u64>() || op == ReduceOp::NoOp {
            return target;
        }
        let value: T = cell::element(&target.to_ne_bytes());
        let new = T::reduce(op, value, cell::element(&origin.to_ne_bytes()));
        new.as_bytes().try_into().map_or(target, u64::from_ne_bytes)
    })
}
