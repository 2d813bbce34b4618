//! Agreements of ranks of which some may die: each contributes, and the launcher, which hears of all deaths, decides for all alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use transom_pmi::wire::Message;

/// Ranks, as the first and the last of each range of them.
pub type Ranges = Vec<(u32, u32)>;

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// Names the agreement at all its members.
    pub key: String,
    /// Its members.
    pub members: Ranges,
    /// Of which those remain that all contribute.
    pub flags: u64,
    /// The ranks of which it has acknowledged that they are gone.
    pub acknowledged: Ranges,
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// Names the agreement at all its members.
    pub key: String,
    /// Who is told: all that have contributed.
    pub told: Vec<u32>,
    /// Flags that all of these have.
    pub flags: u64,
    /// A number that no other agreement of the job has.
    pub number: u64,
    /// Members that had ended by then.
    pub gone: Vec<u32>,
    /// Whether all that live have acknowledged all of these.
    pub acknowledged: bool,
}

/// Agreements that are not reached yet, by their keys.
#[derive(Debug, Default)]
pub struct Agreements {
    open: BTreeMap<String, Open>,
    reached: u64,
}

#[derive(Debug)]
struct Open {
    members: Ranges,
    flags: u64,
    /// What those have acknowledged that have contributed.
    came: BTreeMap<u32, Ranges>,
}

impl Contribution {
    /// That of a rank's line, in a job of `size` ranks.
    pub fn of(message: &Message, size: u32) -> Option<Self> {
        let acknowledged = message.get("acknowledged").filter(|ranges| *ranges != "-");
        Some(Self {
            key: message.get("key")?.to_owned(),
            members: ranges(message.get("members")?, size)?,
            flags: message.get("flags")?.parse().ok()?,
            acknowledged: acknowledged.map_or(Some(Vec::new()), |text| ranges(text, size))?,
        })
    }
}

/// Ranks of a job of `size`, such as `0-3,7`.
fn ranges(text: &str, size: u32) -> Option<Ranges> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range: (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (range.0 <= range.1 && range.1 < size).then_some(range)
    };
    text.split(',').map(range).collect()
}

fn contain(ranges: &Ranges, rank: u32) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&rank))
}

impl Agreed {
    /// The line for a rank.
    pub fn line(&self) -> String {
        let gone: Vec<String> = self.gone.iter().map(u32::to_string).collect();
        let gone = if gone.is_empty() { "-".to_owned() } else { gone.join(",") };
        let answer = Message::new("transom_agree_result").with("rc", 0).with("key", &self.key);
        let answer = answer.with("flags", self.flags).with("number", self.number).with("gone", gone);
        let line = answer.with("acknowledged", u8::from(self.acknowledged)).to_line();
        line.unwrap_or_else(|_| "cmd=transom_agree_result rc=-1\n".to_owned())
    }
}

impl Agreements {
    /// A rank contributes. Who names other members than the first is told of the agreement of these.
    pub fn add(&mut self, rank: u32, contribution: Contribution) {
        let Contribution { key, members, flags, acknowledged } = contribution;
        let new = || Open { members, flags: u64::MAX, came: BTreeMap::new() };
        let open = self.open.entry(key).or_insert_with(new);
        open.flags &= flags;
        open.came.insert(rank, acknowledged);
    }

    /// Takes out those for which no member is missing that `runs`.
    pub fn reached(&mut self, runs: impl Fn(u32) -> bool) -> Vec<Agreed> {
        let members = |open: &Open| open.members.clone().into_iter().flat_map(|(first, last)| first..=last);
        let is_reached = |open: &Open| members(open).all(|rank| open.came.contains_key(&rank) || !runs(rank));
        let (reached, open): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.open).into_iter().partition(|(_, open)| is_reached(open));
        self.open = open;
        let number = |(key, open): (String, Open)| {
            self.reached += 1;
            let gone: Vec<u32> = members(&open).filter(|rank| !runs(*rank)).collect();
            let mut living = open.came.iter().filter(|(rank, _)| runs(**rank));
            let acknowledged = living.all(|(_, known)| gone.iter().all(|rank| contain(known, *rank)));
            let (told, flags) = (open.came.into_keys().collect(), open.flags);
            Agreed { key, told, flags, number: self.reached, gone, acknowledged }
        };
        reached.into_iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn contribution(key: &str, members: &str, flags: u64, acknowledged: &str) -> Option<Contribution> {
        let message = Message::new("transom_agree").with("key", key).with("members", members);
        Contribution::of(&message.with("flags", flags).with("acknowledged", acknowledged), 8)
    }

    #[test]
    fn all_that_live_are_awaited() {
        let mut agreements = Agreements::default();
        let mut dead = BTreeSet::new();
        for (rank, known) in [(0, "1,4-6"), (2, "1")] {
            agreements.add(rank, contribution("a", "0-2,5", 6 | u64::from(rank), known).unwrap());
        }
        agreements.add(7, contribution("b", "6-7", 1, "-").unwrap());
        dead.insert(5);
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), []);
        dead.insert(1);
        let agreed = Agreed {
            key: "a".into(),
            told: vec![0, 2],
            flags: 6,
            number: 1,
            gone: vec![1, 5],
            acknowledged: false,
        };
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), std::slice::from_ref(&agreed));
        let line = "cmd=transom_agree_result rc=0 key=a flags=6 number=1 gone=1,5 acknowledged=0\n";
        assert_eq!(agreed.line(), line);
        // One that has contributed and died is gone, and its flags count, but not what it had acknowledged.
        agreements.add(6, contribution("b", "6-7", 3, "7").unwrap());
        dead.insert(7);
        let agreed = Agreed {
            key: "b".into(),
            told: vec![6, 7],
            flags: 1,
            number: 2,
            gone: vec![7],
            acknowledged: true,
        };
        assert_eq!(agreements.reached(|rank| !dead.contains(&rank)), [agreed]);
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        for ranks in ["", "8", "2-1", "0-8", "a", "0,,1", "-1"] {
            assert_eq!(contribution("a", ranks, 0, "-"), None, "{ranks}");
            assert_eq!(contribution("a", "0-7", 0, ranks), None, "{ranks}");
        }
    }
}
