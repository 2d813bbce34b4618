//! Values with an index, for `MINLOC` and `MAXLOC` (MPI-4.1 §6.9.4), laid out as C's structs of the two.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::cell::basic;
use super::{Located, LongDouble};
use crate::ReduceOp;

macro_rules! pairs {
    ($($(#[$doc:meta])* $name:ident { value: $value:ty, $(between: [u8; $between:literal],)? index: i32
        $(, behind: [u8; $behind:literal])? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name {
            /// What is compared.
            pub value: $value,
            $(between: [u8; $between],)?
            /// What goes along; the smaller one of equal values.
            pub index: i32,
            $(behind: [u8; $behind],)?
        }

        impl $name {
            /// A value with its index; the padding is zero.
            #[inline]
            pub const fn new(value: $value, index: i32) -> Self {
                Self { value, $(between: [0; $between],)? index $(, behind: [0; $behind])? }
            }

            /// `self` with the data of `from`.
            #[inline]
            const fn with(mut self, from: Self) -> Self {
                self.value = from.value;
                self.index = from.index;
                self
            }
        }

        /// By the data; padding means nothing.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.value == other.value && self.index == other.index
            }
        }
    )*};
}

pairs! {
    /// `struct { float; int }` (`MPI_FLOAT_INT`, MPI-4.1 §6.9.4): 8 bytes.
    F32I32 { value: f32, index: i32 }
    /// `struct { double; int }` (`MPI_DOUBLE_INT`, MPI-4.1 §6.9.4): 16 bytes, the last 4 padding.
    F64I32 { value: f64, index: i32, behind: [u8; 4] }
    /// `struct { long; int }` (`MPI_LONG_INT`, MPI-4.1 §6.9.4): 16 bytes, the last 4 padding.
    I64I32 { value: i64, index: i32, behind: [u8; 4] }
    /// `struct { int; int }` (`MPI_2INT`, MPI-4.1 §6.9.4): 8 bytes.
    I32I32 { value: i32, index: i32 }
    /// `struct { short; int }` (`MPI_SHORT_INT`, MPI-4.1 §6.9.4): 8 bytes, 2 between the two padding.
    I16I32 { value: i16, between: [u8; 2], index: i32 }
    /// `struct { long double; int }` (`MPI_LONG_DOUBLE_INT`, MPI-4.1 §6.9.4): 32 bytes, the last 12 padding.
    F80I32 { value: LongDouble, index: i32, behind: [u8; 12] }
}

macro_rules! located {
    ($($t:ident)*) => {$(
        impl Located for $t {}

        basic!($t, $t, |op, target, origin| {
            // Of a number and NaN the number, as with MIN and MAX.
            let first = match (op, origin.value.partial_cmp(&target.value)) {
                (ReduceOp::Replace, _) => origin,
                (ReduceOp::MinLoc, Some(order)) if order.is_lt() => origin,
                (ReduceOp::MaxLoc, Some(order)) if order.is_gt() => origin,
                (ReduceOp::MinLoc | ReduceOp::MaxLoc, Some(order)) if order.is_eq() => {
                    $t { index: target.index.min(origin.index), ..target }
                }
                (ReduceOp::MinLoc | ReduceOp::MaxLoc, None)
                    if target.value.partial_cmp(&target.value).is_none() => origin,
                _ => target,
            };
            target.with(first)
        });
    )*};
}

located! { F32I32 F64I32 I64I32 I32I32 I16I32 }

#[cfg(target_arch = "x86_64")]
located! { F80I32 }

#[cfg(not(target_arch = "x86_64"))]
basic!(F80I32, F80I32, |op, target, origin| {
    if op == ReduceOp::Replace { target.with(origin) } else { target }
});
