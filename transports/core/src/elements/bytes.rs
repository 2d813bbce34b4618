//! Elements that are no numbers: logical values, bytes, characters.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::cell::basic;
use super::numbers::logical;
use super::{Bitwise, Logical, Swappable};
use crate::ReduceOp;

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable,
            KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl Swappable for $name {}

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    )*};
}

plain! {
    /// C's `_Bool` (`MPI_C_BOOL`, MPI-4.1 §6.9.2): a byte, true if it is not zero. For `LAND`, `LOR` and
    /// `LXOR`, which make it 0 or 1.
    Flag(u8);
    /// A byte without a meaning (`MPI_BYTE`, MPI-4.1 §6.9.2). For `BAND`, `BOR` and `BXOR`.
    Byte(u8);
    /// A printable character (`MPI_CHAR`, MPI-4.1 §6.9.2), which nothing is computed with.
    Char(u8);
    /// A wide printable character (`MPI_WCHAR`, MPI-4.1 §6.9.2), which nothing is computed with.
    WideChar(u32);
}

impl Flag {
    /// Whether it is true.
    #[inline]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl Logical for Flag {}
impl Bitwise for Byte {}

basic!(Flag, Bool, |op, target, origin| match op {
    ReduceOp::Land | ReduceOp::Lor | ReduceOp::Lxor => Flag(logical(op, target.get(), origin.get())),
    ReduceOp::Replace => origin,
    _ => target,
});

basic!(Byte, Byte, |op, target, origin| match op {
    ReduceOp::Band => Byte(target.0 & origin.0),
    ReduceOp::Bor => Byte(target.0 | origin.0),
    ReduceOp::Bxor => Byte(target.0 ^ origin.0),
    ReduceOp::Replace => origin,
    _ => target,
});

basic!(Char, Char, |op, target, origin| if op == ReduceOp::Replace { origin } else { target });
basic!(WideChar, WideChar, |op, target, origin| if op == ReduceOp::Replace { origin } else { target });
