//! Who waits for whom: the ranks' notes as a graph, its cycles, and where its paths end.

use std::collections::{BTreeMap, BTreeSet};

use transom::waits::{Subject, Wait};

use super::verdict::{Verdict, of_cycle, of_end};
use super::{RankView, State};

/// Why one rank waits for another.
#[derive(Debug, Clone, Copy)]
pub struct Edge<'a> {
    /// Who waits.
    pub from: u32,
    /// For whom.
    pub to: u32,
    /// In which call; none while it joins the job.
    pub wait: Option<&'a Wait>,
    /// What makes it so.
    pub why: Why,
}

/// Why a rank is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The waiting rank says so.
    Named,
    /// It holds the lock that is wanted.
    Holds,
    /// It comes first in the queue of that lock.
    Ahead,
    /// It grants that lock, and does not answer.
    Grants,
    /// It may hold that lock, since no other rank does, and it does not answer.
    Maybe,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Finding {
    /// For each rank that waits, the ranks that it waits for, and why.
    pub on: BTreeMap<u32, BTreeMap<u32, Why>>,
    /// Ranks that are missing from a collective, by its context and number.
    pub absent: BTreeMap<(u64, u64), BTreeSet<u32>>,
    /// Who is to blame, the surest first.
    pub verdicts: Vec<Verdict>,
}

/// The ranks of a job, by number.
pub type Ranks<'a> = BTreeMap<u32, &'a RankView>;

/// Works out who waits for whom.
pub fn find(ranks: &[RankView]) -> Finding {
    let ranks: Ranks<'_> = ranks.iter().map(|rank| (rank.rank, rank)).collect();
    let edges = edges(&ranks);
    let mut finding = Finding { absent: absent(&ranks), ..Finding::default() };
    for edge in &edges {
        finding.on.entry(edge.from).or_default().insert(edge.to, edge.why);
    }
    let cycles = cycles(&edges);
    finding.verdicts.extend(cycles.iter().map(|cycle| of_cycle(cycle)));
    let waiting: BTreeSet<u32> = edges.iter().map(|edge| edge.from).collect();
    let ends: BTreeSet<u32> = edges.iter().map(|edge| edge.to).filter(|to| !waiting.contains(to)).collect();
    // Whoever waits for something that names nobody ends a path, too.
    let nobody = ranks.values().filter(|rank| can_wait(rank) && !rank.waits.is_empty());
    let nobody = nobody.map(|rank| rank.rank).filter(|rank| !waiting.contains(rank));
    for end in ends.into_iter().chain(nobody).collect::<BTreeSet<u32>>() {
        let to_it: Vec<Edge<'_>> = edges.iter().filter(|edge| edge.to == end).copied().collect();
        finding.verdicts.push(of_end(&ranks, end, &to_it));
    }
    finding
}

/// Whether a rank can go on when what it waits for happens: its notes count as long as its process runs.
fn can_wait(rank: &RankView) -> bool {
    matches!(rank.state, State::Runs | State::Sleeps)
}

fn edges<'a>(ranks: &Ranks<'a>) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for rank in ranks.values().filter(|rank| can_wait(rank)) {
        for (wait, _) in &rank.waits {
            let (on, why) = match wait.subject {
                Subject::Lock { .. } => before_in_queue(ranks, rank, wait),
                _ => (wait.on.clone(), Why::Named),
            };
            let edge = |to| Edge { from: rank.rank, to, wait: Some(wait), why };
            edges.extend(on.into_iter().filter(|to| *to != rank.rank).map(edge));
        }
        if rank.joining {
            let missing = ranks.values().filter(|other| !other.joining);
            edges.extend(missing.map(|to| Edge {
                from: rank.rank,
                to: to.rank,
                wait: None,
                why: Why::Named,
            }));
        }
    }
    edges
}

/// Who holds a lock that a rank waits for; or who may, since it cannot say what it holds.
fn before_in_queue(ranks: &Ranks<'_>, own: &RankView, wait: &Wait) -> (Vec<u32>, Why) {
    let Subject::Lock { owner, window, exclusive, ticket } = wait.subject else {
        return (Vec::new(), Why::Named);
    };
    let holds = |rank: &RankView| {
        let excludes = |by: bool| exclusive || by;
        rank.held.iter().any(|h| (h.owner, h.window) == (owner, window) && excludes(h.exclusive))
    };
    let others = || ranks.values().filter(|rank| rank.rank != own.rank && rank.state != State::Ended);
    let holders: Vec<u32> = others().filter(|rank| holds(rank)).map(|rank| rank.rank).collect();
    if !holders.is_empty() {
        return (holders, Why::Holds);
    }
    let earlier: Vec<u32> = others().filter(|rank| is_before(rank, wait)).map(|rank| rank.rank).collect();
    if !earlier.is_empty() {
        return (earlier, Why::Ahead);
    }
    let silent = |rank: &&&RankView| rank.joined && !rank.answered;
    // Without a ticket of its own the rank has asked the owner for the lock.
    if ticket.is_none() && others().any(|rank| rank.rank == owner && silent(&rank)) {
        return (vec![owner], Why::Grants);
    }
    (others().filter(silent).map(|rank| rank.rank).collect(), Why::Maybe)
}

/// Whether a rank is before another in the queue of a lock.
fn is_before(rank: &RankView, wait: &Wait) -> bool {
    let Subject::Lock { owner, window, ticket: Some(own), .. } = wait.subject else { return false };
    rank.waits.iter().any(|(other, _)| match other.subject {
        Subject::Lock { owner: o, window: w, ticket: Some(ticket), .. } => {
            // Tickets begin anew after the last number.
            (o, w) == (owner, window) && (ticket.wrapping_sub(own) as i32) < 0
        }
        _ => false,
    })
}

/// The ranks that those in a collective wait for, and that are not in it.
fn absent(ranks: &Ranks<'_>) -> BTreeMap<(u64, u64), BTreeSet<u32>> {
    let mut inside: BTreeMap<(u64, u64), BTreeSet<u32>> = BTreeMap::new();
    let mut awaited = inside.clone();
    for rank in ranks.values() {
        for (wait, _) in &rank.waits {
            if let Subject::Collective { context, sequence } = wait.subject {
                inside.entry((context, sequence)).or_default().insert(rank.rank);
                awaited.entry((context, sequence)).or_default().extend(&wait.on);
            }
        }
    }
    for (collective, ranks) in &mut awaited {
        ranks.retain(|rank| !inside[collective].contains(rank));
    }
    awaited.retain(|_, ranks| !ranks.is_empty());
    awaited
}

/// The cycles of the graph, each once: those that a search from each rank meets first.
fn cycles<'a>(edges: &[Edge<'a>]) -> Vec<Vec<Edge<'a>>> {
    let mut of: BTreeMap<u32, Vec<Edge<'a>>> = BTreeMap::new();
    for edge in edges {
        of.entry(edge.from).or_default().push(*edge);
    }
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for start in of.keys() {
        let mut path: Vec<(u32, usize)> = vec![(*start, 0)];
        while let Some((rank, next)) = path.last_mut() {
            let edge = of.get(rank).and_then(|edges| edges.get(*next)).filter(|_| !done.contains(rank));
            let Some(edge) = edge else {
                done.insert(*rank);
                path.pop();
                continue;
            };
            *next += 1;
            match path.iter().position(|(rank, _)| *rank == edge.to) {
                Some(first) => {
                    found.push(path[first..].iter().map(|(rank, next)| of[rank][next - 1]).collect());
                }
                None => path.push((edge.to, 0)),
            }
        }
    }
    found
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
