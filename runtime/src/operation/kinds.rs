//! Elements, and the predefined operations as types: a pair that the standard does not allow does not compile.

use transom_transport::{Integer, Number, ReduceOp};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What a window can hold: plain data, every bit pattern of which is valid.
///
/// Implemented for every type with zerocopy's `FromBytes`, `IntoBytes` and `Immutable` that is `Copy + Send + Sync`:
/// numbers, arrays of them, structs with the derives.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Element for T {}

/// A predefined operation that is defined for elements `T` (MPI-4.1 §6.9.2, §12.3.4).
pub trait Operation<T>: Copy {
    /// The operation as a value.
    const OP: ReduceOp;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $bound:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl<T: $bound> Operation<T> for $name {
            const OP: ReduceOp = ReduceOp::$name;
        }
    )*};
}

operations! {
    /// `MPI_SUM`; integers wrap.
    Sum: Number;
    /// `MPI_PROD`; integers wrap.
    Prod: Number;
    /// `MPI_MIN`.
    Min: Number;
    /// `MPI_MAX`.
    Max: Number;
    /// `MPI_LAND`: 1 if both are non-zero.
    Land: Integer;
    /// `MPI_LOR`: 1 if either is non-zero.
    Lor: Integer;
    /// `MPI_LXOR`: 1 if exactly one is non-zero.
    Lxor: Integer;
    /// `MPI_BAND`.
    Band: Integer;
    /// `MPI_BOR`.
    Bor: Integer;
    /// `MPI_BXOR`.
    Bxor: Integer;
    /// `MPI_REPLACE`: an atomic put.
    Replace: Number;
    /// `MPI_NO_OP`: with a fetch, an atomic get.
    NoOp: Number;
}
