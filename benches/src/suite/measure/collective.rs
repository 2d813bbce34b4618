//! Calls of all ranks, on parts of the job: what they cost against the number of ranks.

use anyhow::Context;
use transom::{Assert, Communicator, Job, Window};

use super::Measure;
use crate::operation::{Operation, Sync, Verb, WORD};
use crate::repeat::{Recorder, Repeat};
use crate::suite::catalogue::Collective;
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Numbers of ranks, as far as the job has them.
pub const RANKS: [usize; 7] = [2, 3, 4, 6, 8, 12, 16];
/// Neighbours on each side, for the wider exchange.
const REACH: usize = 2;

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
            Collective::PutFence => {
                let (calls, next) = (window.explicit(), (comm.rank() + 1) % comm.size());
                calls.fence(Assert::NOPRECEDE)?;
                recorder.repeat(|| {
                    calls.put(next, 0, &[1])?;
                    calls.fence(Assert::NONE)
                })?;
                calls.fence(Assert::NOSUCCEED).context("the last fence")?;
            }
            Collective::Pscw | Collective::Neighbours => {
                let reach = if self.call == Collective::Pscw { 1 } else { REACH };
                let (before, after) = neighbours(comm.rank(), comm.size(), reach);
                recorder.repeat(|| exchange(window, &before, &after))?;
            }
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.part.map_or(Ok(()), |(_, window)| window.free())?)
    }
}

/// Whom a rank is exposed to, and whom it accesses: those before and after it in a ring; with a reach of more than one,
/// so many on each side, both ways.
fn neighbours(rank: usize, size: usize, reach: usize) -> (Vec<usize>, Vec<usize>) {
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

fn exchange(window: &Window<u64>, before: &[usize], after: &[usize]) -> transom::Result<()> {
    window.expose(before, |_| {
        window.start(after, |epoch| after.iter().try_for_each(|target| epoch.put_value(*target, 0, 1)))
    })
}
