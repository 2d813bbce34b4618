//! Agreements of ranks of which some may die: each contributes, and the launcher, which hears of all deaths, decides for all alike.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use transom_pmi::wire::Message;

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// Names the agreement at all its members.
    pub key: String,
    /// The first and the last rank of each range of its members.
    pub members: Vec<(u32, u32)>,
    /// Of which those remain that all contribute.
    pub flags: u64,
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// Who is told: all that have contributed.
    pub told: Vec<u32>,
    /// Flags that all of these have.
    pub flags: u64,
    /// A number that no other agreement of the job has.
    pub number: u64,
    /// Members that had ended by then.
    pub gone: Vec<u32>,
}

/// Agreements that are not reached yet, by their keys.
#[derive(Debug, Default)]
pub struct Agreements {
    open: BTreeMap<String, Open>,
    reached: u64,
}

#[derive(Debug)]
struct Open {
    members: Vec<(u32, u32)>,
    flags: u64,
    came: BTreeSet<u32>,
}

impl Contribution {
    /// That of a rank's line, in a job of `size` ranks.
    pub fn of(message: &Message, size: u32) -> Option<Self> {
        let members = message.get("members")?.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range: (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (range.0 <= range.1 && range.1 < size).then_some(range)
        });
        Some(Self {
            key: message.get("key")?.to_owned(),
            members: members.collect::<Option<_>>()?,
            flags: message.get("flags")?.parse().ok()?,
        })
    }
}

impl Agreed {
    /// The line for a rank.
    pub fn line(&self) -> String {
        let gone: Vec<String> = self.gone.iter().map(u32::to_string).collect();
        let gone = if gone.is_empty() { "-".to_owned() } else { gone.join(",") };
        let answer = Message::new("transom_agree_result").with("rc", 0).with("flags", self.flags);
        let line = answer.with("number", self.number).with("gone", gone).to_line();
        line.unwrap_or_else(|_| "cmd=transom_agree_result rc=-1\n".to_owned())
    }
}

impl Agreements {
    /// A rank contributes. Who names other members than the first is told of the agreement of these.
    pub fn add(&mut self, rank: u32, contribution: Contribution) {
        let Contribution { key, members, flags } = contribution;
        let open =
            self.open.entry(key).or_insert_with(|| Open { members, flags: u64::MAX, came: BTreeSet::new() });
        open.flags &= flags;
        open.came.insert(rank);
    }

    /// Takes out those for which no member is missing that `runs`.
    pub fn reached(&mut self, runs: impl Fn(u32) -> bool) -> Vec<Agreed> {
        let members = |open: &Open| open.members.clone().into_iter().flat_map(|(first, last)| first..=last);
        let is_reached = |open: &Open| members(open).all(|rank| open.came.contains(&rank) || !runs(rank));
        let (reached, open): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.open).into_iter().partition(|(_, open)| is_reached(open));
        self.open = open;
        let number = |(_, open): (String, Open)| {
            self.reached += 1;
            let gone = members(&open).filter(|rank| !runs(*rank)).collect();
            Agreed { told: open.came.into_iter().collect(), flags: open.flags, number: self.reached, gone }
        };
        reached.into_iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contribution(key: &str, members: &str, flags: u64) -> Option<Contribution> {
        let message = Message::new("transom_agree").with("key", key).with("members", members);
        Contribution::of(&message.with("flags", flags), 8)
    }

    #[test]
    fn all_that_live_are_awaited() {
        let mut agreements = Agreements::default();
        let mut dead = BTreeSet::new();
        for rank in [0, 2] {
            agreements.add(rank, contribution("a", "0-2,5", 6 | u64::from(rank)).unwrap());
        }
        agreements.add(7, contribution("b", "6-7", 1).unwrap());
        dead.insert(5);
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), []);
        dead.insert(1);
        let agreed = Agreed { told: vec![0, 2], flags: 6, number: 1, gone: vec![1, 5] };
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), std::slice::from_ref(&agreed));
        assert_eq!(agreed.line(), "cmd=transom_agree_result rc=0 flags=6 number=1 gone=1,5\n");
        // One that has contributed and died is gone, and its contribution counts.
        agreements.add(6, contribution("b", "6-7", 3).unwrap());
        dead.insert(7);
        let agreed = Agreed { told: vec![6, 7], flags: 1, number: 2, gone: vec![7] };
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), [agreed]);
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        for members in ["", "8", "2-1", "0-8", "a", "0,,1", "-1"] {
            assert_eq!(contribution("a", members, 0), None, "{members}");
        }
    }
}
