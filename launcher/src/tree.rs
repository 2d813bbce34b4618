//! The tree of agents: which hosts the launcher reaches itself, and which by the agents of others.
//!
//! Whoever starts agents is given a list of hosts and how many it may reach itself, and splits the list: into the hosts themselves if
//! they are few enough, else into so many parts, of which the first host's agent gets the others to start in the same way.

use serde::{Deserialize, Serialize};

use crate::frames::{Input, JobSpec};
use crate::hosts::Block;
use crate::run::plan::Route;

/// A host of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its number among the job's.
    pub index: u32,
    /// Its name and its ranks.
    pub block: Block,
    /// How an agent is started there.
    pub route: Route,
}

impl Place {
    /// Whether a rank of this host reads standard input.
    pub fn reads(&self, input: Input) -> bool {
        match input {
            Input::Rank(rank) => self.block.ranks.local(rank).is_some(),
            Input::All => true,
            Input::None => false,
        }
    }
}

/// A host, and those that its agent is to start agents on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The host.
    pub head: Place,
    /// The hosts below it.
    pub below: Vec<Place>,
}

impl Branch {
    /// All its hosts.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.head).chain(&self.below)
    }

    /// The orders for its first host, made of those for another one.
    pub fn spec(&self, other: &JobSpec) -> JobSpec {
        let Place { index, block, route } = &self.head;
        let mut spec = other.clone();
        (spec.ranks, spec.remote) = (block.ranks.clone(), *route != Route::Local);
        (spec.tree.index, spec.tree.below) = (*index, self.below.clone());
        spec
    }
}

/// Splits a list of hosts into at most so many branches (0: each is one), and one for each host that needs no way to it:
/// nobody but the launcher can start an agent there.
pub fn split(places: Vec<Place>, fan_out: u32) -> Vec<Branch> {
    let most = if fan_out == 0 { usize::MAX } else { fan_out as usize };
    let (near, far): (Vec<_>, Vec<_>) = if places.len() <= most {
        (places, Vec::new())
    } else {
        places.into_iter().partition(|place| place.route == Route::Local)
    };
    let mut branches: Vec<_> = near.into_iter().map(|head| Branch { head, below: Vec::new() }).collect();
    let count = far.len().min(most).max(1);
    let (even, extra) = (far.len() / count, far.len() % count);
    let mut rest = far.into_iter();
    for number in 0..count {
        let Some(head) = rest.next() else { break };
        let below = rest.by_ref().take(even + usize::from(number < extra) - 1).collect();
        branches.push(Branch { head, below });
    }
    branches
}

/// How many agents are between whoever splits such a list and the farthest host, that included.
pub fn height(places: &[Place], fan_out: u32) -> u32 {
    let deepest = |branch: &Branch| 1 + height(&branch.below, fan_out);
    split(places.to_vec(), fan_out).iter().map(deepest).max().unwrap_or(0)
}

/// For each host of a list, by number: on which other one its agent is started, if not by the one that has the list.
pub fn parents(places: &[Place], fan_out: u32) -> Vec<Option<u32>> {
    let mut parents = vec![None; places.len()];
    let mut open = vec![(None, places.to_vec())];
    while let Some((parent, places)) = open.pop() {
        for branch in split(places, fan_out) {
            if let Some(own) = parents.get_mut(branch.head.index as usize) {
                *own = parent;
            }
            open.push((Some(branch.head.index), branch.below));
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(count: u32) -> Vec<Place> {
        let place = |index| Place {
            index,
            block: Block { host: format!("h{index}"), ranks: [index].into_iter().collect() },
            route: if index == 0 { Route::Local } else { Route::Ssh },
        };
        (0..count).map(place).collect()
    }

    #[test]
    fn every_host_is_started_once_and_nobody_starts_many() {
        for (count, fan_out) in [(1, 2), (5, 2), (16, 2), (32, 32), (33, 32), (1000, 32), (1000, 10), (9, 1)]
        {
            let parents = parents(&places(count), fan_out);
            let depth = |mut at: usize| {
                let mut depth = 1;
                while let Some(parent) = parents[at] {
                    (at, depth) = (parent as usize, depth + 1);
                    assert!(depth <= count, "a cycle");
                }
                depth
            };
            let deepest = (0..count as usize).map(depth).max().unwrap();
            assert_eq!(deepest, height(&places(count), fan_out), "{count} by {fan_out}");
            for parent in 0..count {
                let children = parents.iter().filter(|of| **of == Some(parent)).count();
                assert!(children <= fan_out as usize, "{count} by {fan_out}: {children}");
            }
            // The launcher's own host needs no way, and comes on top.
            assert_eq!(parents[0], None);
            assert!(parents.iter().filter(|of| of.is_none()).count() <= fan_out as usize + 1);
        }
    }

    #[test]
    fn few_levels() {
        let heights = [(32, 32), (34, 32), (1000, 32), (1000, 2), (1000, 0)];
        let heights = heights.map(|(count, fan_out)| height(&places(count), fan_out));
        assert_eq!(heights, [1, 2, 2, 9, 1]);
    }
}
