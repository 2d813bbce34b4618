//! Runs of which each round is a job of its own: what is kept from job to job.
//!
//! Some operations take a fifth longer in one process than in the next, for all of its life: where code and memory came to lie decides.
//! Rounds of one process do not show that. So `transom bench` starts a job for each round, and gives all of them the name of one file. The
//! job that finds that it is the last takes the file away.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::files::{self, Pending};
use super::options::Options;
use super::row::{Report, Row};

/// Which rounds this job measures, and in what time.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The rounds.
    pub rounds: Range<u32>,
    /// What is left of the time limit.
    pub time: Option<Duration>,
}

/// What earlier jobs measured, at rank 0.
///
/// # Errors
/// The file cannot be read, in words.
pub fn read(options: &Options) -> Result<Option<Report>, String> {
    match &options.kept {
        Some(path) if path.exists() => {
            files::read(path).map(|report| Some(Report { complete: true, ..report }))
        }
        _ => Ok(None),
    }
}

impl Part {
    /// All rounds, or the one behind those that are kept.
    pub fn new(options: &Options, starts: u32, seconds: f64) -> Self {
        let all = options.rounds();
        let rounds = if options.kept.is_some() { starts..(starts + 1).min(all) } else { 0..all };
        let time = options.time_limit.map(|limit| limit.saturating_sub(Duration::from_secs_f64(seconds)));
        Self { rounds, time }
    }

    /// Whether no job comes after it.
    pub fn is_last(&self, options: &Options) -> bool {
        self.rounds.end >= options.rounds()
    }
}

/// Keeps what was measured for the next job; as it is, it is not complete.
///
/// # Errors
/// No space, in words.
pub fn write(path: &Path, report: &Report) -> Result<(), String> {
    let report = Report { complete: false, ..report.clone() };
    let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
    Pending::new(path)?.write(&text)
}

/// Ends the series of jobs.
pub fn remove(options: &Options) {
    if let Some(path) = &options.kept {
        // The first job may be the last.
        let _ = fs::remove_file(path);
    }
}

impl Report {
    /// With what a later job of the same run measured.
    pub fn and(mut self, later: Self) -> Self {
        for row in later.rows {
            match self.rows.iter_mut().find(|own| own.key() == row.key()) {
                Some(own) => own.append(row),
                None => self.rows.push(row),
            }
        }
        self.seconds += later.seconds;
        self.starts += later.starts;
        self.complete &= later.complete;
        self
    }
}

impl Row {
    fn append(&mut self, later: Self) {
        self.rounds.extend(later.rounds);
        self.repeats = later.repeats;
        self.taken += later.taken;
        self.disturbed += later.disturbed;
        self.mixed |= later.mixed;
        if let (Some(own), Some(limit)) = (&mut self.limit, later.limit) {
            own.times.extend(limit.times);
        }
        self.fairness.extend(later.fairness);
        self.valid = later.valid.map(|right| right && self.valid.unwrap_or(true)).or(self.valid);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::suite::files::tests::{report, row};

    #[test]
    fn round_by_round() {
        let of = |bytes, time: f64| row(bytes, vec![vec![time]]);
        let first = report(vec![of(8, 1.0), of(64, 2.0)]);
        let mut wrong = of(8, 3.0);
        wrong.valid = Some(false);
        let both = first.and(report(vec![wrong, of(4096, 4.0)]));
        assert_eq!(both.rows.iter().map(|row| row.rounds.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!((both.rows[0].valid, both.rows[0].taken, both.starts), (Some(false), 2, 20));
        assert_eq!(both.rows[0].limit.as_ref().unwrap().times.len(), 2);
    }

    #[test]
    fn one_round_a_job_until_the_last() {
        let options = |more: &[&str]| Options::parse_from([&["bench", "--rounds", "3"], more].concat());
        assert_eq!(Part::new(&options(&[]), 0, 0.0).rounds, 0..3);
        let kept = options(&["--kept", "/tmp/kept", "--time-limit", "5"]);
        let part = |starts| Part::new(&kept, starts, 4.0);
        assert_eq!((part(1).rounds, part(1).time), (1..2, Some(Duration::from_secs(1))));
        assert!(!part(1).is_last(&kept) && part(2).is_last(&kept));
        assert_eq!(Part::new(&kept, 2, 9.0).time, Some(Duration::ZERO));
    }
}
