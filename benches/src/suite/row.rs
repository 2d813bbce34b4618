//! What was measured, as it is kept in files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::statistics;
use crate::report::Unit;

/// What a row is about: two rows with equal heads can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The measurement.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Kind of window, or nothing.
    pub window: String,
    /// What completes operations, or nothing.
    pub sync: String,
    /// Bytes of each transfer.
    pub bytes: usize,
    /// Ranks that take part.
    pub ranks: usize,
    /// Origin and target, where that is not rank 0 and rank 1.
    pub pair: Option<(usize, usize)>,
    /// What its figures are given in.
    pub unit: Unit,
}

impl Head {
    /// What tells it from others.
    fn key(&self) -> String {
        let pair = self.pair.map_or_else(String::new, |(from, to)| format!(" {from}-{to}"));
        format!("{} {} {} {} {}{pair}", self.name, self.window, self.sync, self.bytes, self.ranks)
    }
}

/// What the machine does without a runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Its name.
    pub name: String,
    /// Nanoseconds, one sample a round.
    pub times: Vec<f64>,
}

/// A line of the table, with all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about.
    #[serde(flatten)]
    pub head: Head,
    /// Whose figures they are, where several libraries are measured side by side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub library: String,
    /// Repetitions in a sample.
    pub repeats: u64,
    /// Nanoseconds per repetition (or hundredths), by round: samples that nothing disturbed, if they are many enough.
    pub rounds: Vec<Vec<f64>>,
    /// The mean of all samples, disturbed ones too, by round; none of a round without samples.
    #[serde(default)]
    pub means: Vec<Option<f64>>,
    /// Samples that were taken.
    pub taken: u64,
    /// Samples in which the system took the core away.
    pub disturbed: u64,
    /// Whether disturbed samples are among the others, since too few were undisturbed.
    pub mixed: bool,
    /// The limit.
    pub limit: Option<Bound>,
    /// What part of the busiest rank's work the idlest did, by round.
    pub fairness: Vec<f64>,
    /// Whether its data was right each time it was looked at; none if there is nothing to look at.
    pub valid: Option<bool>,
}

impl Row {
    /// Nothing measured yet.
    pub fn new(head: Head, limit: Option<String>) -> Self {
        Self {
            head,
            library: String::new(),
            repeats: 1,
            rounds: Vec::new(),
            means: Vec::new(),
            taken: 0,
            disturbed: 0,
            mixed: false,
            limit: limit.map(|name| Bound { name, times: Vec::new() }),
            fairness: Vec::new(),
            valid: None,
        }
    }

    /// What tells it from the others of a run.
    pub fn key(&self) -> String {
        format!("{} {}", self.head.key(), self.library)
    }

    /// Whether another row differs in the size of transfers only.
    pub fn is_of_measurement(&self, other: &Self) -> bool {
        let head = Head { bytes: self.head.bytes, unit: self.head.unit, ..other.head.clone() };
        head == self.head && self.library == other.library
    }

    /// All samples in order of size.
    pub fn sorted(&self) -> Vec<f64> {
        statistics::sorted(self.rounds.concat())
    }

    /// The middle sample.
    pub fn median(&self) -> f64 {
        statistics::quantile(&self.sorted(), 0.5)
    }

    /// The mean over rounds of all samples, with what the system did meanwhile; NaN where a file does not say.
    pub fn mean(&self) -> f64 {
        statistics::mean(&self.means.iter().copied().flatten().collect::<Vec<f64>>())
    }

    /// The middle sample of each round.
    pub fn medians(&self) -> Vec<f64> {
        let median = |round: &Vec<f64>| statistics::quantile(&statistics::sorted(round.clone()), 0.5);
        self.rounds.iter().filter(|round| !round.is_empty()).map(median).collect()
    }

    /// How many times as long as the limit, by round.
    pub fn ratios(&self) -> Vec<f64> {
        let Some(limit) = &self.limit else { return Vec::new() };
        let middle = |round: &Vec<f64>| statistics::quantile(&statistics::sorted(round.clone()), 0.5);
        let rounds = self.rounds.iter().zip(&limit.times).filter(|(round, _)| !round.is_empty());
        rounds.map(|(round, bound)| middle(round) / bound).collect()
    }

    /// The limit's median.
    pub fn bound(&self) -> Option<f64> {
        let times = self.limit.as_ref()?.times.clone();
        (!times.is_empty()).then(|| statistics::quantile(&statistics::sorted(times), 0.5))
    }
}

/// Where it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// CPU, cores and kernel of rank 0's host.
    pub cpu: String,
    /// The kernel.
    pub kernel: String,
    /// The host of each rank.
    pub hosts: Vec<String>,
    /// The transport between rank 0 and rank 1, and what is below it.
    pub transport: String,
    /// Cores of rank 0's host.
    pub cores: usize,
}

/// A file of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What kind of file this is.
    pub format: String,
    /// Which version of it.
    pub version: u32,
    /// When it was begun, in seconds since 1970.
    pub began: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether all was measured that was asked for.
    pub complete: bool,
    /// Jobs that measured the rounds, each as many.
    #[serde(default = "one")]
    pub starts: u32,
    /// Where.
    pub machine: Machine,
    /// How.
    pub settings: BTreeMap<String, String>,
    /// What.
    pub rows: Vec<Row>,
}

/// Of files that do not say.
fn one() -> u32 {
    1
}
