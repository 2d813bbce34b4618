//! Random programs against a sequential model, over each transport.
//!
//! `TRANSOM_TEST_PROGRAMS` is their number, `TRANSOM_TEST_SEED` the first one's seed: with `TRANSOM_TEST_PROGRAMS=1` only
//! that one runs. A program that fails is shrunk, and printed with its seed. A transport is chosen by environment
//! variable, so all run in processes of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "oracle/child.rs"]
mod child;
#[path = "oracle/cut.rs"]
mod cut;
#[path = "common/verbs.rs"]
mod devices;
#[path = "oracle/mod.rs"]
mod programs;
#[path = "oracle/shrink.rs"]
mod shrink;

use std::collections::BTreeMap;
use std::time::Instant;

use transom::{DataType, ReduceOp, reduce_valid};

use child::{Failure, Setting};
use cut::Cut;

/// Programs of all transports together.
const PROGRAMS: u64 = 1000;

/// Does nothing unless it is the child.
#[test]
fn child() {
    child::work();
}

/// Runs programs; one that fails is shrunk, and described.
fn campaign(
    setting: &Setting,
    programs: u64,
) -> Result<(), (String, Option<Box<programs::program::Program>>)> {
    let first = programs::first_seed();
    println!("{}: {programs} programs, seeds from {first} on", setting.transport);
    let start = Instant::now();
    for ranks in 2..5 {
        let Some(Failure { seed, what }) = setting.run((first, programs), ranks, 1, &Cut::default()) else {
            continue;
        };
        let transport = setting.transport;
        let again = format!("TRANSOM_TEST_SEED={seed} TRANSOM_TEST_PROGRAMS=1");
        let found = format!("{transport}: the program of {again} fails: {what}");
        println!("{found}");
        return Err(match shrink::shrink(setting, seed) {
            Some((program, failure)) => (
                format!("{found}\nshrunk to\n{program}\nwhich fails: {}", failure.what),
                Some(Box::new(program)),
            ),
            None => (format!("{found}\nIt does not fail when it is run alone."), None),
        });
    }
    println!("{}: {programs} programs in {:?}", setting.transport, start.elapsed());
    Ok(())
}

fn programs_over(transport: &'static str, share: u64) {
    let all = std::env::var("TRANSOM_TEST_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(PROGRAMS);
    let setting = Setting { transport, fault: None, deadline: 60 };
    if let Err((failed, _)) = campaign(&setting, (all * share / 100).max(1)) {
        panic!("{failed}");
    }
}

#[test]
fn programs_over_shm() {
    programs_over("shm", 80);
}

#[test]
fn programs_over_ofi() {
    programs_over("ofi", 20);
}

#[test]
fn programs_over_tcp() {
    programs_over("tcp", 20);
}

/// Half as many again, where there is a device.
#[test]
fn programs_over_verbs() {
    if devices::devices().is_some() {
        programs_over("verbs", 10);
    }
}

/// The model gets an operation wrong: what is found is shrunk to that operation.
#[test]
fn failures_are_shrunk_to_a_few_operations() {
    for fault in ["Bxor", "MinLoc"] {
        let setting = Setting { transport: "shm", fault: Some(fault), deadline: 60 };
        let (failed, program) = campaign(&setting, 600).unwrap_err();
        println!("{failed}");
        let program = program.unwrap();
        let operations = program.rounds.iter().flat_map(|round| round.operations.iter().flatten()).count();
        assert!((1..=3).contains(&operations), "{operations} operations are left:\n{failed}");
    }
}

/// The generator makes what it should: every verb, every operation on every type, every kind of window and epoch.
#[test]
fn programs_are_of_all_kinds() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut see = |what: String| *seen.entry(what).or_default() += 1;
    for seed in programs::first_seed()..programs::first_seed() + 3000 {
        let program = programs::generate::program(seed, child::ranks_of(seed));
        see(format!("{:?} {}", program.kind, program.separate));
        for round in &program.rounds {
            let epoch = format!("{:?}", round.epoch);
            see(format!("{} {}", epoch.split(' ').next().unwrap(), round.epoch.is_explicit()));
            for operation in round.operations.iter().flatten() {
                let verb = format!("{:?}", operation.verb);
                see(format!("{} {}", verb.split('(').next().unwrap(), operation.typed));
                let element = operation.there.elements().first().map(|(_, ty)| *ty);
                if let (Some(op), Some(ty)) = (operation.verb.reduces(), element) {
                    see(format!("{op:?} on {ty:?}"));
                    see(format!("{ty:?} misaligned {}", !operation.at.is_multiple_of(ty.size())));
                }
            }
        }
    }
    println!("{seen:#?}");
    for ty in DataType::ALL {
        for op in ReduceOp::ALL.into_iter().filter(|op| reduce_valid(*op, ty)) {
            assert!(seen.contains_key(&format!("{op:?} on {ty:?}")), "no {op:?} on {ty:?}");
        }
    }
    for what in [
        "Dynamic true",
        "Shared false",
        "Pscw true",
        "Fence true",
        "Locks false",
        "PutNotify true",
        "Load true",
    ] {
        assert!(seen.contains_key(what), "no {what}");
    }
}
