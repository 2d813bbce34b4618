//! Programs from seeds.

use transom::{Assert, LockKind};

use super::model::{self, Memory};
use super::operations::Place;
use super::order::Order;
use super::program::{Epoch, Kind, Operation, Program, Round, Verb, Word};
use super::{Random, fill, zones};

/// The program of a seed on so many ranks.
pub fn program(seed: u64, ranks: usize) -> Program {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ ranks as u64);
    let random = &mut random;
    let mut program = window(random, seed, ranks);
    let mut memory = program.memory();
    let mut ids = 0;
    for number in 0..1 + random.below(3) {
        let round = round(random, &program, number, &mut memory, &mut ids);
        program.rounds.push(round);
    }
    program
}

fn window(random: &mut Random, seed: u64, ranks: usize) -> Program {
    let kind = random.pick(&[
        Kind::Allocate,
        Kind::Allocate,
        Kind::Create,
        Kind::Create,
        Kind::Shared,
        Kind::Dynamic,
    ]);
    let word = random.pick(&[Word::U8, Word::U8, Word::U16, Word::I32, Word::I64]);
    let separate = kind != Kind::Shared && random.one_in(3);
    let regions: Vec<Vec<usize>> = (0..ranks).map(|_| regions(random, kind, word)).collect();
    let units = (0..ranks)
        .map(|_| match kind {
            Kind::Dynamic => 1,
            _ if random.one_in(2) => word.size(),
            _ => random.pick(&[1, 1, 2, 3, 4, 5, 8, 16]),
        })
        .collect();
    let overlaps = matches!(kind, Kind::Allocate | Kind::Create) && random.one_in(4);
    let second = overlaps.then(|| {
        let part = |regions: &Vec<usize>| {
            let words = regions[0] / word.size();
            let (a, b) = (random.below(words + 1), random.below(words + 1));
            a.min(b) * word.size()..a.max(b) * word.size()
        };
        regions.iter().map(part).collect()
    });
    let hints = hints(random, kind);
    Program { seed, ranks, kind, word, separate, hints, regions, units, second, rounds: Vec::new() }
}

/// A rank's memory: some of it is missing, and now and then some is large.
fn regions(random: &mut Random, kind: Kind, word: Word) -> Vec<usize> {
    let region = |random: &mut Random| match random.below(150) {
        0 => 9_000 + random.below(150_000),
        1..5 => 300 + random.below(2000),
        _ => 1 + random.below(250),
    };
    match kind {
        Kind::Dynamic => {
            (0..1 + random.below(3)).map(|_| region(random).next_multiple_of(word.size())).collect()
        }
        _ if random.one_in(10) => vec![0],
        _ => vec![region(random).next_multiple_of(word.size())],
    }
}

fn hints(random: &mut Random, kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut hints = Vec::new();
    if random.one_in(6) {
        hints.push(("accumulate_ordering", "none"));
    }
    if random.one_in(6) {
        hints.push(("mpi_accumulate_granularity", random.pick(&["16", "64", "4096"])));
    }
    if random.one_in(8) {
        hints.push(("no_locks", "true"));
    }
    if kind == Kind::Shared && random.one_in(2) {
        hints.push(("alloc_shared_noncontig", "true"));
    }
    hints
}

fn round(
    random: &mut Random,
    program: &Program,
    number: usize,
    memory: &mut Memory,
    ids: &mut usize,
) -> Round {
    let second = program.second.is_some() && random.one_in(2);
    let mut epoch = epoch(random, program);
    let (zones, stores) = zones::make(random, program, second, &epoch, ids);
    let mut round =
        Round { number, second, epoch: epoch.clone(), sync: true, stores, operations: Vec::new() };
    model::stores(&round, memory);
    for rank in 0..program.ranks {
        let place = Place { program, epoch: &epoch, second, rank };
        let mine: Vec<_> = zones.iter().filter(|zone| zone.is_for(rank, &epoch)).collect();
        let mut order = Order::new(program);
        let mut operations = Vec::new();
        for _ in 0..random.below(8) {
            let Some(mut operation) = place.operation(random, &mine) else { continue };
            compare_with(random, &mut operation, memory);
            if order.conflicts(&operation) && !epoch.can_flush() {
                continue;
            }
            let mut room = vec![0; operation.room];
            if model::apply(&operation, rank, memory, &mut room, None).is_ok() {
                *ids += 1;
                operation.id = *ids;
                order.add(&operation);
                operations.push(operation);
            }
        }
        round.operations.push(operations);
    }
    assertions(random, &mut epoch, &round);
    round.epoch = epoch;
    round.sync = program.second.is_some() || !round.epoch.is_active() || random.one_in(2);
    round
}

