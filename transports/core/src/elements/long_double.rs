//! The x87's extended precision.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::cell::basic;
use crate::ReduceOp;

/// C's `long double` on x86-64 (`MPI_LONG_DOUBLE`, MPI-4.1 §6.9.2): the x87's 80 bits, 64 of them mantissa,
/// and six bytes that mean nothing (System V ABI, AMD64 supplement §3.1.2); results of arithmetic have zeros
/// there.
///
/// Elsewhere it is 16 bytes without arithmetic.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(16))]
pub struct LongDouble([u8; 16]);

impl LongDouble {
    /// The number with these bytes in memory.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes in memory.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

#[cfg(target_arch = "x86_64")]
mod x87 {
    use std::arch::asm;
    use std::cmp::Ordering;
    use std::fmt;
    use std::ops::{Add, Mul, Sub};

    use super::LongDouble;
    use crate::elements::{Arithmetic, Ordered};

    /// Loads `$a`, then `$b`, runs the instructions and stores the top of the stack to `$to`.
    macro_rules! x87 {
        ($to:expr, [$($step:literal),*] $(, $name:ident = $from:expr)*) => {
            // SAFETY: every operand is the address of a live local of the size that its instruction names
            // (Intel SDM vol. 2: FLD and FSTP m80fp take 10 bytes, m64fp 8). All x87 registers are clobbered,
            // so their stack is empty on entry, and each load is popped, so it is on exit (Rust reference,
            // "Inline assembly", rules).
            unsafe {
                asm!(
                    $($step,)*
                    $($name = in(reg) $from,)*
                    to = in(reg) $to,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                )
            }
        };
    }

    macro_rules! arithmetic {
        ($($trait:ident $method:ident $instruction:literal;)*) => {$(
            impl $trait for LongDouble {
                type Output = Self;

                #[inline]
                fn $method(self, other: Self) -> Self {
                    let mut result = Self::default();
                    x87!(
                        &raw mut result,
                        ["fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $instruction, "fstp tbyte ptr [{to}]"],
                        a = &raw const self, b = &raw const other
                    );
                    result
                }
            }
        )*};
    }

    arithmetic! {
        Add add "faddp st(1), st";
        Sub sub "fsubp st(1), st";
        Mul mul "fmulp st(1), st";
    }

    impl From<f64> for LongDouble {
        /// Exact.
        #[inline]
        fn from(value: f64) -> Self {
            let mut result = Self::default();
            x87!(&raw mut result, ["fld qword ptr [{a}]", "fstp tbyte ptr [{to}]"], a = &raw const value);
            result
        }
    }

    impl From<LongDouble> for f64 {
        /// Rounded to the nearest.
        #[inline]
        fn from(value: LongDouble) -> Self {
            let mut result = 0.0f64;
            x87!(&raw mut result, ["fld tbyte ptr [{a}]", "fstp qword ptr [{to}]"], a = &raw const value);
            result
        }
    }

    impl PartialOrd for LongDouble {
        #[inline]
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            // Unordered sets ZF, PF and CF, equal ZF, less CF (Intel SDM vol. 2, FUCOMIP).
            let mut flags = [0u8; 3];
            x87!(
                &raw mut flags,
                [
                    "fld tbyte ptr [{b}]",
                    "fld tbyte ptr [{a}]",
                    "fucomip st, st(1)",
                    "fstp st(0)",
                    "setp byte ptr [{to}]",
                    "sete byte ptr [{to} + 1]",
                    "setb byte ptr [{to} + 2]"
                ],
                a = &raw const *self,
                b = &raw const *other
            );
            match flags {
                [1, ..] => None,
                [_, 1, _] => Some(Ordering::Equal),
                [_, _, 1] => Some(Ordering::Less),
                _ => Some(Ordering::Greater),
            }
        }
    }

    impl PartialEq for LongDouble {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            self.partial_cmp(other) == Some(Ordering::Equal)
        }
    }

    impl fmt::Debug for LongDouble {
        /// As the nearest `f64`.
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f64::from(*self).fmt(f)
        }
    }

    impl Arithmetic for LongDouble {}
    impl Ordered for LongDouble {}

    /// Of a number and NaN the number, as `f64::min` has it.
    #[inline]
    pub fn pick(wanted: Ordering, target: LongDouble, origin: LongDouble) -> LongDouble {
        match origin.partial_cmp(&target) {
            Some(order) if order == wanted => origin,
            None if target.partial_cmp(&target).is_none() => origin,
            _ => target,
        }
    }
}

#[cfg(target_arch = "x86_64")]
basic!(LongDouble, F80, |op, target, origin| match op {
    ReduceOp::Sum => target + origin,
    ReduceOp::Prod => target * origin,
    ReduceOp::Min => x87::pick(std::cmp::Ordering::Less, target, origin),
    ReduceOp::Max => x87::pick(std::cmp::Ordering::Greater, target, origin),
    ReduceOp::Replace => origin,
    _ => target,
});

#[cfg(not(target_arch = "x86_64"))]
mod opaque {
    /// By the bytes.
    impl PartialEq for super::LongDouble {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl std::fmt::Debug for super::LongDouble {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
basic!(LongDouble, F80, |op, target, origin| if op == ReduceOp::Replace { origin } else { target });
