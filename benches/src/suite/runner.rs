//! Rounds through all rows, so that what changes in the machine meanwhile shows in each of them.

use std::time::{Duration, Instant};

use super::interrupt;
use super::kept::Part;
use super::measure::{Combine, Grain, Measure, plan};
use super::options::Cache;
use super::place::in_place;
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
/// Each round has windows of its own: what their pages do to the caches is in the spread between rounds.
///
/// # Errors
/// Those of the operations.
pub fn run(
    stage: &mut Stage<'_>,
    entries: &[Entry],
    hosts: &[String],
    part: &Part,
) -> anyhow::Result<Outcome> {
    let rounds = stage.options.rounds();
    let started = Instant::now();
    let mut measures = measures(stage, entries, hosts)?;
    let mut lines: Vec<Line> = measures.iter().map(|measure| Line::new(stage, &**measure)).collect();
    let all = lines.len() * rounds as usize;
    let mut progress = Progress::new(stage.job.rank() == 0, all, lines.len() * part.rounds.start as usize);
    let mut complete = true;
    for round in part.rounds.clone() {
        if round > part.rounds.start {
            stage.renew()?;
            measures = self::measures(stage, entries, hosts)?;
        }
        for (line, measure) in lines.iter_mut().zip(&mut measures) {
            complete = goes_on(stage, part, started)?;
            if !complete {
                break;
            }
            progress.step(&line.row.head.name);
            in_place(&mut || line.measure(stage, &mut **measure, (round, rounds)))?;
        }
        measures.into_iter().try_for_each(|measure| measure.end())?;
        measures = Vec::new();
        if !complete {
            break;
        }
    }
    let rows = lines.into_iter().map(|line| line.row).filter(|row| !row.rounds.is_empty()).collect();
    Ok(Outcome { rows, complete })
}

fn measures(stage: &Stage<'_>, entries: &[Entry], hosts: &[String]) -> anyhow::Result<Vec<Box<dyn Measure>>> {
    let mut measures = Vec::new();
    for entry in entries {
        measures.extend(plan(stage, entry, hosts)?);
    }
    Ok(measures)
}

/// The first of the limits that can be measured here.
fn limit(stage: &Stage<'_>, measure: &dyn Measure) -> Option<(Limit, u64, Option<u64>)> {
    let operation = measure.compared()?;
    // All ranks decide alike: those that are not of the pair have no part in it.
    let has = |limit: &Limit| stage.two.as_ref().is_none_or(|two| two.pair.has(*limit));
    let limit = limits_of(stage.way, operation, measure.beside()).into_iter().find(has)?;
    Some((limit, repetitions(operation, limit), None))
}

/// Whether nobody has asked for the end, and time is left. Collective.
fn goes_on(stage: &Stage<'_>, part: &Part, started: Instant) -> anyhow::Result<bool> {
    let over = part.time.is_some_and(|limit| started.elapsed() > limit);
    let end = u64::from(over || interrupt::is_asked());
    Ok(stage.job.allreduce(transom::Max, &[end])? == [0])
}

impl Line {
    fn new(stage: &Stage<'_>, measure: &dyn Measure) -> Self {
        let limit = limit(stage, measure);
        let row = Row::new(measure.head(), limit.map(|(limit, ..)| limit.name()));
        Self { schedule: None, limit, row }
    }

    /// A round of this row: its limit first, then itself.
    fn measure(
        &mut self,
        stage: &mut Stage<'_>,
        measure: &mut dyn Measure,
        (round, rounds): (u32, u32),
    ) -> anyhow::Result<()> {
        let schedule = match self.schedule {
            Some(schedule) => schedule,
            None => calibrate(stage, measure)?,
        };
        self.schedule = Some(schedule);
        self.row.repeats = schedule.repeats;
        self.measure_limit(stage, measure)?;
        let measured = samples(stage, measure, schedule)?;
        if stage.job.rank() == 0 {
            measured.add_to(&mut self.row);
        }
        if round == 0 || round + 1 == rounds || stage.options.validate {
            let seed = u64::from(round) * 1009 + self.row.head.bytes as u64 + 1;
            let right = measure.validate(stage, seed)?;
            if stage.job.rank() == 0 {
                self.row.valid =
                    right.map(|right| right && self.row.valid.unwrap_or(true)).or(self.row.valid);
            }
        }
        Ok(())
    }

    fn measure_limit(&mut self, stage: &mut Stage<'_>, measure: &dyn Measure) -> anyhow::Result<()> {
        let way = stage.way;
        let (Some((limit, times, count)), Some(Two { pair, .. })) = (&mut self.limit, &mut stage.two) else {
            return Ok(());
        };
        let operation = measure.compared().map_or(1, |operation| operation.moved());
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

fn samples(stage: &mut Stage<'_>, measure: &mut dyn Measure, schedule: Schedule) -> anyhow::Result<Round> {
    let mut recorder = stage.recorder(schedule);
    measure.round(stage, &mut recorder)?;
    Ok(Round::gather(stage.job, &recorder.samples, measure.combine())?)
}

/// How many samples, of how many repetitions. Collective.
fn calibrate(stage: &mut Stage<'_>, measure: &mut dyn Measure) -> anyhow::Result<Schedule> {
    let single = measure.grain() == Grain::Single || stage.options.cache == Cache::Dirty;
    let mut trial = Schedule { warm_up: 1, samples: 3, repeats: 1 };
    let mut time;
    loop {
        time = [samples(stage, measure, trial)?.median()];
        stage.job.broadcast(0, &mut time)?;
        let sample = time[0] * trial.repeats as f64;
        if single || sample >= SHORTEST / 2.0 || trial.repeats >= REPEATS {
            break;
        }
        trial.repeats *= 16;
    }
    let repeats = if single { 1 } else { ((SHORTEST / time[0]).ceil() as u64).clamp(1, REPEATS) };
    Ok(schedule(stage, measure, repeats, time[0]))
}

fn schedule(stage: &Stage<'_>, measure: &dyn Measure, repeats: u64, time: f64) -> Schedule {
    let options = stage.options;
    let rounds = u64::from(options.rounds());
    let most = options.iterations.map_or(SAMPLES.div_ceil(rounds), |all| all.div_ceil(rounds));
    let quick = if options.quick { 0.1 } else { 1.0 };
    let budget = TIME.as_nanos() as f64 * measure.share() * quick;
    // What a sample takes is not known where it is not made of repetitions.
    let sample = match measure.grain() {
        Grain::Single => (time * repeats as f64).max(TIME.as_nanos() as f64 / 8.0),
        Grain::Repeated => time * repeats as f64,
    };
    let fit = (budget / sample) as u64;
    let samples = if options.iterations.is_some() { most } else { fit.clamp(3.min(most), most) };
    Schedule { warm_up: options.warm_up, samples, repeats }
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
