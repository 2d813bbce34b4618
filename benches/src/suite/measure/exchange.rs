//! All-to-all by puts: a block to every rank.

use transom::{Communicator, Result};

use super::Measure;
use crate::area::Area;
use crate::kind::Kind;
use crate::repeat::{Once, Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// A block of each rank at every rank.
#[derive(Debug)]
pub struct AllToAllPuts {
    head: Head,
    area: Area<u8>,
    comm: Communicator,
}

impl AllToAllPuts {
    /// Collective.
    ///
    /// # Errors
    /// No memory for a window.
    pub fn new(comm: &Communicator, head: Head, kind: Kind) -> Result<Self> {
        let area = Area::new(comm, kind, comm.size() * head.bytes, head.bytes, 1)?;
        Ok(Self { head, area, comm: comm.clone() })
    }

    fn exchange(&self, repeat: &mut impl Repeat) -> Result<()> {
        let (rank, size, bytes) = (self.comm.rank(), self.comm.size(), self.head.bytes);
        self.area.window.lock_all(|epoch| {
            repeat.repeat(|| {
                // Each begins with the next: not all with the same.
                for target in (1..=size).map(|distance| (rank + distance) % size) {
                    epoch.put(target, self.area.at(target, rank * bytes), &self.area.own)?;
                }
                epoch.flush_all()?;
                self.comm.barrier()
            })
        })
    }
}

impl Measure for AllToAllPuts {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, _: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        self.comm.barrier()?;
        Ok(self.exchange(recorder)?)
    }

    fn validate(&mut self, _: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let mark = |rank: usize| (rank as u64 + seed) as u8;
        self.area.own.fill(mark(self.comm.rank()));
        self.comm.barrier()?;
        self.exchange(&mut Once)?;
        let blocks = self.area.first(self.comm.size() * self.head.bytes)?;
        let right = |(rank, block): (usize, &[u8])| block.iter().all(|byte| *byte == mark(rank));
        let holds = blocks.chunks_exact(self.head.bytes).enumerate().all(right);
        Ok(Some(super::all(&self.comm, holds)?))
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.area.free()?)
    }
}
