//! Operations of rank 0 on rank 1: latency, bandwidth, and both while the target computes.

use super::{Measure, check};
use crate::limit::Beside;
use crate::operation::Operation;
use crate::pair::Target;
use crate::repeat::Recorder;
use crate::suite::row::Head;
use crate::suite::stage::{Stage, Two};

/// An operation of rank 0 on rank 1.
#[derive(Debug)]
pub struct PairOperation {
    /// What the row is about.
    pub head: Head,
    /// The operation.
    pub operation: Operation,
    /// What rank 1 does meanwhile.
    pub target: Target,
}

impl Measure for PairOperation {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn compared(&self) -> Option<Operation> {
        Some(self.operation)
    }

    fn beside(&self) -> Beside {
        match self.target {
            Target::Computes => Beside::Computation,
            Target::Waits => Beside::Nothing,
        }
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(()) };
        let is_origin = pair.is_origin();
        pair.during(self.target, || {
            if is_origin {
                return Ok(windows.act(self.operation, 1, recorder)?);
            }
            // Its samples are not the operation's.
            let mut other = Recorder::new(recorder.schedule(), 0);
            Ok(windows.take_part(self.operation, 0, &mut other)?)
        })
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(Some(true)) };
        Ok(Some(check(pair.comm(), windows, self.operation, (0, 1), seed)?))
    }
}
