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
    values: [u64; 2],
    /// The points to the power of `count`.
    powers: [u64; 2],
}

impl Signature {
    /// Of no element.
    pub(super) const EMPTY: Self = Self {
        parts: Parts::Empty,
        leaves: Parts::Empty,
        count: 0,
        external: 0,
        values: [0; 2],
        powers: [1; 2],
    };

    /// Of one element.
    pub(super) fn basic(leaf: Leaf) -> Self {
        let ty = leaf.element();
        Self {
            parts: Parts::Uniform(ty),
            leaves: Parts::Uniform(leaf),
            count: 1,
            external: leaf.external_size(),
            values: [ty as u64 + 1; 2],
            powers: POINTS,
        }
    }

    /// This sequence and then `next`.
    pub(super) fn then(self, next: Self) -> Self {
        let value = |i: usize| add(multiply(self.values[i], next.powers[i]), next.values[i]);
        let power = |i: usize| multiply(self.powers[i], next.powers[i]);
        Self {
            parts: self.parts.and(next.parts),
            leaves: self.leaves.and(next.leaves),
            // Both wrap only in squares that `repeated` computes and does not use.
            count: self.count.wrapping_add(next.count),
            external: self.external.wrapping_add(next.external),
            values: [value(0), value(1)],
            powers: [power(0), power(1)],
        }
    }

    /// This sequence `count` times.
    pub(super) fn repeated(self, mut count: usize) -> Self {
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

    /// Whether `count` of this and `other_count` of `other` are the same sequence.
    pub(super) fn matches(self, count: usize, other: Self, other_count: usize) -> bool {
        let total = self.count as u128 * count as u128;
        if total != other.count as u128 * other_count as u128 {
            return false;
        }
        match (self.parts, other.parts) {
            _ if total == 0 => true,
            (Parts::Mixed, Parts::Mixed) => {
                count == other_count && self.values == other.values && self.count == other.count
                    || self.repeated(count).values == other.repeated(other_count).values
            }
            (a, b) => a == b,
        }
    }
}
