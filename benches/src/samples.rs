//! Repeated measurements of one thing.

use std::time::Duration;

/// Nanoseconds per operation, one number a sample.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a sample of `count` operations that together took `time`.
    pub fn push(&mut self, time: Duration, count: u64) {
        self.0.push(time.as_secs_f64() * 1e9 / count.max(1) as f64);
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fastest sample; infinite if there is none.
    pub fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The slowest sample; 0 if there is none.
    pub fn worst(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The middle sample; NaN if there is none.
    pub fn median(&self) -> f64 {
        median(self.0.clone())
    }

    /// How many times longer these took than `limit`'s: the median over samples taken right after one another, so that
    /// what slows the machine down for a while slows both.
    pub fn ratio_to(&self, limit: &Samples) -> Option<f64> {
        let ratios: Vec<f64> = self.0.iter().zip(&limit.0).map(|(a, b)| a / b).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(nanoseconds: &[u64]) -> Samples {
        let mut samples = Samples::default();
        nanoseconds.iter().for_each(|n| samples.push(Duration::from_secs(*n), 1_000_000_000));
        samples
    }

    #[test]
    fn statistics() {
        let slow = samples(&[30, 10, 900]);
        assert_eq!((slow.best(), slow.median(), slow.worst()), (10.0, 30.0, 900.0));
        // 3, 2, 90
        assert_eq!(slow.ratio_to(&samples(&[10, 5, 10])), Some(3.0));
        assert_eq!(slow.ratio_to(&Samples::default()), None);
        assert!(Samples::default().median().is_nan());
    }
}
