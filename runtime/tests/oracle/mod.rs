//! Random programs against a sequential model.
//!
//! A program is made from a seed ([`generate`]): a window, and rounds of operations between barriers. Each round cuts every
//! rank's memory into zones, which belong to one origin, or to all for one commutative operation, or to the owner's
//! loads and stores. So the [`model`] knows every result, though ranks run as they like, and programs are valid by
//! construction. [`run`] runs a program at one rank and compares all that it fetches, and all memory after each round.

pub mod any;
pub mod calls;
pub mod epochs;
pub mod fill;
pub mod generate;
pub mod model;
pub mod operations;
pub mod order;
pub mod program;
#[path = "../common/random.rs"]
pub mod random;
pub mod recipe;
pub mod reduce;
pub mod run;
pub mod show;
pub mod window;
pub mod zones;

pub use random::Random;

/// Choices of a generator.
impl Random {
    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A divisor of a small number.
    pub fn divisor(&mut self, n: usize) -> usize {
        let divisors: Vec<usize> = (1..=n.min(64)).filter(|d| n.is_multiple_of(*d)).collect();
        self.pick(&divisors)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The seed of the first program: `TRANSOM_TEST_SEED`, or the one that everybody gets.
pub fn first_seed() -> u64 {
    std::env::var("TRANSOM_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}
