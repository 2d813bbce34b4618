//! Rounds through all rows, so that what changes in the machine meanwhile shows in each of them.

use std::time::{Duration, Instant};

use super::interrupt;
use super::measure::{Combine, Grain, Measure, plan};
use super::options::Cache;
use super::progress::Progress;
use super::row::Row;
use super::samples::Round;
use super::stage::{Stage, Two};
use crate::limit::{Limit, Way, limits_of, repetitions};
use crate::repeat::Schedule;
use crate::suite::catalogue::Entry;

/// Time of a row's samples in a round, and of its limit.
const TIME: Duration = Duration::from_millis(15);
const LIMIT_TIME: Duration = Duration::from_millis(4);
/// The shortest sample: the clock costs about a hundredth of it.
const SHORTEST: f64 = 3000.0;
/// Samples of a row in all rounds, unless the user says.
const SAMPLES: u64 = 1000;
/// Repetitions of a sample at most.
const REPEATS: u64 = 100_000;

/// A row that is being measured.
struct Line {
    measure: Box<dyn Measure>,
    schedule: Option<Schedule>,
    /// The limit, its repetitions in an operation, and how many operations a sample has.
    limit: Option<(Limit, u64, Option<u64>)>,
    row: Row,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// At rank 0 with samples.
    pub rows: Vec<Row>,
    /// Whether all was measured.
    pub complete: bool,
}

/// Measures what is selected. Collective.
///
/// # Errors
/// Those of the operations.
pub fn run(stage: &mut Stage<'_>, entries: &[Entry], hosts: &[String]) -> anyhow::Result<Outcome> {
    let mut lines = lines(stage, entries, hosts)?;
    let rounds = stage.options.rounds();
    let started = Instant::now();
    let mut progress = Progress::new(stage.job.rank() == 0, lines.len() * rounds as usize);
    let mut complete = true;
    'rounds: for round in 0..rounds {
        for line in &mut lines {
            if !goes_on(stage, started)? {
                complete = false;
                break 'rounds;
            }
            progress.step(&line.row.head.name);
            line.measure(stage, round, rounds)?;
        }
    }
    progress.end();
    let mut rows = Vec::new();
    for line in lines {
        line.measure.end()?;
        rows.push(line.row);
    }
    rows.retain(|row| !row.rounds.is_empty());
    Ok(Outcome { rows, complete })
}

fn lines(stage: &Stage<'_>, entries: &[Entry], hosts: &[String]) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for entry in entries {
        for measure in plan(stage, entry, hosts)? {
            let limit = limit(stage, &*measure);
            let row = Row::new(measure.head(), limit.map(|(limit, ..)| limit.name()));
            lines.push(Line { measure, schedule: None, limit, row });
        }
    }
    Ok(lines)
}

/// The first of the limits that can be measured here.
fn limit(stage: &Stage<'_>, measure: &dyn Measure) -> Option<(Limit, u64, Option<u64>)> {
    let operation = measure.compared()?;
    // All ranks decide alike: those that are not of the pair have no part in it.
    let has = |limit: &Limit| stage.two.as_ref().is_none_or(|two| two.pair.has(*limit));
    let limit = limits_of(stage.way, operation).into_iter().find(has)?;
    Some((limit, repetitions(operation, limit), None))
}

/// Whether nobody has asked for the end, and time is left. Collective.
fn goes_on(stage: &Stage<'_>, started: Instant) -> anyhow::Result<bool> {
    let over = stage.options.time_limit.is_some_and(|limit| started.elapsed() > limit);
    let end = u64::from(over || interrupt::is_asked());
    Ok(stage.job.allreduce(transom::Max, &[end])? == [0])
}

impl Line {
    /// A round of this row: its limit first, then itself.
    fn measure(&mut self, stage: &mut Stage<'_>, round: u32, rounds: u32) -> anyhow::Result<()> {
        let schedule = match self.schedule {
            Some(schedule) => schedule,
            None => self.calibrate(stage)?,
        };
        self.schedule = Some(schedule);
        self.row.repeats = schedule.repeats;
        self.measure_limit(stage)?;
        let measured = self.samples(stage, schedule)?;
        if stage.job.rank() == 0 {
            measured.add_to(&mut self.row);
        }
        if round == 0 || round + 1 == rounds || stage.options.validate {
            let seed = u64::from(round) * 1009 + self.row.head.bytes as u64 + 1;
            let right = self.measure.validate(stage, seed)?;
            if stage.job.rank() == 0 {
                self.row.valid =
                    right.map(|right| right && self.row.valid.unwrap_or(true)).or(self.row.valid);
            }
        }
        Ok(())
    }

