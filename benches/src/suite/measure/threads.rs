//! Small puts of several threads of one rank at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::Context;
use transom::Window;

use super::{Grain, Measure};
use crate::area::Area;
use crate::kind::Kind;
use crate::machine;
use crate::operation::WORD;
use crate::repeat::{Recorder, preemptions};
use crate::suite::row::Head;
use crate::suite::stage::{Stage, Two};

/// How long the threads put, for one sample.
const TIME: Duration = Duration::from_millis(2);
/// Puts before a flush.
pub const BATCH: usize = 1000;

/// Threads of rank 0, each with a window of its own, put to rank 1.
#[derive(Debug)]
pub struct Threads {
    head: Head,
    /// One for each thread, at ranks 0 and 1.
    areas: Vec<Area<u64>>,
}

impl Threads {
    /// So many threads. Collective over ranks 0 and 1.
    ///
    /// # Errors
    /// No window.
    pub fn new(two: Option<&Two>, head: Head, kind: Kind, threads: usize) -> transom::Result<Self> {
        let area = |two: &Two| Area::new(two.pair.comm(), kind, 8192 / WORD, 1, 1);
        let areas = two.map(|two| (0..threads).map(|_| area(two)).collect::<transom::Result<_>>());
        Ok(Self { head, areas: areas.transpose()?.unwrap_or_default() })
    }

    /// Batches of all threads, and how long they took.
    fn put(&self) -> anyhow::Result<(u64, Duration)> {
        let begin = Barrier::new(self.areas.len());
        let done = std::thread::scope(|scope| {
            let begin = &begin;
            let thread = |area| scope.spawn(move || batches(area, begin));
            let threads: Vec<_> = self.areas.iter().map(thread).collect();
            let join = threads.into_iter().map(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            join.collect::<anyhow::Result<Vec<_>>>()
        })?;
        let longest = done.iter().map(|(_, time)| *time).max().unwrap_or_default();
        Ok((done.iter().map(|(batches, _)| batches).sum(), longest))
    }
}

fn batches(area: &Area<u64>, begin: &Barrier) -> anyhow::Result<(u64, Duration)> {
    // All threads of a rank begin on the core that it is bound to.
    let unbound = machine::unbind().context("leaving the core that this rank is bound to");
    begin.wait();
    unbound?;
    let window: &Window<u64> = &area.window;
    let words = 8192 / WORD;
    Ok(window.lock_all(|epoch| {
        let (start, mut batches) = (Instant::now(), 0);
        while start.elapsed() < TIME {
            (0..BATCH).try_for_each(|i| epoch.put_value(1, area.at(1, i % words), i as u64))?;
            epoch.flush(1)?;
            batches += 1;
        }
        Ok((batches, start.elapsed()))
    })?)
}

impl Measure for Threads {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn grain(&self) -> Grain {
        Grain::Single
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let Some(Two { pair, .. }) = &stage.two else { return Ok(()) };
        for _ in 0..recorder.schedule().samples {
            pair.comm().barrier()?;
            if pair.comm().rank() == 0 {
                let before = preemptions();
                let (batches, time) = self.put()?;
                recorder.push(time.as_secs_f64() * 1e9 / batches as f64, preemptions() != before);
            }
        }
        Ok(pair.comm().barrier()?)
    }

    /// What each thread has put last is in its window.
    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let mut holds = true;
        if let Some(Two { pair, .. }) = &stage.two {
            pair.comm().barrier()?;
            if pair.comm().rank() == 1 {
                self.areas.iter().try_for_each(|area| area.local(|local| local.set(BATCH - 1, seed)))?;
            }
            pair.comm().barrier()?;
            if pair.comm().rank() == 0 {
                self.put()?;
            }
            pair.comm().barrier()?;
            for area in self.areas.iter().filter(|_| pair.comm().rank() == 1) {
                holds &= area.local(|local| local.get(BATCH - 1))? == (BATCH - 1) as u64;
            }
        }
        Ok(Some(super::all(stage.job, holds)?))
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.areas.into_iter().try_for_each(Area::free)?)
    }
}
