//! The two ranks: one measures, the other is passive.

use std::time::{Duration, Instant};

use anyhow::bail;
use transom::{Job, Window};

use crate::Options;
use crate::limit::{Limit, Limits};
use crate::operation::{Operation, Windows};

/// How long the target computes at most.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What rank 1 does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// It waits in a barrier of the runtime.
    Waits,
    /// It computes, without a call to the runtime.
    Computes,
}

/// One rank's view of the pair.
#[derive(Debug)]
pub struct Pair<'j> {
    job: &'j Job,
    limits: Limits,
    /// A word at rank 1 that ends its computation.
    end: Window<u64>,
    round: u64,
}

impl<'j> Pair<'j> {
    /// Connects the two ranks. Collective.
    ///
    /// # Errors
    /// As [`Limits::new`].
    pub fn new(job: &'j Job, options: &Options, bytes: usize) -> anyhow::Result<Self> {
        Ok(Self { job, limits: Limits::new(job, options, bytes)?, end: job.allocate(1)?, round: 0 })
    }

    /// How many operations, at most `most`, fit into a sample of so much time, by a first few of them. Collective.
    ///
    /// # Errors
    /// Those of `sample`.
    pub fn calibrate(
        &mut self,
        (most, time): (u64, Duration),
        mut sample: impl FnMut(&mut Self, u64) -> anyhow::Result<Duration>,
    ) -> anyhow::Result<u64> {
        let few = most.div_ceil(20);
        let fit = time.as_secs_f64() / sample(self, few)?.as_secs_f64() * few as f64;
        // As a cast saturates, it is a number whatever was measured.
        let mut count = [(fit as u64).clamp(1, most)];
        self.job.broadcast(0, &mut count)?;
        Ok(count[0])
    }

    /// Time of `count` operations at rank 0. Collective.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn sample(
        &mut self,
        windows: &mut Windows,
        operation: Operation,
        count: u64,
        target: Target,
    ) -> anyhow::Result<Duration> {
        self.round += 1;
        let time = if self.job.rank() == 0 {
            let time = windows.time(operation, count)?;
            if target == Target::Computes {
                self.end.lock_all(|epoch| epoch.put_value(1, 0, self.round))?;
            }
            time
        } else {
            windows.take_part(operation, count)?;
            if target == Target::Computes {
                self.compute()?;
            }
            Duration::ZERO
        };
        self.job.barrier()?;
        Ok(time)
    }

    /// Time of `count` times what figures are compared with, at rank 0. Rank 1 waits as in [`Pair::sample`]. Collective.
    ///
    /// # Errors
    /// As [`Limits::sample`].
    pub fn sample_limit(&mut self, limit: Limit, count: u64) -> anyhow::Result<Duration> {
        let time = self.limits.sample(limit, count)?;
        self.job.barrier()?;
        Ok(time)
    }

    /// Computes until rank 0 has written the number of the round into this rank's memory: loads only.
    fn compute(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.end.local().get(0)? != self.round {
            if start.elapsed() > TIMEOUT {
                bail!("rank 0's put has not come in {TIMEOUT:?}: no passive progress");
            }
        }
        Ok(())
    }

    /// Collective.
    ///
    /// # Errors
    /// As [`Window::free`].
    pub fn free(self) -> transom::Result<()> {
        self.limits.free()?;
        self.end.free()
    }
}
