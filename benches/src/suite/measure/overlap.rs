//! Overlap: what part of a put's time the origin can compute in.

use std::hint::black_box;
use std::time::{Duration, Instant};

use transom::{Epoch, Result};

use super::{Grain, Measure};
use crate::area::Area;
use crate::kind::Kind;
use crate::repeat::{Recorder, preemptions};
use crate::suite::row::Head;
use crate::suite::stage::{Stage, Two};

/// A put of so many bytes, with a computation of the same length.
#[derive(Debug)]
pub struct Overlap {
    head: Head,
    area: Option<Area<u8>>,
}

impl Overlap {
    /// Collective.
    ///
    /// # Errors
    /// No memory for a window.
    pub fn new(stage: &Stage<'_>, head: Head, kind: Kind) -> Result<Self> {
        let Some(Two { pair, .. }) = &stage.two else { return Ok(Self { head, area: None }) };
        let area = Area::new(pair.comm(), kind, head.bytes, head.bytes, 1)?;
        Ok(Self { head, area: Some(area) })
    }
}

impl Measure for Overlap {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn grain(&self) -> Grain {
        Grain::Single
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let (Some(Two { pair, .. }), Some(area)) = (&stage.two, &self.area) else { return Ok(()) };
        if pair.is_origin() {
            area.window.lock_all(|epoch| {
                (0..recorder.schedule().samples).try_for_each(|_| sample(area, epoch, recorder))
            })?;
        }
        Ok(pair.comm().barrier()?)
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.area.map_or(Ok(()), Area::free)?)
    }
}

/// Hundredths of the put's time in which the computation got on: 1 - (both - computation) / put, as Intel's benchmarks have it.
fn sample<'a>(area: &'a Area<u8>, epoch: &Epoch<'_, 'a, u8>, recorder: &mut Recorder) -> Result<()> {
    let at = area.at(1, 0);
    let put = |meanwhile: u64| {
        let start = Instant::now();
        epoch.put(1, at, &area.own)?;
        compute(meanwhile);
        epoch.flush(1)?;
        Ok(start.elapsed())
    };
    put(0)?;
    let before = preemptions();
    let alone = put(0)?;
    let turns = turns_in(alone);
    let start = Instant::now();
    compute(turns);
    let computing = start.elapsed();
    let both = put(turns)?;
    let hidden = 1.0 - (both.as_secs_f64() - computing.as_secs_f64()) / alone.as_secs_f64();
    recorder.push(100.0 * hidden.clamp(0.0, 1.0), preemptions() != before);
    Ok(())
}

/// How many turns of [`compute`] take about so long.
fn turns_in(time: Duration) -> u64 {
    const TRIAL: u64 = 1000;
    let start = Instant::now();
    compute(TRIAL);
    let trial = start.elapsed().as_secs_f64().max(1e-9);
    (time.as_secs_f64() / trial * TRIAL as f64) as u64 + 1
}

/// A computation without memory.
fn compute(turns: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..turns {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(state);
}
