//! Who may do what where in a round.

use std::ops::Range;

use transom::{DataType, ReduceOp};

use super::program::{Epoch, Program, Store};
use super::{Random, fill};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// One origin does what it likes.
    One(usize),
    /// All do this one operation, or none.
    All(ReduceOp),
    /// The rank whose memory it is, by loads and stores.
    Local,
}

/// A part of a rank's memory.
#[derive(Debug, Clone)]
pub struct Zone {
    pub rank: usize,
    pub region: usize,
    pub start: usize,
    pub end: usize,
    pub owner: Owner,
    /// Elements with which arithmetic is exact are stored there, from this byte on.
    pub lattice: Option<(DataType, usize)>,
}

impl Zone {
    pub fn is_for(&self, origin: usize, epoch: &Epoch) -> bool {
        match self.owner {
            Owner::One(owner) => owner == origin,
            Owner::All(_) => epoch.covers(origin, self.rank),
            Owner::Local => self.rank == origin,
        }
    }
}

/// Bytes of a rank's region that the round's window covers.
pub fn window_range(program: &Program, second: bool, rank: usize, region: usize) -> Range<usize> {
    match &program.second {
        Some(parts) if second => parts[rank].clone(),
        _ => 0..program.regions[rank][region],
    }
}

/// A round's zones, and what their owners store there before.
pub fn make(
    random: &mut Random,
    program: &Program,
    second: bool,
    epoch: &Epoch,
    ids: &mut usize,
) -> (Vec<Zone>, Vec<Vec<Store>>) {
    let (mut zones, mut stores) = (Vec::new(), vec![Vec::new(); program.ranks]);
    for (rank, stores) in stores.iter_mut().enumerate() {
        for region in 0..program.regions[rank].len() {
            let range = window_range(program, second, rank, region);
            for part in cut(random, range) {
                let Some(zone) = zone(random, program, epoch, rank, region, part) else { continue };
                if let Some(store) = store(random, &zone, ids) {
                    stores.push(store);
                }
                zones.push(zone);
            }
        }
    }
    (zones, stores)
}

/// The range in a few parts, at any byte.
fn cut(random: &mut Random, range: Range<usize>) -> Vec<Range<usize>> {
    if range.is_empty() {
        return Vec::new();
    }
    let mut cuts: Vec<usize> =
        (0..random.below(4)).map(|_| range.start + random.below(range.len())).collect();
    cuts.extend([range.start, range.end]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

fn zone(
    random: &mut Random,
    program: &Program,
    epoch: &Epoch,
    rank: usize,
    region: usize,
    part: Range<usize>,
) -> Option<Zone> {
    let origins: Vec<usize> = (0..program.ranks).filter(|origin| epoch.covers(*origin, rank)).collect();
    let lattice = |random: &mut Random, ty: DataType| {
        let spare = part.len() - ty.size().min(part.len());
        (part.len() >= ty.size()).then(|| (ty, part.start + random.below(ty.size().min(spare + 1))))
    };
    let (owner, lattice) = match random.below(8) {
        0 => (Owner::Local, None),
        1 | 2 => loop {
            let (op, ty) = fill::commutative(random);
            if let Some(lattice) = lattice(random, ty) {
                break (Owner::All(op), Some(lattice));
            }
        },
        _ if origins.is_empty() => return None,
        choice => {
            let ty = random.pick(&DataType::ALL);
            let lattice = if choice < 6 { lattice(random, ty) } else { None };
            (Owner::One(random.pick(&origins)), lattice)
        }
    };
    Some(Zone { rank, region, start: part.start, end: part.end, owner, lattice })
}

fn store(random: &mut Random, zone: &Zone, ids: &mut usize) -> Option<Store> {
    let (at, bytes) = match zone.lattice {
        Some((ty, start)) => (start, fill::zone(random, ty, zone.end - start)),
        None if random.one_in(3) => {
            let mut bytes = vec![0; zone.end - zone.start];
            fill::bytes(random, &mut bytes);
            (zone.start, bytes)
        }
        None => return None,
    };
    *ids += 1;
    Some(Store { id: *ids, region: zone.region, at, bytes })
}
