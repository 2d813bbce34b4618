//! Passive progress: how long operations take while their target computes, without a call to the runtime.

use std::time::{Duration, Instant};

use transom::Job;

use crate::Options;
use crate::operation::{MOST_BYTES, Operation, Sync, Verb, WORD};
use crate::options::Kind;
use crate::repeat::Once;
use crate::report;
use crate::samples::Samples;
use crate::windows::{Extent, Windows};

const OPERATIONS: [(&str, Operation); 6] = [
    ("exclusive lock, put, unlock", Operation::new(Verb::Put, WORD).by(Sync::Lock)),
    ("put, flush 8 B", Operation::new(Verb::Put, WORD)),
    ("get, flush 8 B", Operation::new(Verb::Get, WORD)),
    ("fetch_and_op", Operation::new(Verb::FetchAndOp, WORD)),
    ("compare_and_swap", Operation::new(Verb::CompareAndSwap, WORD)),
    ("accumulate 1 MiB f64, flush", Operation::new(Verb::Accumulate, 1 << 20)),
];

/// Time between two operations: a target's progress thread shares a core with its computation here, and a flood of requests
/// would measure how the scheduler shares a core between two busy threads.
const PAUSE: Duration = Duration::from_millis(2);

/// Times of one operation, each measured alone.
#[derive(Debug)]
pub struct Passive {
    /// Kind of window.
    pub window: &'static str,
    /// The operation.
    pub name: &'static str,
    /// The first, which finds out the way to the target, in nanoseconds.
    pub first: f64,
    /// All later ones.
    pub later: Samples,
    /// How many were measured while the target computed.
    pub count: usize,
}

/// Measures and returns the report, at rank 0.
pub(crate) fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    let compute = Duration::from_millis(if options.quick { 100 } else { 2000 });
    let mut rows = Vec::new();
    for kind in options.kinds() {
        rows.extend(on(job, options, kind, compute)?);
    }
    Ok(if job.rank() == 0 { report::passive(job, options, compute, &rows) } else { String::new() })
}

fn on(job: &Job, options: &Options, kind: Kind, compute: Duration) -> anyhow::Result<Vec<Passive>> {
    let mut rows = Vec::new();
    let mut windows = Windows::new(job, kind, Extent::of(MOST_BYTES))?;
    job.barrier()?;
    let start = Instant::now();
    if job.rank() == 1 {
        while start.elapsed() < compute {
            std::hint::spin_loop();
        }
    } else {
        for (name, operation) in OPERATIONS.into_iter().filter(|(name, _)| options.wants(name)) {
            let first = once(&mut windows, operation)?;
            let row = Passive { window: kind.name(), name, first, later: Samples::new(), count: 1 };
            rows.push((row, operation));
        }
        // An equal part of the time to each, and an end well before the target's.
        let part = compute.mul_f64(0.8) / rows.len().max(1) as u32;
        for (row, operation) in &mut rows {
            let began = Instant::now();
            while began.elapsed() < part && start.elapsed() < compute.mul_f64(0.9) && row.count < 1000 {
                std::thread::sleep(PAUSE);
                row.later.push(Duration::from_nanos(once(&mut windows, *operation)? as u64), 1);
                row.count += 1;
            }
        }
    }
    job.barrier()?;
    windows.free()?;
    Ok(rows.into_iter().map(|(row, _)| row).collect())
}

/// Nanoseconds of one operation, its epoch included: nothing has warmed it up.
fn once(windows: &mut Windows, operation: Operation) -> anyhow::Result<f64> {
    let start = Instant::now();
    windows.act(operation, 1, &mut Once)?;
    Ok(start.elapsed().as_secs_f64() * 1e9)
}