/// What a compare-and-swap compares with: what is there, half of the time.
fn compare_with(random: &mut Random, operation: &mut Operation, memory: &Memory) {
    if operation.verb != Verb::CompareSwap {
        return;
    }
    let (at, ty) = (operation.at, operation.there.elements()[0].1);
    operation.compare = match operation.target {
        Some(target) if random.one_in(2) => memory[target][operation.region][at..at + ty.size()].to_vec(),
        _ => {
            let mut bytes = vec![0; ty.size()];
            fill::element(random, ty, &mut bytes);
            bytes
        }
    };
}

fn epoch(random: &mut Random, program: &Program) -> Epoch {
    let ranks = program.ranks;
    let explicit = random.one_in(3);
    let forms = if program.hints.contains(&("no_locks", "true")) { 2 } else { 4 };
    match random.below(forms) {
        0 => Epoch::Fence { before: vec![Assert::NONE; ranks], after: vec![Assert::NONE; ranks], explicit },
        1 => {
            let access = (0..ranks).map(|_| (0..ranks).map(|_| !random.one_in(3)).collect()).collect();
            Epoch::Pscw { access, posts: vec![Assert::NONE; ranks], nocheck: random.one_in(3), explicit }
        }
        2 => Epoch::LockAll { nocheck: random.one_in(4), explicit },
        _ => {
            let kinds = [LockKind::Shared, LockKind::Exclusive];
            let mut locks: Vec<Vec<_>> = (0..ranks)
                .map(|_| (0..ranks).map(|_| (random.pick(&kinds), Assert::NONE)).collect())
                .collect();
            let spared: Vec<usize> = (0..ranks).filter(|_| random.one_in(3)).collect();
            for target in spared {
                let nocheck = random.one_in(2);
                for lock in locks.iter_mut().map(|locks| &mut locks[target]) {
                    // All locks are shared, so any of them need not be taken.
                    let assert = if nocheck && random.one_in(2) { Assert::NOCHECK } else { Assert::NONE };
                    *lock = (LockKind::Shared, assert);
                }
            }
            Epoch::Locks { locks, nested: explicit && random.one_in(2), explicit }
        }
    }
}

/// Assertions that hold.
fn assertions(random: &mut Random, epoch: &mut Epoch, round: &Round) {
    let mut some = |holds: bool, assert: Assert| {
        if holds && random.one_in(2) { assert } else { Assert::NONE }
    };
    let all = || round.operations.iter().flatten();
    let spared = |rank: usize| {
        !all().any(|o| o.target == Some(rank) && !o.verb.is_local() && !o.verb.is_get() && !o.verb.is_flush())
    };
    let stored = |rank: usize| round.operations[rank].iter().any(|o| o.verb == Verb::Store);
    match epoch {
        Epoch::Fence { before, after, .. } => {
            let (precede, succeed) = (some(true, Assert::NOPRECEDE), some(true, Assert::NOSUCCEED));
            for (rank, (before, after)) in before.iter_mut().zip(after).enumerate() {
                *before = precede
                    | some(round.stores[rank].is_empty(), Assert::NOSTORE)
                    | some(spared(rank), Assert::NOPUT);
                *after = succeed | some(!stored(rank), Assert::NOSTORE);
            }
        }
        Epoch::Pscw { posts, nocheck, .. } => {
            for (rank, post) in posts.iter_mut().enumerate() {
                *post = if *nocheck { Assert::NOCHECK } else { Assert::NONE }
                    | some(round.stores[rank].is_empty(), Assert::NOSTORE)
                    | some(spared(rank), Assert::NOPUT);
            }
        }
        _ => {}
    }
}
