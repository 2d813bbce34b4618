//! What all measurements share: the job, the pair of ranks 0 and 1, and windows.

use transom::Job;

use super::options::{Cache, Options};
use crate::limit::Way;
use crate::pair::Pair;
use crate::repeat::{Recorder, Schedule};
use crate::windows::{Extent, Windows};

/// Memory that is written to empty the caches: more than most have.
const DIRT: usize = 64 << 20;

/// What all measurements share.
#[derive(Debug)]
pub struct Stage<'j> {
    /// All ranks.
    pub job: &'j Job,
    /// As asked.
    pub options: &'j Options,
    /// Bytes of windows.
    pub extent: Extent,
    /// How ranks 0 and 1 reach each other.
    pub way: Way,
    /// Windows of all ranks.
    pub all: Windows,
    /// Ranks 0 and 1.
    pub two: Option<Two>,
}

/// Ranks 0 and 1, and windows of theirs.
#[derive(Debug)]
pub struct Two {
    /// The two.
    pub pair: Pair,
    /// Their windows.
    pub windows: Windows,
}

impl<'j> Stage<'j> {
    /// Makes the windows and connects what limits need. Collective.
    ///
    /// # Errors
    /// No memory, or no such windows here.
    pub fn new(job: &'j Job, options: &'j Options, extent: Extent) -> anyhow::Result<Self> {
        let way = Way::of(job, options.window, if job.rank() == 0 { 1 } else { 0 });
        let all = Windows::new(job, options.window, extent)?;
        let two = match job.split((job.rank() < 2).then_some(0), job.rank() as i64)? {
            Some(comm) => Some(Two {
                pair: Pair::new(&comm, way, options.address, extent)?,
                windows: Windows::new(&comm, options.window, extent)?,
            }),
            None => None,
        };
        Ok(Self { job, options, extent, way, all, two })
    }

    /// A recorder of samples.
    pub fn recorder(&self, schedule: Schedule) -> Recorder {
        let dirt = if self.options.cache == Cache::Dirty { DIRT / 8 } else { 0 };
        Recorder::new(schedule, dirt)
    }

    /// Makes the windows anew. Collective.
    ///
    /// # Errors
    /// No memory.
    pub fn renew(&mut self) -> transom::Result<()> {
        let (kind, extent) = (self.options.window, self.extent);
        let all = Windows::new(self.job, kind, extent)?;
        std::mem::replace(&mut self.all, all).free()?;
        if let Some(Two { pair, windows }) = &mut self.two {
            let new = Windows::new(pair.comm(), kind, extent)?;
            std::mem::replace(windows, new).free()?;
        }
        Ok(())
    }

    /// Frees the windows. Collective.
    ///
    /// # Errors
    /// As [`transom::Window::free`].
    pub fn end(self) -> transom::Result<()> {
        if let Some(Two { pair, windows }) = self.two {
            windows.free()?;
            pair.free()?;
        }
        self.all.free()
    }
}
