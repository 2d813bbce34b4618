//! Type signatures: the sequence of basic types, without their displacements (MPI-4.1 §5.1).
//!
//! A signature is kept as a polynomial over two prime fields, whose concatenation and powers cost a few
//! multiplications however long the sequences are. Sequences of different lengths or of one basic type are
//! told apart exactly; others of n elements by values that agree by accident with a chance of n^2 / 2^122.

use transom_transport::DataType;

use super::basic::Leaf;

/// The prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

/// Where the polynomials are evaluated: two numbers without meaning.
const POINTS: [u64; 2] = [0x0f3a_91c4_7be5_2d69, 0x1a62_d80b_35f7_c41d];

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // 2^61 = 1 in this field: the upper bits are added to the lower ones. Both parts are below 2^61.
    add((product as u64) & PRIME, (product >> 61) as u64)
}

fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

/// What a type map is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts<T> {
    /// Nothing.
    Empty,
    /// One basic type.
    Uniform(T),
    /// Several.
    Mixed,
}

impl<T: Copy + PartialEq> Parts<T> {
    fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Empty, other) | (other, Self::Empty) => other,
            (a, b) if a == b => a,
            _ => Self::Mixed,
        }
    }
}

/// A sequence's polynomial at both points, and the points to the power of its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Polynomial {
    values: [u64; 2],
    powers: [u64; 2],
}

impl Polynomial {
    const EMPTY: Self = Self { values: [0; 2], powers: [1; 2] };

    fn element(ty: DataType) -> Self {
        Self { values: [ty as u64 + 1; 2], powers: POINTS }
    }

    /// Of this sequence and then `next`.
    fn then(self, next: Self) -> Self {
        let value = |i: usize| add(multiply(self.values[i], next.powers[i]), next.values[i]);
        let power = |i: usize| multiply(self.powers[i], next.powers[i]);
        Self { values: [value(0), value(1)], powers: [power(0), power(1)] }
    }

    /// Of this sequence `count` times.
    fn repeated(self, mut count: usize) -> Self {
        let mut result = Self::EMPTY;
        let mut square = self;
        while count > 0 {
            if count & 1 == 1 {
                result = result.then(square);
            }
            square = square.then(square);
            count >>= 1;
        }
        result
    }
}

/// A sequence of basic types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    /// Which basic types: a `long` is the integer that has its bits.
    pub(super) parts: Parts<DataType>,
    /// The same, with a `long` told apart.
    pub(super) leaves: Parts<Leaf>,
    /// How many elements.
    pub(super) count: usize,
    /// Bytes in external32, never more than in memory.
    pub(super) external: usize,
    /// Of several basic types: one alone needs none, and most sequences are such.
    mixed: Polynomial,
}

impl Signature {
    /// Of no element.
    pub(super) const EMPTY: Self =
        Self { parts: Parts::Empty, leaves: Parts::Empty, count: 0, external: 0, mixed: Polynomial::EMPTY };

    /// Of one element.
    pub(super) fn basic(leaf: Leaf) -> Self {
        Self {
            parts: Parts::Uniform(leaf.element()),
            leaves: Parts::Uniform(leaf),
            count: 1,
            external: leaf.external_size(),
            mixed: Polynomial::EMPTY,
        }
    }

    fn polynomial(self) -> Polynomial {
        match self.parts {
            Parts::Empty => Polynomial::EMPTY,
            Parts::Uniform(ty) => Polynomial::element(ty).repeated(self.count),
            Parts::Mixed => self.mixed,
        }
    }

    /// This sequence and then `next`. The caller knows that the sizes of both together are no overflow.
    pub(super) fn then(self, next: Self) -> Self {
        let parts = self.parts.and(next.parts);
        let mixed = match parts {
            Parts::Mixed => self.polynomial().then(next.polynomial()),
            _ => Polynomial::EMPTY,
        };
        Self {
            parts,
            leaves: self.leaves.and(next.leaves),
            count: self.count.wrapping_add(next.count),
            external: self.external.wrapping_add(next.external),
            mixed,
        }
    }

    /// This sequence `count` times. The caller knows that its size is no overflow.
    pub(super) fn repeated(self, count: usize) -> Self {
        if count == 0 {
            return Self::EMPTY;
        }
        let mixed = match self.parts {
            Parts::Mixed => self.mixed.repeated(count),
            _ => Polynomial::EMPTY,
        };
        let times = |number: usize| number.wrapping_mul(count);
        Self { count: times(self.count), external: times(self.external), mixed, ..self }
    }

    /// Whether `count` of this and `other_count` of `other` are the same sequence.
    pub(super) fn matches(self, count: usize, other: Self, other_count: usize) -> bool {
        let total = self.count as u128 * count as u128;
        if total != other.count as u128 * other_count as u128 {
            return false;
        }
        match (self.parts, other.parts) {
            _ if total == 0 => true,
            (Parts::Mixed, Parts::Mixed) => {
                count == other_count && self.mixed == other.mixed && self.count == other.count
                    || self.mixed.repeated(count) == other.mixed.repeated(other_count)
            }
            (a, b) => a == b,
        }
    }
}
