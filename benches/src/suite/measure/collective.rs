//! Calls of all ranks, on parts of the job: what they cost against the number of ranks.

use anyhow::Context;
use transom::{Assert, Communicator, Job, Window};

use super::Measure;
use crate::operation::{Operation, Sync, Verb, WORD};
use crate::repeat::{Recorder, Repeat};
use crate::suite::catalogue::Collective;
use crate::suite::row::Head;
use crate::suite::stage::Stage;
use crate::sync::{exchange, neighbours};

/// A call of the first so many ranks; the others wait.
#[derive(Debug)]
pub struct Calls {
    head: Head,
    call: Collective,
    part: Option<(Communicator, Window<u64>)>,
}

impl Calls {
    /// On the first `head.ranks` ranks of the job. Collective.
    ///
    /// # Errors
    /// No memory for a window.
    pub fn new(job: &Job, head: Head, call: Collective) -> transom::Result<Self> {
        let comm = job.split((job.rank() < head.ranks).then_some(0), job.rank() as i64)?;
        let part = match comm {
            Some(comm) => {
                let window = comm.allocate(1)?;
                Some((comm, window))
            }
            None => None,
        };
        Ok(Self { head, call, part })
    }
}

impl Measure for Calls {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn compared(&self) -> Option<Operation> {
        // The limit is that of two ranks.
        (self.head.ranks == 2).then(|| Operation::new(Verb::Put, WORD).by(Sync::Fence))
    }

    fn round(&mut self, _: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let Some((comm, window)) = &self.part else { return Ok(()) };
        match self.call {
            Collective::Barrier => recorder.repeat(|| comm.barrier())?,
            Collective::Fence => {
                let calls = window.explicit();
                recorder.repeat(|| calls.fence(Assert::NONE))?;
                // The last epoch ends here.
                calls.fence(Assert::NOSUCCEED).context("the last fence")?;
            }
            Collective::Pscw => {
                let (before, after) = neighbours(comm.rank(), comm.size(), 1);
                recorder.repeat(|| exchange(window, &before, &after))?;
            }
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.part.map_or(Ok(()), |(_, window)| window.free())?)
    }
}
