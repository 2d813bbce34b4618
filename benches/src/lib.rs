//! Microbenchmarks of one-sided communication, each beside its limit: what the same machine does, in the same run,
//! without a runtime in between.
//!
//! The programs are `bench`, the whole suite ([`suite`]), and `rma-bench`, a table for developers; this library is what they are made
//! of, so that a test can run all of it.

#![forbid(unsafe_code)]

pub mod area;
pub mod figure;
pub mod limit;
pub mod machine;
pub mod operation;
pub mod options;
pub mod pair;
pub mod passive;
pub mod repeat;
pub mod report;
pub mod samples;
pub mod suite;
pub mod sync;
mod sync_report;
mod time;
pub mod windows;

use anyhow::{Context, bail};
use transom::Job;

pub use options::Options;

/// Runs the benchmark as one of two ranks (of more for `--sync`) and returns what rank 0 has to print (nothing at the others). Collective.
///
/// # Errors
/// The job has not two ranks; an operation failed; the two ranks could not connect.
pub fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    if !options.sync && job.size() != 2 {
        bail!(
            "rma-bench measures between two ranks, but this job has {}: transom run -n 2 rma-bench",
            job.size()
        );
    }
    if !options.unbound {
        machine::bind(job.rank(), false).context("binding to a core (--unbound does without)")?;
    }
    match options {
        Options { sync: true, .. } => sync::run(job, options),
        Options { passive: true, .. } => passive::run(job, options),
        _ => figure::run(job, options),
    }
}
