//! Which of a job's ranks are on one host.

use serde::{Deserialize, Serialize};

/// The most ranks of a job.
pub const MOST: u32 = 1_000_000;

/// Numbers of ranks, ascending. A host's own, *local* numbers count them from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Sent")]
pub struct Ranks {
    /// First of each run of consecutive ones, and how many there are before it.
    runs: Vec<(u32, u32)>,
    count: u32,
}

/// What comes from elsewhere, and may be anything.
#[derive(Deserialize)]
struct Sent {
    runs: Vec<(u32, u32)>,
    count: u32,
}

impl TryFrom<Sent> for Ranks {
    type Error = &'static str;

    fn try_from(Sent { runs, count }: Sent) -> Result<Self, Self::Error> {
        let first_is_none_before = runs.first().is_none_or(|(_, before)| *before == 0);
        let ascend = |pair: &[(u32, u32)]| {
            let ((first, before), (next, next_before)) = (pair[0], pair[1]);
            next_before > before && first.checked_add(next_before - before).is_some_and(|end| end < next)
        };
        let last = runs.last().map_or((0, 0), |(first, before)| (*first, *before));
        let fits = last.1 <= count && last.0.checked_add(count - last.1).is_some_and(|end| end <= MOST);
        if first_is_none_before && runs.windows(2).all(ascend) && fits && (runs.is_empty() == (count == 0)) {
            Ok(Self { runs, count })
        } else {
            Err("no numbers of ranks")
        }
    }
}

impl Ranks {
    /// Adds one that is higher than those before.
    pub fn push(&mut self, rank: u32) {
        let next = self.runs.last().map(|(first, before)| first + (self.count - before));
        if next != Some(rank) {
            self.runs.push((rank, self.count));
        }
        self.count += 1;
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The rank of a local number.
    pub fn rank(&self, local: u32) -> Option<u32> {
        let run = self.runs.partition_point(|(_, before)| *before <= local).checked_sub(1)?;
        let (first, before) = self.runs.get(run)?;
        (local < self.count).then(|| first + (local - before))
    }

    /// The local number of a rank, if it is one of these.
    pub fn local(&self, rank: u32) -> Option<u32> {
        let run = self.runs.partition_point(|(first, _)| *first <= rank).checked_sub(1)?;
        let (first, before) = self.runs.get(run)?;
        let end = self.runs.get(run + 1).map_or(self.count, |(_, before)| *before);
        (rank - first < end - before).then(|| before + (rank - first))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.count).filter_map(|local| self.rank(local))
    }
}

impl FromIterator<u32> for Ranks {
    fn from_iter<I: IntoIterator<Item = u32>>(ranks: I) -> Self {
        let mut all = Self::default();
        ranks.into_iter().for_each(|rank| all.push(rank));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_looked_at() {
        let read = |text: &str| serde_json::from_str::<Ranks>(text);
        for numbers in [vec![], vec![5], vec![0, 1, 2], vec![1, 3, 5, 6, 7, 9], vec![999_999]] {
            let ranks = Ranks::from_iter(numbers);
            assert_eq!(read(&serde_json::to_string(&ranks).unwrap()).unwrap(), ranks);
        }
        for bad in [
            r#"{"runs":[[0,0]],"count":2147483648}"#,
            r#"{"runs":[[0,0]],"count":0}"#,
            r#"{"runs":[],"count":1}"#,
            r#"{"runs":[[0,1]],"count":2}"#,
            r#"{"runs":[[0,0],[1,2]],"count":3}"#,
            r#"{"runs":[[0,0],[2,1],[2,1]],"count":3}"#,
            r#"{"runs":[[4,0],[2,1]],"count":3}"#,
            r#"{"runs":[[0,0],[9,4]],"count":3}"#,
            r#"{"runs":[[4294967295,0]],"count":1}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn local_numbers() {
        for numbers in [vec![], vec![5], vec![0, 1, 2], vec![1, 3, 5, 6, 7, 9], vec![4, 8]] {
            let ranks = Ranks::from_iter(numbers.clone());
            assert_eq!(ranks.iter().collect::<Vec<_>>(), numbers);
            assert_eq!((ranks.count() as usize, ranks.rank(ranks.count())), (numbers.len(), None));
            for rank in 0..12 {
                let local = numbers.iter().position(|number| *number == rank);
                assert_eq!(ranks.local(rank), local.map(|local| local as u32), "{rank} of {numbers:?}");
            }
        }
    }
}
