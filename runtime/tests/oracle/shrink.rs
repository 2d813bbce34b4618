//! From a program that fails to a short one that fails.

use std::collections::BTreeSet;

use crate::child::{Failure, Setting, ranks_of};
use crate::cut::Cut;
use crate::programs::generate;
use crate::programs::program::Program;

/// Attempts at most, each a process.
const ATTEMPTS: usize = 400;
/// Runs of an attempt: a failure may depend on timing.
const REPEAT: usize = 5;

struct Shrinker<'a> {
    setting: &'a Setting,
    seed: u64,
    cut: Cut,
    failure: Failure,
    left: usize,
}

/// The smallest failing part of the program that was found, and how it fails. None if it does not fail when run alone.
pub fn shrink(setting: &Setting, seed: u64) -> Option<(Program, Failure)> {
    let setting = Setting { deadline: 5, ..setting.clone() };
    let ranks = ranks_of(seed);
    let failure = setting.run((seed, 1), ranks, 4 * REPEAT, &Cut::default())?;
    let mut shrinker = Shrinker { setting: &setting, seed, cut: Cut::default(), failure, left: ATTEMPTS };
    let whole = generate::program(seed, ranks);
    for round in whole.rounds.iter().rev() {
        shrinker.attempt(|cut| cut.rounds.extend([round.number]));
    }
    shrinker.drop_items();
    for id in shrinker.items() {
        shrinker.attempt(|cut| cut.small.extend([id]));
    }
    shrinker.attempt(|cut| cut.epochs = true);
    shrinker.attempt(|cut| cut.window = true);
    shrinker.drop_items();
    for round in &whole.rounds {
        shrinker.attempt(|cut| cut.rounds.extend([round.number]));
    }
    for fewer in 1..ranks {
        if shrinker.attempt(|cut| cut.ranks = Some(fewer)) {
            break;
        }
    }
    Some((shrinker.program()?, shrinker.failure))
}

impl Shrinker<'_> {
    /// Keeps a further cut if the program still fails.
    fn attempt(&mut self, further: impl FnOnce(&mut Cut)) -> bool {
        let mut cut = self.cut.clone();
        further(&mut cut);
        if self.left == 0 || cut == self.cut {
            return false;
        }
        self.left -= 1;
        let Some(failure) = self.setting.run((self.seed, 1), ranks_of(self.seed), REPEAT, &cut) else {
            return false;
        };
        (self.cut, self.failure) = (cut, failure);
        true
    }

    fn program(&self) -> Option<Program> {
        self.cut.apply(generate::program(self.seed, ranks_of(self.seed)))
    }

    /// Operations and stores that are left.
    fn items(&self) -> Vec<usize> {
        let program = self.program();
        let rounds = program.iter().flat_map(|program| &program.rounds);
        let ids: BTreeSet<usize> = rounds
            .flat_map(|round| {
                let operations = round.operations.iter().flatten().map(|operation| operation.id);
                operations.chain(round.stores.iter().flatten().map(|store| store.id))
            })
            .collect();
        ids.into_iter().collect()
    }

    /// Drops halves, quarters, and so on, as long as the rest fails.
    fn drop_items(&mut self) {
        let mut size = self.items().len().div_ceil(2);
        while size > 0 {
            let mut progress = false;
            for some in self.items().chunks(size) {
                progress |= self.attempt(|cut| cut.dropped.extend(some));
            }
            if size == 1 && !progress {
                break;
            }
            size = (size / 2).max(1);
        }
    }
}
