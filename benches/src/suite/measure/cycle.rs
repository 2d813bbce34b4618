//! A window from its making to its end, and the first operation in it.

use std::time::Instant;

use transom::{Job, Window};

use super::{Grain, Measure};
use crate::kind::Kind;
use crate::repeat::{Recorder, Repeat, preemptions};
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
        recorder.repeat(|| match kind {
            Kind::Dynamic => {
                let window = job.dynamic::<u64>()?;
                let address = window.attach(vec![0; WORDS])?;
                window.detach(address)?;
                window.free()
            }
            kind => made(job, kind)?.free(),
        })?;
        Ok(())
    }
}

/// A window with memory from its start.
fn made(job: &Job, kind: Kind) -> transom::Result<Window<u64>> {
    match kind {
        Kind::Created => job.create(vec![0; WORDS]),
        Kind::Shared => job.allocate_shared(WORDS),
        Kind::Allocated | Kind::Dynamic => job.allocate(WORDS),
    }
}

/// Makes a window of 4 KiB at each rank, and puts a word of rank 0 to rank 1. Of dynamic windows it is the same as of allocated ones.
#[derive(Debug)]
pub struct First {
    /// What the row is about.
    pub head: Head,
}

impl Measure for First {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn grain(&self) -> Grain {
        Grain::Single
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let (job, kind, schedule) = (stage.job, stage.options.window, recorder.schedule());
        for sample in 0..schedule.warm_up + schedule.samples {
            let window = made(job, kind)?;
            job.barrier()?;
            if job.rank() == 0 {
                let (before, start) = (preemptions(), Instant::now());
                window.lock_all(|epoch| {
                    epoch.put_value(1, 0, 1)?;
                    epoch.flush(1)
                })?;
                let time = start.elapsed().as_secs_f64() * 1e9;
                if sample >= schedule.warm_up {
                    recorder.push(time, preemptions() != before);
                }
            }
            window.free()?;
        }
        Ok(())
    }
}
