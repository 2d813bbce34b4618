//! The samples of a round, from the ranks that measured.

use transom::{Communicator, Result};

use super::measure::Combine;
use super::row::Row;
use super::statistics;
use crate::repeat::Sample;

/// The samples of a round, at rank 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Round {
    samples: Vec<Sample>,
    /// What part of the busiest rank's work the idlest did, of ranks that work together.
    fairness: Option<f64>,
}

impl Round {
    /// As another program took them.
    pub fn new(samples: Vec<Sample>, fairness: Option<f64>) -> Self {
        Self { samples, fairness }
    }

    /// What the ranks have recorded, at rank 0. Collective.
    ///
    /// # Errors
    /// As [`Communicator::gather`].
    pub fn gather(comm: &Communicator, own: &[Sample], combine: Combine) -> Result<Self> {
        let flat: Vec<f64> =
            own.iter().flat_map(|sample| [sample.time, f64::from(u8::from(sample.is_disturbed))]).collect();
        let Some(all) = comm.gather(0, &flat)? else { return Ok(Self::default()) };
        let unpack = |flat: &Vec<f64>| -> Vec<Sample> {
            flat.chunks_exact(2).map(|pair| Sample { time: pair[0], is_disturbed: pair[1] != 0.0 }).collect()
        };
        let ranks: Vec<Vec<Sample>> = all.iter().map(unpack).filter(|samples| !samples.is_empty()).collect();
        Ok(Self::combined(&ranks, combine))
    }

    fn combined(ranks: &[Vec<Sample>], combine: Combine) -> Self {
        let count = ranks.iter().map(Vec::len).min().unwrap_or(0);
        let sample = |i: usize| {
            let times: Vec<f64> = ranks.iter().map(|samples| samples[i].time).collect();
            let is_disturbed = ranks.iter().any(|samples| samples[i].is_disturbed);
            Sample { time: combine.of(&times), is_disturbed }
        };
        let shares = ranks.iter().map(|samples| samples.iter().map(|s| 1.0 / s.time).sum::<f64>());
        let shares = statistics::sorted(shares.collect());
        let fairness = match (combine, shares.as_slice()) {
            (Combine::Together, [least, .., most]) => Some(least / most),
            _ => None,
        };
        Self { samples: (0..count).map(sample).collect(), fairness }
    }

    /// The middle of all.
    pub fn median(&self) -> f64 {
        let times: Vec<f64> = self.samples.iter().map(|sample| sample.time).collect();
        statistics::median(&times)
    }

    /// Adds the samples to a row: those that nothing disturbed, if they are a quarter and three at least.
    pub fn add_to(self, row: &mut Row) {
        let (taken, disturbed) =
            (self.samples.len(), self.samples.iter().filter(|sample| sample.is_disturbed).count());
        let kept = taken - disturbed;
        let mixed = disturbed > 0 && (kept < 3 || kept < taken / 4);
        let times = self.samples.iter().filter(|sample| mixed || !sample.is_disturbed);
        row.rounds.push(times.map(|sample| rounded(sample.time)).collect());
        let all: Vec<f64> = self.samples.iter().map(|sample| sample.time).collect();
        row.means.push((taken > 0).then(|| rounded(statistics::mean(&all))));
        row.mixed |= mixed;
        row.taken += taken as u64;
        row.disturbed += disturbed as u64;
        row.fairness.extend(self.fairness);
    }
}

/// To five digits: more is noise, and long in a file.
fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return value;
    }
    let scale = 10_f64.powf(4.0 - value.log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;
    use crate::suite::row::Head;

    fn sample(time: f64, is_disturbed: bool) -> Sample {
        Sample { time, is_disturbed }
    }

    fn row() -> Row {
        let text = String::new;
        let (name, group, window, sync) = (text(), text(), text(), text());
        Row::new(Head { name, group, window, sync, bytes: 8, ranks: 2, pair: None, unit: Unit::Time }, None)
    }

    #[test]
    fn disturbed_samples_are_told_and_left_out() {
        let mut row = row();
        let samples: Vec<Sample> = (0..10).map(|i| sample(f64::from(i) + 1.0, i >= 6)).collect();
        Round { samples, fairness: None }.add_to(&mut row);
        assert_eq!((row.taken, row.disturbed, row.mixed), (10, 4, false));
        assert_eq!((&row.rounds[..], row.mean()), (&[vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]][..], 5.5));
        let samples = vec![sample(1.0, false), sample(2.0, true), sample(3.0, true)];
        Round { samples, fairness: None }.add_to(&mut row);
        assert_eq!((row.rounds[1].len(), row.disturbed, row.mixed), (3, 6, true));
        assert_eq!((&row.means[..], row.mean()), (&[Some(5.5), Some(2.0)][..], 3.75));
    }

    #[test]
    fn ranks_become_one() {
        let ranks =
            [vec![sample(10.0, false), sample(20.0, true)], vec![sample(30.0, false), sample(5.0, false)]];
        let slowest = Round::combined(&ranks, Combine::Slowest);
        assert_eq!(slowest.samples, [sample(30.0, false), sample(20.0, true)]);
        let together =
            Round::combined(&[vec![sample(10.0, false)], vec![sample(30.0, false)]], Combine::Together);
        assert!((together.samples[0].time - 7.5).abs() < 1e-9);
        assert!((together.fairness.unwrap() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn five_digits() {
        assert_eq!([123_456.0, 1.234_567, 0.0].map(rounded), [123_460.0, 1.2346, 0.0]);
    }
}
