//! What is left of a program when parts of it are taken away: still a program of the same seed.

use std::collections::BTreeSet;

use crate::programs::program::{Epoch, Kind, Operation, Program};
use crate::programs::recipe::{Recipe, Shape};

/// What is taken away from a generated program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// Operations and stores, by id.
    pub dropped: BTreeSet<usize>,
    pub rounds: BTreeSet<usize>,
    /// Operations of which only the first element is left.
    pub small: BTreeSet<usize>,
    /// All epochs are `lock_all`.
    pub epochs: bool,
    /// An allocated window without hints, in the unified model.
    pub window: bool,
    /// Ranks that are left, if not all.
    pub ranks: Option<usize>,
}

fn list(set: &BTreeSet<usize>) -> String {
    set.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

impl Cut {
    pub fn encode(&self) -> String {
        let (dropped, rounds, small) = (list(&self.dropped), list(&self.rounds), list(&self.small));
        let (epochs, window, ranks) = (self.epochs as u8, self.window as u8, self.ranks.unwrap_or(0));
        format!("{dropped};{rounds};{small};{epochs};{window};{ranks}")
    }

    pub fn decode(text: &str) -> Self {
        let parts: Vec<BTreeSet<usize>> =
            text.split(';').map(|list| list.split(',').filter_map(|n| n.parse().ok()).collect()).collect();
        let flag = |i: usize| parts[i].contains(&1);
        Self {
            dropped: parts[0].clone(),
            rounds: parts[1].clone(),
            small: parts[2].clone(),
            epochs: flag(3),
            window: flag(4),
            ranks: parts[5].first().copied().filter(|ranks| *ranks > 0),
        }
    }

    /// The rest of the program; none if it cannot be.
    pub fn apply(&self, mut program: Program) -> Option<Program> {
        program.rounds.retain(|round| !self.rounds.contains(&round.number));
        for round in &mut program.rounds {
            let stores = round.stores.iter_mut();
            stores.for_each(|stores| stores.retain(|store| !self.dropped.contains(&store.id)));
            for operations in &mut round.operations {
                operations.retain(|operation| !self.dropped.contains(&operation.id));
                operations.iter_mut().filter(|o| self.small.contains(&o.id)).for_each(shrink);
            }
            if self.epochs {
                round.epoch = Epoch::LockAll { nocheck: false, explicit: false };
                round.sync = true;
            }
        }
        if self.epochs {
            program.hints.retain(|hint| hint.0 != "no_locks");
        }
        if self.window {
            plain(&mut program)?;
        }
        if let Some(ranks) = self.ranks {
            fewer(&mut program, ranks)?;
        }
        Some(program)
    }
}

fn plain(program: &mut Program) -> Option<()> {
    if program.kind == Kind::Dynamic || program.rounds.iter().any(|round| round.second) {
        return None;
    }
    program.kind = Kind::Allocate;
    program.separate = false;
    program.hints.retain(|hint| hint.0 == "no_locks");
    program.units.fill(1);
    program.second = None;
    Some(())
}

fn fewer(program: &mut Program, ranks: usize) -> Option<()> {
    for round in &mut program.rounds {
        let mut rest = round.operations.iter().skip(ranks);
        let named = |o: &Operation| o.target.is_some_and(|target| target >= ranks);
        let spare = round.stores.iter().skip(ranks).all(Vec::is_empty);
        if !spare || !rest.all(Vec::is_empty) || round.operations.iter().flatten().any(named) {
            return None;
        }
        round.stores.truncate(ranks);
        round.operations.truncate(ranks);
    }
    program.ranks = ranks;
    program.regions.truncate(ranks);
    program.units.truncate(ranks);
    program.second.iter_mut().for_each(|parts| parts.truncate(ranks));
    Some(())
}

/// Leaves an operation's first element.
fn shrink(operation: &mut Operation) {
    let Some((at, ty)) = operation.there.elements().first().copied() else { return };
    let first = |shape: &Shape| {
        let place = shape.elements().first().map_or(0, |(at, _)| *at);
        let one = Recipe::Basic(ty);
        // A displacement is part of the layout at the origin, where there is none of the call's.
        let recipe = if place == 0 { one } else { Recipe::Hindexed(vec![(1, place)], Box::new(one)) };
        Shape { count: shape.count.min(1), recipe }
    };
    operation.at = (operation.at as i64 + at) as usize;
    operation.there = Shape::row(1, ty);
    operation.from = first(&operation.from);
    operation.to = first(&operation.to);
    if operation.typed {
        operation.data.truncate(ty.size());
        operation.room = operation.room.min(ty.size());
    }
}
