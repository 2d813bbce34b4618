//! Tests made of rank programs: one for each transport, over jobs of several sizes.

use std::time::Duration;

use transom::{Job, Result};

use super::child;

/// A rank's program.
pub type Program = fn(&Job) -> Result<()>;

const LIMIT: Duration = Duration::from_secs(180);

/// Runs `program` in a child, as jobs of each number of ranks.
pub fn run(transport: &str, test: &str, sizes: &[usize], program: Program) {
    child::run(transport, test, LIMIT, || {
        for ranks in sizes {
            let job = transom::local(*ranks, |job| program(&job));
            job.unwrap_or_else(|error| panic!("{test} on {ranks} ranks: {error}"));
        }
    });
}
