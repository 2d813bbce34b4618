//! A window from its making to its end.

use super::Measure;
use crate::options::Kind;
use crate::repeat::{Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Words of a window.
pub const WORDS: usize = 512;

/// Makes and frees a window of 4 KiB at each rank.
#[derive(Debug)]
pub struct Cycle {
    /// What the row is about.
    pub head: Head,
}

impl Measure for Cycle {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let (job, kind) = (stage.job, stage.options.window);
        recorder.repeat(|| {
            let window = match kind {
                Kind::Allocated => job.allocate::<u64>(WORDS)?,
                Kind::Created => job.create(vec![0; WORDS])?,
                Kind::Shared => job.allocate_shared(WORDS)?,
                Kind::Dynamic => {
                    let window = job.dynamic()?;
                    let address = window.attach(vec![0; WORDS])?;
                    window.detach(address)?;
                    window
                }
            };
            window.free()
        })?;
        Ok(())
    }
}
