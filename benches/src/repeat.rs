//! How often something is done, and what is noted of it.

use std::hint::black_box;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use transom::Result;

/// Repeats an operation.
pub trait Repeat {
    /// Calls `one` again and again.
    ///
    /// # Errors
    /// Those of `one`.
    fn repeat(&mut self, one: impl FnMut() -> Result<()>) -> Result<()>;
}

/// Once, without a look at the clock.
#[derive(Debug)]
pub struct Once;

impl Repeat for Once {
    fn repeat(&mut self, mut one: impl FnMut() -> Result<()>) -> Result<()> {
        one()
    }
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Repetitions before the first sample.
    pub warm_up: u64,
    /// Samples.
    pub samples: u64,
    /// Repetitions in each.
    pub repeats: u64,
}

impl Schedule {
    /// How often something is done in all.
    pub fn repetitions(self) -> u64 {
        self.warm_up + self.samples * self.repeats
    }
}

/// What one sample gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Nanoseconds per repetition.
    pub time: f64,
    /// Whether the system took the core away meanwhile.
    pub is_disturbed: bool,
}

/// Samples, each of some repetitions, with what the scheduler did meanwhile.
#[derive(Debug)]
pub struct Recorder {
    schedule: Schedule,
    /// Written before each sample, so that no cache has what the sample works on.
    dirt: Vec<u64>,
    /// What was recorded.
    pub samples: Vec<Sample>,
}

impl Recorder {
    /// Nothing recorded yet; `dirt` words are written before each sample.
    pub fn new(schedule: Schedule, dirt: usize) -> Self {
        Self { schedule, dirt: vec![0; dirt], samples: Vec::new() }
    }

    /// How often [`Repeat::repeat`] will call.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Adds a sample that was timed elsewhere, in nanoseconds per repetition.
    pub fn push(&mut self, nanoseconds: f64, is_disturbed: bool) {
        // A coarse clock may see nothing, and what is divided by must be something.
        self.samples.push(Sample { time: nanoseconds.max(1e-3), is_disturbed });
    }

    /// Multiplies all times: where a repetition is more or less than what is measured.
    pub fn scale(&mut self, factor: f64) {
        self.samples.iter_mut().for_each(|sample| sample.time *= factor);
    }

    fn sample(&mut self, repeats: u64, one: &mut impl FnMut() -> Result<()>) -> Result<()> {
        for word in &mut self.dirt {
            *word = word.wrapping_add(1);
        }
        black_box(&mut self.dirt);
        let before = preemptions();
        let start = Instant::now();
        for _ in 0..repeats {
            one()?;
        }
        let time = start.elapsed();
        self.push(time.as_secs_f64() * 1e9 / repeats as f64, preemptions() != before);
        Ok(())
    }
}

impl Repeat for Recorder {
    fn repeat(&mut self, mut one: impl FnMut() -> Result<()>) -> Result<()> {
        let Schedule { warm_up, samples, repeats } = self.schedule;
        (0..warm_up).try_for_each(|_| one())?;
        (0..samples).try_for_each(|_| self.sample(repeats, &mut one))
    }
}

/// How often the system took the core from this thread (`getrusage`, `ru_nivcsw`): it counts a yield, too, if another thread
/// ran after it.
pub fn preemptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}