    fn samples(&mut self, stage: &mut Stage<'_>, schedule: Schedule) -> anyhow::Result<Round> {
        let mut recorder = stage.recorder(schedule);
        self.measure.round(stage, &mut recorder)?;
        Ok(Round::gather(stage.job, &recorder.samples, self.measure.combine())?)
    }

    /// How many samples, of how many repetitions. Collective.
    fn calibrate(&mut self, stage: &mut Stage<'_>) -> anyhow::Result<Schedule> {
        let single = self.measure.grain() == Grain::Single || stage.options.cache == Cache::Dirty;
        let mut trial = Schedule { warm_up: 1, samples: 3, repeats: 1 };
        let mut time;
        loop {
            time = [self.samples(stage, trial)?.median()];
            stage.job.broadcast(0, &mut time)?;
            let sample = time[0] * trial.repeats as f64;
            if single || sample >= SHORTEST / 2.0 || trial.repeats >= REPEATS {
                break;
            }
            trial.repeats *= 16;
        }
        let repeats = if single { 1 } else { ((SHORTEST / time[0]).ceil() as u64).clamp(1, REPEATS) };
        Ok(self.schedule(stage, repeats, time[0]))
    }

    fn schedule(&self, stage: &Stage<'_>, repeats: u64, time: f64) -> Schedule {
        let options = stage.options;
        let rounds = u64::from(options.rounds());
        let most = options.iterations.map_or(SAMPLES.div_ceil(rounds), |all| all.div_ceil(rounds));
        let quick = if options.quick { 0.1 } else { 1.0 };
        let budget = TIME.as_nanos() as f64 * self.measure.share() * quick;
        // What a sample takes is not known where it is not made of repetitions.
        let sample = match self.measure.grain() {
            Grain::Single => (time * repeats as f64).max(TIME.as_nanos() as f64 / 8.0),
            Grain::Repeated => time * repeats as f64,
        };
        let fit = (budget / sample) as u64;
        let samples = if options.iterations.is_some() { most } else { fit.clamp(3.min(most), most) };
        Schedule { warm_up: options.warm_up, samples, repeats }
    }

    fn measure_limit(&mut self, stage: &mut Stage<'_>) -> anyhow::Result<()> {
        let way = stage.way;
        let (Some((limit, times, count)), Some(Two { pair, .. })) = (&mut self.limit, &mut stage.two) else {
            return Ok(());
        };
        let operation = self.measure.compared().map_or(1, |operation| operation.moved());
        let most = most_of_limit(way, operation);
        let repetitions = match count {
            Some(count) => *count,
            None => {
                pair.calibrate((most, LIMIT_TIME), |pair, count| pair.sample_limit(*limit, count * *times))?
            }
        };
        *count = Some(repetitions);
        let time = pair.sample_limit(*limit, repetitions * *times)?;
        if let Some(bound) = &mut self.row.limit {
            bound.times.push(time.as_secs_f64() * 1e9 / repetitions as f64);
        }
        Ok(())
    }
}

/// How often the limit of an operation that moves so many bytes is repeated at most.
fn most_of_limit(way: Way, bytes: usize) -> u64 {
    let (small, all) = match way {
        Way::Mapped => (100_000, 64 << 20),
        Way::Attached => (2_000, 32 << 20),
        Way::Device | Way::Network => (300, 16 << 20),
    };
    small.min(all / bytes.max(1)).max(2) as u64
}

impl Combine {
    /// The time of all from that of each.
    pub fn of(self, times: &[f64]) -> f64 {
        match self {
            Self::Slowest => times.iter().copied().fold(0.0, f64::max),
            Self::Together => 1.0 / times.iter().map(|time| 1.0 / time).sum::<f64>(),
        }
    }
}
