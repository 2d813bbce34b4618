//! Complex numbers.

use std::ops::{Add, Mul, Sub};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::cell::basic;
use super::{Arithmetic, LongDouble};
use crate::ReduceOp;

/// A complex number (`MPI_C_FLOAT_COMPLEX`, `MPI_C_DOUBLE_COMPLEX`, MPI-4.1 §6.9.2). As in C (C11 §6.2.5),
/// its layout is that of an array of the real and the imaginary part.
#[derive(Debug, Clone, Copy, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Complex<T>([T; 2]);

/// C's `long double _Complex` (`MPI_C_LONG_DOUBLE_COMPLEX`): 32 bytes.
pub type ComplexLongDouble = Complex<LongDouble>;

impl<T: Copy> Complex<T> {
    /// `re + i·im`.
    #[inline]
    pub const fn new(re: T, im: T) -> Self {
        Self([re, im])
    }

    /// The real part.
    #[inline]
    pub const fn re(self) -> T {
        self.0[0]
    }

    /// The imaginary part.
    #[inline]
    pub const fn im(self) -> T {
        self.0[1]
    }
}

impl<T: Copy + Add<Output = T>> Add for Complex<T> {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self::new(self.re() + other.re(), self.im() + other.im())
    }
}

/// By the formula: infinities are not recovered from NaN, which C's Annex G would.
impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Mul for Complex<T> {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        let re = self.re() * other.re() - self.im() * other.im();
        Self::new(re, self.re() * other.im() + self.im() * other.re())
    }
}

macro_rules! complex {
    ($($t:ty, $ty:ident;)*) => {$(
        impl Arithmetic for Complex<$t> {}

        basic!(Complex<$t>, $ty, |op, target, origin| match op {
            ReduceOp::Sum => target + origin,
            ReduceOp::Prod => target * origin,
            ReduceOp::Replace => origin,
            _ => target,
        });
    )*};
}

complex! {
    f32, C32;
    f64, C64;
}

#[cfg(target_arch = "x86_64")]
complex! {
    LongDouble, C80;
}

#[cfg(not(target_arch = "x86_64"))]
basic!(ComplexLongDouble, C80, |op, target, origin| if op == ReduceOp::Replace { origin } else { target });
