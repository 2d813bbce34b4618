//! All ranks want the same: a lock of rank 0, or a word there.

use std::time::{Duration, Instant};

use transom::{LockKind, Result};

use super::{Combine, Grain, Measure};
use crate::repeat::{Recorder, preemptions};
use crate::suite::row::Head;
use crate::suite::stage::Stage;
use crate::windows::Windows;

/// How long all ranks try, for one sample.
const TIME: Duration = Duration::from_millis(2);
/// Where the word is that they count in.
const COUNTER: usize = 1;

/// All ranks count in one word.
#[derive(Debug)]
pub struct Contention {
    head: Head,
    /// By reading and writing it under a lock, else by an atomic.
    locks: bool,
}

impl Contention {
    /// By reading and writing under a lock, or by atomics.
    pub fn new(head: Head, locks: bool) -> Self {
        Self { head, locks }
    }
}

impl Measure for Contention {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn combine(&self) -> Combine {
        Combine::Together
    }

    fn grain(&self) -> Grain {
        Grain::Single
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        for _ in 0..recorder.schedule().samples {
            stage.job.barrier()?;
            let before = preemptions();
            let (count, time) = count(&stage.all, self.locks)?;
            recorder.push(time.as_secs_f64() * 1e9 / count as f64, preemptions() != before);
        }
        Ok(())
    }

    /// The counter says what all ranks have counted: neither locks nor atomics let two in at once.
    fn validate(&mut self, stage: &mut Stage<'_>, _: u64) -> anyhow::Result<Option<bool>> {
        let area = &stage.all.words;
        stage.job.barrier()?;
        let first = stage.job.rank() == 0;
        if first {
            area.local(|local| local.set(COUNTER, 0))?;
        }
        stage.job.barrier()?;
        let (count, _) = count(&stage.all, self.locks)?;
        let all = stage.job.allreduce(transom::Sum, &[count])?;
        stage.job.barrier()?;
        let holds = !first || area.local(|local| local.get(COUNTER))? == all[0];
        Ok(Some(super::all(stage.job, holds)?))
    }
}

/// Counts for a while: how often, and how long it took.
fn count(windows: &Windows, locks: bool) -> Result<(u64, Duration)> {
    let area = &windows.words;
    let (at, start) = (area.at(0, COUNTER), Instant::now());
    let mut count = 0;
    if locks {
        while start.elapsed() < TIME {
            area.window.lock(LockKind::Exclusive, 0, |epoch| {
                let counter = epoch.get_value(0, at)?;
                epoch.put_value(0, at, counter + 1)
            })?;
            count += 1;
        }
        return Ok((count, start.elapsed()));
    }
    area.window.lock_all(|epoch| {
        while start.elapsed() < TIME {
            // The clock is slower than an atomic on memory.
            for _ in 0..16 {
                epoch.fetch_add(0, at, 1)?;
            }
            count += 16;
        }
        Ok(())
    })?;
    Ok((count, start.elapsed()))
}
