//! Random programs against a sequential model.
//!
//! Each round is an epoch. In it every rank works on a part of every window that no other rank touches, where order is
//! program order, and adds to a part that all share, where order does not matter. So every rank can compute what all
//! windows must hold afterwards.

use transom::{Epoch, Job, LockKind, Max, Replace, Result, Sum, Window};

use super::Random;

/// Elements of a rank's own part, per owner; the shared part has as many.
const PART: usize = 40;
const ROUNDS: u64 = 25;

pub fn random_programs(job: &Job) -> Result<()> {
    let seed = std::env::var("TRANSOM_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
    let len = PART * (job.size() + 1);
    for created in [false, true] {
        let window = if created { job.create(vec![0i64; len])? } else { job.allocate::<i64>(len)? };
        let mut model = vec![vec![0i64; len]; job.size()];
        for round in 0..ROUNDS {
            let programs: Vec<Vec<Step>> = (0..job.size())
                .map(|rank| program(&mut Random(seed ^ (round << 32) ^ ((rank as u64) << 8)), job.size()))
                .collect();
            run(job, &window, &programs[job.rank()], round, &mut model)?;
            for (rank, steps) in programs.iter().enumerate() {
                for step in steps {
                    apply(step, rank, &mut model);
                }
            }
            job.barrier()?;
            assert_eq!(window.local().to_vec()?, model[job.rank()], "seed {seed} round {round}");
            job.barrier()?;
        }
        window.free()?;
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, usize, Vec<i64>),
    Get(usize, usize, usize),
    Accumulate(usize, usize, Vec<i64>),
    FetchMax(usize, usize, i64),
    Swap(usize, usize, i64),
    CompareSwap(usize, usize, i64),
    /// To the shared part.
    AddShared(usize, usize, Vec<i64>),
    Flush(usize),
}

fn program(random: &mut Random, size: usize) -> Vec<Step> {
    let steps = 1 + random.below(12);
    (0..steps)
        .map(|_| {
            let target = random.below(size);
            let at = random.below(PART);
            let len = random.below(PART - at) + 1;
            let value = random.next() as i64 % 1000;
            let values = (0..len as i64).map(|i| value + i).collect();
            match random.below(8) {
                0 => Step::Put(target, at, values),
                1 => Step::Get(target, at, len),
                2 => Step::Accumulate(target, at, values),
                3 => Step::FetchMax(target, at, value),
                4 => Step::Swap(target, at, value),
                5 => Step::CompareSwap(target, at, value),
                6 => Step::AddShared(target, at, values),
                _ => Step::Flush(target),
            }
        })
        .collect()
}

/// Applies a step to the model. Returns what a fetch would give.
fn apply(step: &Step, rank: usize, model: &mut [Vec<i64>]) -> i64 {
    let own = PART * (rank + 1);
    match step {
        Step::Put(target, at, values) => {
            model[*target][own + at..own + at + values.len()].copy_from_slice(values);
            0
        }
        Step::Accumulate(target, at, values) => {
            values.iter().enumerate().for_each(|(i, v)| model[*target][own + at + i] += v);
            0
        }
        Step::AddShared(target, at, values) => {
            values.iter().enumerate().for_each(|(i, v)| model[*target][at + i] += v);
            0
        }
        Step::FetchMax(target, at, value) => {
            let cell = &mut model[*target][own + at];
            std::mem::replace(cell, (*value).max(*cell))
        }
        Step::Swap(target, at, value) | Step::CompareSwap(target, at, value) => {
            std::mem::replace(&mut model[*target][own + at], *value)
        }
        Step::Get(..) | Step::Flush(_) => 0,
    }
}

/// Runs a program in an epoch that depends on the round, checking what it fetches.
fn run(job: &Job, window: &Window<i64>, steps: &[Step], round: u64, model: &mut [Vec<i64>]) -> Result<()> {
    let mut model = model.to_vec();
    let program =
        |epoch: &Epoch<'_, '_, i64>, only: Option<usize>, model: &mut Vec<Vec<i64>>| -> Result<()> {
            for step in steps.iter().filter(|step| only.is_none_or(|target| step.target() == target)) {
                carry_out(epoch, step, job.rank(), model)?;
            }
            Ok(())
        };
    match round % 3 {
        0 => window.lock_all(|epoch| program(epoch, None, &mut model)),
        1 => window.fence(|epoch| program(epoch, None, &mut model)),
        _ => (0..job.size()).try_for_each(|target| {
            let kind = if round.is_multiple_of(2) { LockKind::Exclusive } else { LockKind::Shared };
            window.lock(kind, target, |epoch| program(epoch, Some(target), &mut model))
        }),
    }
}

impl Step {
    fn target(&self) -> usize {
        match self {
            Self::Put(target, ..)
            | Self::Get(target, ..)
            | Self::Accumulate(target, ..)
            | Self::FetchMax(target, ..)
            | Self::Swap(target, ..)
            | Self::CompareSwap(target, ..)
            | Self::AddShared(target, ..)
            | Self::Flush(target) => *target,
        }
    }
}

fn carry_out(epoch: &Epoch<'_, '_, i64>, step: &Step, rank: usize, model: &mut [Vec<i64>]) -> Result<()> {
    let own = PART * (rank + 1);
    // Puts and gets are not ordered with atomics: complete before and after.
    let (target, atomic) = (step.target(), !matches!(step, Step::Put(..)));
    if atomic {
        epoch.flush(target)?;
    }
    let expected = apply(step, rank, model);
    match step {
        Step::Put(target, at, values) => {
            epoch.flush(*target)?;
            epoch.put_copy(*target, own + at, values)?;
        }
        Step::Get(target, at, len) => {
            let mut got = vec![0; *len];
            epoch.read(*target, own + at, &mut got)?;
            assert_eq!(got, model[*target][own + at..own + at + len]);
        }
        Step::Accumulate(target, at, values) => epoch.accumulate(*target, own + at, Sum, values)?,
        Step::AddShared(target, at, values) => epoch.accumulate(*target, *at, Sum, values)?,
        Step::FetchMax(target, at, value) => {
            assert_eq!(epoch.fetch_op(*target, own + at, Max, *value)?, expected);
        }
        Step::Swap(target, at, value) => {
            assert_eq!(epoch.fetch_op(*target, own + at, Replace, *value)?, expected);
        }
        Step::CompareSwap(target, at, value) => {
            assert_eq!(epoch.compare_and_swap(*target, own + at, expected, *value)?, expected);
        }
        Step::Flush(target) => epoch.flush(*target)?,
    }
    Ok(())
}
