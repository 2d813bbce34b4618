//! What synchronisation costs against the number of ranks.
//!
//! One job of the largest number of ranks; for each number the first so many measure on a communicator of their own, and the
//! others wait in a barrier, where they sleep in the kernel.

use std::time::Duration;

use anyhow::bail;
use transom::{Communicator, Job, LockKind, Result, Window};

use crate::Options;
use crate::samples::Samples;
use crate::sync_report;
use crate::time::timed;

/// Numbers of ranks, as far as the job has them.
pub(crate) const RANKS: [usize; 7] = [2, 3, 4, 6, 8, 12, 16];
/// Neighbours on each side, for the wider exchange.
const NEIGHBOURS: usize = 2;
/// Samples of each call, and how long one may take by a first guess.
const ROUNDS: usize = 9;
const SAMPLE: Duration = Duration::from_millis(20);
/// Operations of a sample at most, and where a call takes long anyway.
const MOST: u64 = 10_000;

/// A call that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Barrier,
    Fence,
    FencePut,
    Pscw(usize),
    LockPut,
    LockAllPut,
    Flush,
    CreateFree,
}

const CALLS: [(&str, Call); 9] = [
    ("barrier", Call::Barrier),
    ("fence", Call::Fence),
    ("fence, put, fence", Call::FencePut),
    ("post, start, put, complete, wait; ring", Call::Pscw(1)),
    ("post, start, put, complete, wait; 4 neighbours", Call::Pscw(NEIGHBOURS)),
    ("exclusive lock, put, unlock", Call::LockPut),
    ("lock_all, put, unlock_all", Call::LockAllPut),
    ("put, flush", Call::Flush),
    ("allocate, free", Call::CreateFree),
];

impl Call {
    /// Whether all ranks make it together. Of the others rank 0 makes it alone.
    fn is_collective(self) -> bool {
        !matches!(self, Self::LockPut | Self::LockAllPut | Self::Flush)
    }
}

/// One call's times, for each number of ranks that was measured.
#[derive(Debug)]
pub struct Line {
    /// The call.
    pub name: &'static str,
    /// Number of ranks, and the samples.
    pub times: Vec<(usize, Samples)>,
}

/// Measures and returns the report, at rank 0.
pub(crate) fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    let sizes: Vec<usize> = RANKS.into_iter().filter(|ranks| *ranks <= job.size()).collect();
    if sizes.is_empty() {
        bail!("--sync measures on 2 to 16 ranks: transom run -n 16 rma-bench --sync");
    }
    let calls = CALLS.into_iter().filter(|(name, _)| options.wants(name));
    let mut lines: Vec<(Line, Call)> =
        calls.map(|(name, call)| (Line { name, times: Vec::new() }, call)).collect();
    for ranks in &sizes {
        let part = job.split((job.rank() < *ranks).then_some(0), job.rank() as i64)?;
        if let Some(comm) = part {
            for (line, call) in &mut lines {
                line.times.push((*ranks, measure(&comm, *call, options.quick)?));
            }
        }
        // The others wait here: they sleep.
        job.barrier()?;
    }
    let lines: Vec<Line> = lines.into_iter().map(|(line, _)| line).collect();
    Ok(if job.rank() == 0 { sync_report::report(job, options, &sizes, &lines)? } else { String::new() })
}

/// Samples of one call on the ranks of `comm`: the times of its slowest rank.
fn measure(comm: &Communicator, call: Call, quick: bool) -> Result<Samples> {
    let window = comm.allocate::<u64>(1)?;
    let (rounds, few) = if quick { (1, 1) } else { (ROUNDS, 3) };
    let guess = sample(comm, &window, call, few)?;
    let fit = SAMPLE.as_secs_f64() / guess.as_secs_f64() * few as f64;
    // As a cast saturates, it is a number whatever was measured.
    let count = if quick { 1 } else { (fit as u64).clamp(3, MOST) };
    let mut samples = Samples::new();
    for _ in 0..rounds {
        samples.push(sample(comm, &window, call, count)?, count);
    }
    window.free()?;
    Ok(samples)
}

/// How long `count` calls take, after one to warm up: the same number at every rank.
fn sample(comm: &Communicator, window: &Window<u64>, call: Call, count: u64) -> Result<Duration> {
    comm.barrier()?;
    let mut time = Duration::ZERO;
    if call.is_collective() || comm.rank() == 0 {
        time = repeat(comm, window, call, count)?;
    }
    let slowest = comm.allreduce(transom::Max, &[time.as_nanos() as u64])?;
    Ok(Duration::from_nanos(slowest[0].max(1)))
}

fn repeat(comm: &Communicator, window: &Window<u64>, call: Call, count: u64) -> Result<Duration> {
    let (rank, size) = (comm.rank(), comm.size());
    let next = (rank + 1) % size;
    match call {
        Call::Barrier => timed(count, || comm.barrier()),
        Call::Fence => {
            let rma = window.explicit();
            timed(count, || rma.fence(transom::Assert::NONE))
        }
        Call::FencePut => timed(count, || window.fence(|epoch| epoch.put_value(next, 0, 1))),
        Call::Pscw(reach) => {
            let (before, after) = neighbours(rank, size, reach);
            timed(count, || exchange(window, &before, &after))
        }
        Call::LockPut => {
            timed(count, || window.lock(LockKind::Exclusive, next, |epoch| epoch.put_value(next, 0, 1)))
        }
        Call::LockAllPut => timed(count, || window.lock_all(|epoch| epoch.put_value(next, 0, 1))),
        Call::Flush => window.lock_all(|epoch| {
            timed(count, || {
                epoch.put_value(next, 0, 1)?;
                epoch.flush(next)
            })
        }),
        Call::CreateFree => timed(count, || comm.allocate::<u64>(1)?.free()),
    }
}

/// Whom a rank is exposed to, and whom it accesses: those before and after it in a ring; with a reach of more than one,
/// so many on each side, both ways.
pub(crate) fn neighbours(rank: usize, size: usize, reach: usize) -> (Vec<usize>, Vec<usize>) {
    if reach == 1 {
        return (vec![(rank + size - 1) % size], vec![(rank + 1) % size]);
    }
    let mut around: Vec<usize> =
        (1..=reach).flat_map(|d| [(rank + d) % size, (rank + size * reach - d) % size]).collect();
    around.sort_unstable();
    around.dedup();
    around.retain(|neighbour| *neighbour != rank);
    (around.clone(), around)
}

pub(crate) fn exchange(window: &Window<u64>, before: &[usize], after: &[usize]) -> Result<()> {
    window.expose(before, |_| {
        window.start(after, |epoch| after.iter().try_for_each(|target| epoch.put_value(*target, 0, 1)))
    })
}
