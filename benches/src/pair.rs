//! The two ranks: one measures, the other is passive.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::bail;
use transom::{Communicator, Window};

use crate::limit::{Limit, Limits, Way};
use crate::windows::Extent;

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
pub struct Pair {
    comm: Communicator,
    limits: Limits,
    /// A word at rank 1 that ends its computation.
    end: Window<u64>,
    round: u64,
}

impl Pair {
    /// Connects the two ranks. Collective.
    ///
    /// # Errors
    /// As [`Limits::new`].
    pub fn new(
        comm: &Communicator,
        way: Way,
        address: Option<IpAddr>,
        extent: Extent,
    ) -> anyhow::Result<Self> {
        let limits = Limits::new(comm, way, address, extent)?;
        Ok(Self { comm: comm.clone(), limits, end: comm.allocate(1)?, round: 0 })
    }

    /// Whether this rank measures.
    pub fn is_origin(&self) -> bool {
        self.comm.rank() == 0
    }

    /// The two ranks.
    pub fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// Whether a limit can be measured here.
    pub fn has(&self, limit: Limit) -> bool {
        self.limits.has(limit)
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
        self.comm.broadcast(0, &mut count)?;
        Ok(count[0])
    }

    /// Runs `act` at both ranks, and lets rank 1 wait or compute until rank 0 has done its part. Collective.
    ///
    /// # Errors
    /// Those of `act`; the target computes for too long.
    pub fn during<R>(
        &mut self,
        target: Target,
        act: impl FnOnce() -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        self.round += 1;
        let result = act()?;
        match (target, self.is_origin()) {
            (Target::Waits, _) => {}
            (Target::Computes, true) => self.end.lock_all(|epoch| epoch.put_value(1, 0, self.round))?,
            (Target::Computes, false) => self.compute()?,
        }
        self.comm.barrier()?;
        Ok(result)
    }

    /// Time of `count` times what figures are compared with, at rank 0. Rank 1 waits in a barrier. Collective.
    ///
    /// # Errors
    /// As [`Limits::sample`].
    pub fn sample_limit(&mut self, limit: Limit, count: u64) -> anyhow::Result<Duration> {
        let time = self.limits.sample(limit, count)?;
        self.comm.barrier()?;
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
