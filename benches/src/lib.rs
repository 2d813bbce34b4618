//! Microbenchmarks of one-sided communication, each beside its limit: what the same machine does, in the same run,
//! without a runtime in between.
//!
//! The program is `rma-bench`; this library is what it is made of, so that a test can run all of it.

#![forbid(unsafe_code)]

pub mod figure;
pub mod limit;
pub mod machine;
pub mod operation;
pub mod options;
pub mod pair;
pub mod passive;
pub mod report;
pub mod samples;

use anyhow::{Context, bail};
use transom::Job;

pub use options::Options;

/// Runs the benchmark as one of two ranks and returns what rank 0 has to print (nothing at rank 1). Collective.
///
/// # Errors
/// The job has not two ranks; an operation failed; the two ranks could not connect.
pub fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    if job.size() != 2 {
        bail!(
            "rma-bench measures between two ranks, but this job has {}: transom run -n 2 rma-bench",
            job.size()
        );
    }
    if !options.unbound {
        machine::bind(job.rank()).context("binding to a core (--unbound does without)")?;
    }
    if options.passive { passive::run(job, options) } else { figure::run(job, options) }
}
