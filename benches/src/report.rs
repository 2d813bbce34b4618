//! Figures: what they are given in, and how they are written.

use serde::{Deserialize, Serialize};

/// What a figure is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Time of one operation.
    Time,
    /// Operations a second, where a sample's operation is so many.
    Rate(usize),
    /// Bytes a second, where an operation moves so many.
    Bandwidth(usize),
    /// A part of a whole, in hundredths: the more the better.
    Percent,
}

impl Unit {
    /// The unit for a figure of about `nanoseconds`, and the function that gives a time in it.
    pub(crate) fn scale(self, nanoseconds: f64) -> (&'static str, impl Fn(f64) -> f64) {
        let (name, factor, inverse) = match self {
            Self::Percent => ("%", 1.0, false),
            Self::Time if nanoseconds < 1000.0 => ("ns", 1.0, false),
            Self::Time if nanoseconds < 1e7 => ("µs", 1e-3, false),
            Self::Time => ("ms", 1e-6, false),
            Self::Rate(count) => ("M/s", count as f64 * 1e3, true),
            Self::Bandwidth(bytes) if (bytes as f64) < 0.1 * nanoseconds => {
                ("MB/s", bytes as f64 * 1e3, true)
            }
            Self::Bandwidth(bytes) => ("GB/s", bytes as f64, true),
        };
        (name, move |time: f64| if inverse { factor / time } else { factor * time })
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Three significant digits.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value {
        v if v < 0.1 => 3,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}
