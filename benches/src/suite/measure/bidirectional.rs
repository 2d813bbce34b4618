//! Many operations of several ranks at once: puts both ways, and message rates of pairs.

use super::{Measure, check};
use crate::limit::Beside;
use crate::operation::Operation;
use crate::repeat::Recorder;
use crate::suite::row::Head;
use crate::suite::stage::{Stage, Two};

/// Puts of ranks 0 and 1 to each other.
#[derive(Debug)]
pub struct Bidirectional {
    /// What the row is about.
    pub head: Head,
    /// The operation of each.
    pub operation: Operation,
}

impl Measure for Bidirectional {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn compared(&self) -> Option<Operation> {
        Some(self.operation)
    }

    fn beside(&self) -> Beside {
        Beside::TheSame
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(()) };
        pair.comm().barrier()?;
        windows.act(self.operation, 1 - pair.comm().rank(), recorder)?;
        Ok(pair.comm().barrier()?)
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(Some(true)) };
        let out = check(pair.comm(), windows, self.operation, (0, 1), seed)?;
        let back = check(pair.comm(), windows, self.operation, (1, 0), seed + 1)?;
        Ok(Some(out && back))
    }
}

/// Small operations of the first ranks, each on one of the next.
#[derive(Debug)]
pub struct Rate {
    /// What the row is about.
    pub head: Head,
    /// The operation of each.
    pub operation: Operation,
    /// How many pairs.
    pub pairs: usize,
}

impl Measure for Rate {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn compared(&self) -> Option<Operation> {
        // The limit is one pair's.
        (self.pairs == 1).then_some(self.operation)
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let rank = stage.job.rank();
        stage.job.barrier()?;
        if rank < self.pairs {
            stage.all.act(self.operation, rank + self.pairs, recorder)?;
        }
        Ok(stage.job.barrier()?)
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let mut holds = true;
        for origin in 0..self.pairs {
            let ranks = (origin, origin + self.pairs);
            holds &= check(stage.job, &mut stage.all, self.operation, ranks, seed + origin as u64)?;
        }
        Ok(Some(holds))
    }
}
