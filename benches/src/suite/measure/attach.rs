//! Memory that is attached to a dynamic window and detached: what it costs to register it.

use anyhow::anyhow;
use transom::{Job, Window};

use super::Measure;
use crate::repeat::{Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Rank 0 attaches and detaches the same memory, whose pages are there.
#[derive(Debug)]
pub struct Attach {
    head: Head,
    window: Window<u8>,
    /// Taken while it is attached.
    memory: Option<Vec<u8>>,
}

impl Attach {
    /// Memory of as many bytes as the row has. Collective.
    ///
    /// # Errors
    /// No window.
    pub fn new(job: &Job, head: Head) -> transom::Result<Self> {
        let memory = (job.rank() == 0).then(|| vec![1; head.bytes]);
        Ok(Self { head, window: job.dynamic()?, memory })
    }
}

impl Measure for Attach {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        stage.job.barrier()?;
        if stage.job.rank() == 0 {
            let mut memory = self.memory.take().ok_or_else(|| anyhow!("memory that is still attached"))?;
            recorder.repeat(|| {
                let address = self.window.attach(std::mem::take(&mut memory))?;
                memory = self.window.detach(address)?;
                Ok(())
            })?;
            self.memory = Some(memory);
        }
        Ok(stage.job.barrier()?)
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.window.free()?)
    }
}
