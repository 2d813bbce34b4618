//! Making operations that are allowed in a zone.

use transom::{DataType, ReduceOp, swap_valid};

use super::program::{Epoch, Operation, Program, Verb};
use super::recipe::Shape;
use super::zones::{Owner, Zone, window_range};
use super::{Random, fill};

/// What is fixed while one rank's operations of a round are made.
pub struct Place<'a> {
    pub program: &'a Program,
    pub epoch: &'a Epoch,
    pub second: bool,
    pub rank: usize,
}

impl Place<'_> {
    /// An operation in one of the zones, if it fits there.
    pub fn operation(&self, random: &mut Random, zones: &[&Zone]) -> Option<Operation> {
        if self.epoch.can_flush() && random.one_in(12) {
            return self.flush(random);
        }
        let zone = *zones.get(random.below(zones.len().max(1)))?;
        if zone.owner == Owner::Local {
            return self.local(random, zone);
        }
        let mut operation = self.kind(random, zone)?;
        self.put_there(random, &mut operation, zone)?;
        self.buffers(random, &mut operation);
        if !matches!(self.epoch, Epoch::Locks { .. }) && random.one_in(16) {
            operation.target = None;
        }
        Some(operation)
    }

    fn flush(&self, random: &mut Random) -> Option<Operation> {
        let verb =
            random.pick(&[Verb::Flush, Verb::Flush, Verb::FlushLocal, Verb::FlushAll, Verb::FlushLocalAll]);
        let targets: Vec<usize> =
            (0..self.program.ranks).filter(|target| self.epoch.covers(self.rank, *target)).collect();
        let target = *targets.get(random.below(targets.len().max(1)))?;
        Some(blank(verb, Some(target), 0))
    }

    /// A load or a store of whole elements of the window.
    fn local(&self, random: &mut Random, zone: &Zone) -> Option<Operation> {
        let size = self.program.word.size();
        let (first, end) = (zone.start.div_ceil(size), zone.end / size);
        if first >= end {
            return None;
        }
        let at = first + random.below(end - first);
        let count = 1 + random.below((end - at).min(8));
        // In the separate model stores go with nobody's puts (MPI-4.1 §12.7).
        let verb = if self.program.separate || random.one_in(2) { Verb::Load } else { Verb::Store };
        let mut operation = blank(verb, Some(self.rank), zone.region);
        operation.at = at * size;
        operation.there = Shape::row(count, self.program.word.data_type());
        operation.typed = true;
        self.buffers(random, &mut operation);
        Some(operation)
    }

    /// Verb, and elements at the target, though not yet where.
    fn kind(&self, random: &mut Random, zone: &Zone) -> Option<Operation> {
        let word = self.program.word.data_type();
        let mut ty = match zone.lattice {
            Some((ty, _)) if !random.one_in(4) => ty,
            _ if random.one_in(3) => word,
            _ => random.pick(&DataType::ALL),
        };
        let verb = match zone.owner {
            Owner::All(op) => {
                ty = zone.lattice?.0;
                let op = if random.one_in(5) { ReduceOp::NoOp } else { op };
                random.pick(&[
                    Verb::Accumulate(op),
                    Verb::Accumulate(op),
                    Verb::GetAccumulate(op),
                    Verb::FetchOp(op),
                ])
            }
            _ => self.verb(random, ty),
        };
        let mut operation = blank(verb, Some(zone.rank), zone.region);
        operation.determined = !matches!(zone.owner, Owner::All(_));
        operation.typed = matches!(verb, Verb::PutNotify(_)) || (ty == word && !random.one_in(3));
        if operation.typed {
            ty = word;
        }
        // Explicit epochs compare and swap elements of the window's type only.
        operation.typed |= verb == Verb::CompareSwap && self.epoch.is_explicit() && ty == word;
        let swappable = swap_valid(ty) && (operation.typed || !self.epoch.is_explicit());
        if verb == Verb::CompareSwap && !swappable {
            return None;
        }
        let most = ((zone.end - zone.start) / ty.size()).max(1);
        let many = if most > 256 && random.one_in(2) { most } else { most.min(8) };
        let single = matches!(verb, Verb::FetchOp(_) | Verb::CompareSwap);
        let count = if single { 1 } else { 1 + random.below(many) };
        let grain = if matches!(zone.owner, Owner::All(_)) { ty.size() } else { 1 };
        operation.there = if operation.typed || single {
            Shape::row(count, ty)
        } else if (verb.is_put() || verb.is_get()) && random.one_in(3) {
            let types: Vec<DataType> =
                (0..1 + random.below(3)).map(|_| random.pick(&DataType::ALL)).collect();
            let there = Shape::mixed(random, &types, count.min(3));
            (operation.from, operation.to) =
                (other_mixed(random, &there, &types), other_mixed(random, &there, &types));
            there
        } else {
            Shape::uniform(random, ty, count, grain)
        };
        Some(operation)
    }

    fn verb(&self, random: &mut Random, ty: DataType) -> Verb {
        let op = fill::operation(random, ty);
        match random.below(13) {
            0 => Verb::Put,
            1 | 2 => Verb::PutCopy,
            3 if !self.epoch.is_explicit() => Verb::PutNotify(random.below(3) as u64),
            4 | 5 => Verb::Get,
            6 => Verb::Read,
            7 | 8 => Verb::Accumulate(op),
            9 | 10 => Verb::GetAccumulate(op),
            11 => Verb::CompareSwap,
            _ => Verb::FetchOp(op),
        }
    }

    /// Finds a place in the zone.
    fn put_there(&self, random: &mut Random, operation: &mut Operation, zone: &Zone) -> Option<()> {
        let window = window_range(self.program, self.second, zone.rank, zone.region);
        let unit = if self.second { 1 } else { self.program.units[zone.rank] };
        let (low, high) = operation.there.span();
        // The layout's address can lie before its first byte, and before the zone.
        let first = zone.start.saturating_sub(low).max(window.start).next_multiple_of(unit);
        let last = zone.end.checked_sub(high)?;
        if first > last {
            return None;
        }
        let exact = matches!(zone.owner, Owner::All(_)) || random.one_in(2);
        let lattice = zone.lattice.filter(|_| exact);
        let element = operation.there.elements().first().map_or(0, |(offset, _)| *offset as usize);
        for _ in 0..64 {
            let at = first + unit * random.below((last - first) / unit + 1);
            let fits = |(ty, start): (DataType, usize)| {
                at + low >= start && (at + element - start).is_multiple_of(ty.size())
            };
            if lattice.is_none_or(fits) {
                operation.at = at;
                return Some(());
            }
        }
        None
    }

    /// Layouts and contents of the buffers at the origin.
    fn buffers(&self, random: &mut Random, operation: &mut Operation) {
        let elements = operation.there.elements();
        let ty = elements[0].1;
        let row = operation.typed || matches!(operation.verb, Verb::FetchOp(_) | Verb::CompareSwap);
        if row {
            (operation.from, operation.to) = (operation.there.clone(), operation.there.clone());
        } else if operation.from.count == 0 {
            operation.from = Shape::uniform(random, ty, elements.len(), 1);
            operation.to = Shape::uniform(random, ty, elements.len(), 1);
        }
        let slack = if row { 0 } else { random.below(3) };
        operation.room = if operation.verb.fetches() { operation.to.span().1 + slack } else { 0 };
        let nothing = operation.verb.is_get() || operation.verb == Verb::Load;
        if nothing || (!row && operation.verb == Verb::GetAccumulate(ReduceOp::NoOp)) {
            operation.from.count = 0;
            return;
        }
        operation.data = vec![0; operation.from.span().1 + slack];
        fill::bytes(random, &mut operation.data);
        for (at, ty) in operation.from.elements() {
            fill::element(random, ty, &mut operation.data[at as usize..at as usize + ty.size()]);
        }
    }
}

/// Another layout of the same types.
fn other_mixed(random: &mut Random, there: &Shape, types: &[DataType]) -> Shape {
    Shape::mixed(random, types, there.elements().len() / types.len())
}

fn blank(verb: Verb, target: Option<usize>, region: usize) -> Operation {
    let nothing = Shape::row(0, DataType::Byte);
    Operation {
        id: 0,
        target,
        region,
        at: 0,
        verb,
        typed: false,
        determined: true,
        there: nothing.clone(),
        from: nothing.clone(),
        to: nothing,
        data: Vec::new(),
        compare: Vec::new(),
        room: 0,
    }
}
