//! Elements, and the predefined operations as types: a pair that the standard does not allow does not compile.

use transom_transport::{Arithmetic, Basic, Bitwise, Located, Logical, Ordered, ReduceOp};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What a window can hold: plain data, every bit pattern of which is valid.
///
/// Implemented for every type with zerocopy's `FromBytes`, `IntoBytes` and `Immutable` that is `Copy + Send + Sync`:
/// numbers, arrays of them, structs with the derives.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Element for T {}

/// A predefined operation that is defined for elements `T` (MPI-4.1 §6.9.2, §6.9.4, §12.3.4).
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
    Sum: Arithmetic;
    /// `MPI_PROD`; integers wrap.
    Prod: Arithmetic;
    /// `MPI_MIN`.
    Min: Ordered;
    /// `MPI_MAX`.
    Max: Ordered;
    /// `MPI_LAND`: 1 if both are non-zero.
    Land: Logical;
    /// `MPI_LOR`: 1 if either is non-zero.
    Lor: Logical;
    /// `MPI_LXOR`: 1 if exactly one is non-zero.
    Lxor: Logical;
    /// `MPI_BAND`.
    Band: Bitwise;
    /// `MPI_BOR`.
    Bor: Bitwise;
    /// `MPI_BXOR`.
    Bxor: Bitwise;
    /// `MPI_REPLACE`: an atomic put.
    Replace: Basic;
    /// `MPI_NO_OP`: with a fetch, an atomic get.
    NoOp: Basic;
    /// `MPI_MINLOC`: the smaller value with its index; of equal values the smaller index.
    MinLoc: Located;
    /// `MPI_MAXLOC`: the larger value with its index; of equal values the smaller index.
    MaxLoc: Located;
}
