//! What the table of libraries shows of their samples.

use crate::suite::row::{Report, Row};
use crate::suite::statistics::median;

/// The setting of a report that says it.
pub const SETTING: &str = "figure";

/// What figures are of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The median over rounds of each round's median.
    Median,
    /// The mean of all, with what the system did meanwhile.
    Mean,
}

impl Figure {
    /// As the user wants it.
    pub fn chosen(mean: bool) -> Self {
        if mean { Self::Mean } else { Self::Median }
    }

    /// That of a report's table.
    pub fn of_report(report: &Report) -> Self {
        Self::chosen(report.settings.get(SETTING).is_some_and(|name| name == Self::Mean.name()))
    }

    /// As the setting says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
        }
    }

    /// A row's.
    pub fn of(self, row: &Row) -> f64 {
        match self {
            Self::Median => median(&row.medians()),
            Self::Mean => row.mean(),
        }
    }

    /// How many times as long as another row takes, in each round that both have.
    pub fn ratios(self, own: &Row, other: &Row) -> Vec<f64> {
        match self {
            Self::Median => {
                let rounds = own.rounds.iter().zip(&other.rounds);
                rounds
                    .filter(|(a, b)| !a.is_empty() && !b.is_empty())
                    .map(|(a, b)| median(a) / median(b))
                    .collect()
            }
            Self::Mean => {
                own.means.iter().zip(&other.means).filter_map(|(a, b)| Some((*a)? / (*b)?)).collect()
            }
        }
    }

    /// What a reader is told of figures.
    pub fn legend(self) -> &'static str {
        match self {
            Self::Median => "medians over rounds",
            Self::Mean => "means over rounds of all samples, disturbed ones too (times limit: of medians)",
        }
    }
}
