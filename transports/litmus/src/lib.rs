//! Litmus tests: what a transport's completions, order and atomics mean, seen instead of believed.
//!
//! Providers have been caught reporting completions before the data is at the target (libfabric#5601, #6169,
//! ompi#7982), keeping registrations of memory that was unmapped (libfabric#5662, #6244) and counting completions twice
//! or not at all (libfabric#4803). Each test here looks at one such property with the target's own CPU, for a bounded
//! time, and gives a [`Verdict`] with numbers. A property that a test cannot break may still not hold: a verdict says what
//! was seen, in how many rounds.
//!
//! Both ranks are in this process, so that one clock and one program see both ends. What is between them is the real
//! transport, over the real wire where the ranks are on two devices.

mod atomics;
mod count;
mod delivery;
mod flush;
mod neighbour;
mod order;
mod pair;
mod passive;
mod remap;
mod side;
mod stamp;
mod target;
mod verdict;

pub use atomics::{against_cpu, against_device};
pub use count::count_audit;
pub use delivery::{delivery, delivery_passive, inline};
pub use flush::{FlushMethod, flush_method};
pub use neighbour::neighbour;
pub use order::{message_after_put, order, read_back};
pub use pair::{Memory, Pair};
pub use passive::passive;
pub use remap::{remap_get, remap_put};
pub use verdict::{Outcome, Verdict};

use std::time::Duration;

/// How long to look: a test ends when either is used up, but not before it has looked once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Rounds of a test.
    pub rounds: u64,
    /// Time of a test.
    pub time: Duration,
}

impl Default for Effort {
    /// Some two seconds for all tests.
    fn default() -> Self {
        Self { rounds: 10_000, time: Duration::from_millis(200) }
    }
}

impl Effort {
    /// So many rounds, however long they take, within reason: 5 ms each.
    pub fn rounds(rounds: u64) -> Self {
        Self { rounds, time: Duration::from_millis(rounds.saturating_mul(5).clamp(200, 3_600_000)) }
    }
}

/// A test.
pub type Test = fn(&Pair, Effort) -> Verdict;

/// Every test, in the order in which the verdicts make sense to a reader.
pub const TESTS: [Test; 13] = [
    delivery,
    delivery_passive,
    inline,
    order,
    message_after_put,
    read_back,
    against_cpu,
    against_device,
    neighbour,
    remap_put,
    remap_get,
    passive,
    count_audit,
];

/// Runs every test.
pub fn run(pair: &Pair, effort: Effort) -> Vec<Verdict> {
    TESTS.iter().map(|test| test(pair, effort)).collect()
}
