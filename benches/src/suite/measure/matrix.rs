//! All pairs of ranks, one after the other: the slow link shows.

use super::{Measure, check};
use crate::operation::Operation;
use crate::repeat::Recorder;
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// One operation of one rank on one other.
#[derive(Debug)]
pub struct Link {
    /// What the row is about.
    pub head: Head,
    /// The operation.
    pub operation: Operation,
    /// Origin and target.
    pub ranks: (usize, usize),
}

impl Measure for Link {
    fn head(&self) -> Head {
        self.head.clone()
    }

    /// There are many of them.
    fn share(&self) -> f64 {
        0.2
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        if stage.job.rank() == self.ranks.0 {
            stage.all.act(self.operation, self.ranks.1, recorder)?;
        }
        Ok(stage.job.barrier()?)
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        Ok(Some(check(stage.job, &mut stage.all, self.operation, self.ranks, seed)?))
    }
}
