//! Assertions: what a program promises at a synchronisation call, so that it can do less (MPI-4.1 §12.5.5).

use std::ops::BitOr;

use crate::{Class, Error, Result};

/// A set of assertions. Promises that a call does not know are errors; those that turn out to be broken are errors where
/// that can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Assert(u8);

impl Assert {
    /// Nothing is promised.
    pub const NONE: Self = Self(0);
    /// The matching calls have been, or need not be awaited (`MPI_MODE_NOCHECK`): of post, start and lock.
    pub const NOCHECK: Self = Self(1);
    /// The local window was not updated by stores since the last synchronisation (`MPI_MODE_NOSTORE`): of fence and post.
    pub const NOSTORE: Self = Self(2);
    /// The local window will not be updated by put or accumulate until the ensuing synchronisation (`MPI_MODE_NOPUT`): of
    /// fence and post.
    pub const NOPUT: Self = Self(4);
    /// The fence completes no operations of any rank (`MPI_MODE_NOPRECEDE`). All ranks say so, or none.
    pub const NOPRECEDE: Self = Self(8);
    /// No operations of any rank follow the fence (`MPI_MODE_NOSUCCEED`). All ranks say so, or none.
    pub const NOSUCCEED: Self = Self(16);

    const FENCE: Self = Self(2 | 4 | 8 | 16);
    const POST: Self = Self(1 | 2 | 4);
    const START: Self = Self::NOCHECK;
    const LOCK: Self = Self::NOCHECK;

    /// Whether all of `other` is promised.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The assertions as bits, in the order of the constants.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The assertions that bits name, if all are known.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 32 { Some(Self(bits)) } else { None }
    }

    /// Whether `operation` knows these assertions.
    #[inline]
    pub(crate) fn check(self, operation: &'static str) -> Result<()> {
        if self == Self::NONE { Ok(()) } else { self.check_given(operation) }
    }

    #[inline(never)]
    fn check_given(self, operation: &'static str) -> Result<()> {
        let known = match operation {
            "fence" => Self::FENCE,
            "post" => Self::POST,
            "start" => Self::START,
            _ => Self::LOCK,
        };
        if known.has(self) {
            return Ok(());
        }
        let message = format!("assertion {self} is not one of this call's: it knows {known}");
        Err(Error::new(Class::Assert, operation, message))
    }
}

impl BitOr for Assert {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::fmt::Display for Assert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 5] = ["NOCHECK", "NOSTORE", "NOPUT", "NOPRECEDE", "NOSUCCEED"];
        let names = NAMES.iter().enumerate().filter(|(i, _)| self.0 & (1 << i) != 0).map(|(_, name)| *name);
        let names: Vec<&str> = names.collect();
        f.write_str(if names.is_empty() { "NONE".into() } else { names.join(" | ") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_knows_its_own() {
        let all = [Assert::NOCHECK, Assert::NOSTORE, Assert::NOPUT, Assert::NOPRECEDE, Assert::NOSUCCEED];
        for (operation, known) in [
            ("fence", [false, true, true, true, true]),
            ("post", [true, true, true, false, false]),
            ("start", [true, false, false, false, false]),
            ("lock", [true, false, false, false, false]),
        ] {
            Assert::NONE.check(operation).unwrap();
            for (assert, known) in all.iter().zip(known) {
                let checked = assert.check(operation);
                assert_eq!(checked.is_ok(), known, "{operation} {assert}");
            }
        }
        assert_eq!((Assert::NOPUT | Assert::NOSTORE).to_string(), "NOSTORE | NOPUT");
        assert!(Assert::from_bits(32).is_none());
    }
}
