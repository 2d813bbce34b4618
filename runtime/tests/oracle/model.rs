//! The sequential model: what every fetch gives, and what memory holds after each round.

use std::collections::BTreeMap;

use transom::{DataType, ReduceOp};

use super::program::{Operation, Program, Round, Verb};
use super::reduce;

/// What buffers for results hold before.
pub const UNTOUCHED: u8 = 0xAA;

/// Bytes of each region, by rank.
pub type Memory = Vec<Vec<Vec<u8>>>;

/// Why a program has no defined result. Generated ones have; shrunk ones may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl From<reduce::Inexact> for Invalid {
    fn from(_: reduce::Inexact) -> Self {
        Self("a result is not exact")
    }
}

/// What a program must do.
#[derive(Debug, Default)]
pub struct Expected {
    /// Memory after each round.
    pub after: Vec<Memory>,
    /// What operations fetch, by their ids: the buffer's bytes.
    pub fetched: BTreeMap<usize, Vec<u8>>,
}

/// Runs the program on the model. With a `fault` the model computes this operation wrongly: to test the test.
pub fn expect(program: &Program, fault: Option<ReduceOp>) -> Result<Expected, Invalid> {
    let mut memory = program.memory();
    let mut expected = Expected::default();
    for round in &program.rounds {
        stores(round, &mut memory);
        for (rank, operations) in round.operations.iter().enumerate() {
            for operation in operations {
                let mut room = vec![UNTOUCHED; operation.room];
                apply(operation, rank, &mut memory, &mut room, fault)?;
                if operation.determined && operation.verb.fetches() {
                    expected.fetched.insert(operation.id, room);
                }
            }
        }
        expected.after.push(memory.clone());
    }
    Ok(expected)
}

impl Program {
    /// Memory before the first round.
    pub fn memory(&self) -> Memory {
        let region = |bytes: &usize| vec![0; *bytes];
        self.regions.iter().map(|regions| regions.iter().map(region).collect()).collect()
    }
}

pub fn stores(round: &Round, memory: &mut Memory) {
    for (rank, stores) in round.stores.iter().enumerate() {
        for store in stores {
            let region = &mut memory[rank][store.region];
            region[store.at..store.at + store.bytes.len()].copy_from_slice(&store.bytes);
        }
    }
}

/// Does an operation of `rank`; `room` is its buffer for results. Nothing is changed if it fails.
pub fn apply(
    operation: &Operation,
    rank: usize,
    memory: &mut Memory,
    room: &mut [u8],
    fault: Option<ReduceOp>,
) -> Result<(), Invalid> {
    if operation.verb.is_flush() {
        return Ok(());
    }
    let target = if operation.verb.is_local() { Some(rank) } else { operation.target };
    let Some(target) = target else {
        // Only those calls that return a value give zeros.
        if matches!(operation.verb, Verb::FetchOp(_) | Verb::CompareSwap) {
            let (_, ty) = operation.there.elements()[0];
            reduce::copy(ty, room, &vec![0; ty.size()]);
        }
        return Ok(());
    };
    let bytes = &mut memory[target][operation.region];
    let mut origin = Elements::new(operation.from.elements(), &operation.data);
    let mut results = operation.to.elements().into_iter();
    let mut updates = Vec::new();
    for (at, ty) in operation.places() {
        let now = &bytes[at..at + ty.size()];
        if operation.verb.fetches()
            && let Some((to, _)) = results.next()
        {
            let to = to as usize;
            reduce::copy(ty, &mut room[to..to + ty.size()], now);
        }
        updates.push((at, update(operation, ty, now, origin.next(), fault)?));
    }
    for (at, new) in updates {
        bytes[at..at + new.len()].copy_from_slice(&new);
    }
    Ok(())
}

/// The elements of an origin buffer.
struct Elements<'a> {
    places: std::vec::IntoIter<(i64, DataType)>,
    data: &'a [u8],
}

impl<'a> Elements<'a> {
    fn new(places: Vec<(i64, DataType)>, data: &'a [u8]) -> Self {
        Self { places: places.into_iter(), data }
    }

    fn next(&mut self) -> &'a [u8] {
        let next =
            self.places.next().and_then(|(at, ty)| self.data.get(at as usize..at as usize + ty.size()));
        next.unwrap_or_default()
    }
}

/// What an element is after an operation.
fn update(
    operation: &Operation,
    ty: DataType,
    now: &[u8],
    origin: &[u8],
    fault: Option<ReduceOp>,
) -> Result<Vec<u8>, Invalid> {
    let mut new = now.to_vec();
    match operation.verb {
        Verb::Put | Verb::PutCopy | Verb::PutNotify(_) | Verb::Store => reduce::copy(ty, &mut new, origin),
        Verb::CompareSwap if now == operation.compare => new.copy_from_slice(origin),
        verb => {
            if let Some(op) = verb.reduces() {
                reduce::apply(op, ty, &mut new, origin)?;
                if fault == Some(op) {
                    new[0] ^= 1;
                }
            }
        }
    }
    Ok(new)
}
