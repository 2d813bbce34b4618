//! What two looks at a job differ by.

use std::collections::BTreeMap;

use crate::hang::{RankView, Report};

/// Operations and bytes, in a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Operations.
    pub operations: f64,
    /// Bytes.
    pub bytes: f64,
}

/// What a rank has done between two looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankRates {
    /// Processors that it has used.
    pub cpu: f64,
    /// By path; none if nothing is counted.
    pub paths: Option<BTreeMap<String, Rate>>,
}

/// By rank.
#[derive(Debug, Default)]
pub struct Rates(BTreeMap<u32, RankRates>);

impl Rate {
    /// With another's.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
    }
}

impl RankRates {
    /// All paths together.
    pub fn total(&self) -> Option<Rate> {
        let paths = self.paths.as_ref()?;
        Some(paths.values().fold(Rate::default(), |mut sum, rate| {
            sum.add(*rate);
            sum
        }))
    }
}

impl Rates {
    /// From one look to the next.
    pub fn between(before: &Report, now: &Report) -> Self {
        let earlier: BTreeMap<u32, &RankView> = before.ranks.iter().map(|rank| (rank.rank, rank)).collect();
        let of = |rank: &RankView| Some((rank.rank, rank_rates(earlier.get(&rank.rank)?, rank)));
        Self(now.ranks.iter().filter_map(of).collect())
    }

    /// Those of a rank, if it was seen twice.
    pub fn of(&self, rank: u32) -> Option<&RankRates> {
        self.0.get(&rank)
    }
}

fn rank_rates(before: &RankView, now: &RankView) -> RankRates {
    let seconds = now.load.at.saturating_sub(before.load.at).as_secs_f64();
    if seconds <= 0.0 {
        return RankRates::default();
    }
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
    let paths = now.load.traffic.as_ref().map(|traffic| {
        let paths = traffic.iter().map(|now| {
            let earlier = before.load.traffic.iter().flatten().find(|before| before.path == now.path);
            let (operations, bytes) = earlier.map_or((0, 0), |traffic| (traffic.operations, traffic.bytes));
            let rate = Rate { operations: rate(operations, now.operations), bytes: rate(bytes, now.bytes) };
            (now.path.clone(), rate)
        });
        paths.collect()
    });
    let cpu = now.load.cpu.saturating_sub(before.load.cpu).as_secs_f64() / seconds;
    RankRates { cpu, paths }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{counted, rank, report};
    use super::*;

    #[test]
    fn rates_are_per_second_of_the_hosts_clock() {
        let mut earlier = rank(0, "a", 1000, 500);
        earlier.load.traffic = counted(&[("direct", 100, 800)]);
        let mut later = rank(0, "a", 3000, 1500);
        later.load.traffic = counted(&[("direct", 300, 2800), ("tcp", 10, 40)]);
        let new = rank(1, "a", 3000, 10);
        let rates = Rates::between(&report(vec![earlier.clone()]), &report(vec![later, new]));
        let of = rates.of(0).unwrap();
        assert_eq!((of.cpu, of.paths.as_ref().unwrap()["direct"].operations), (0.5, 100.0));
        assert_eq!(of.total(), Some(Rate { operations: 105.0, bytes: 1020.0 }));
        assert!(rates.of(1).is_none());
        // No time has passed, and a clock does not go back.
        let rates = Rates::between(&report(vec![earlier.clone()]), &report(vec![earlier]));
        assert_eq!(rates.of(0), Some(&RankRates::default()));
    }
}
