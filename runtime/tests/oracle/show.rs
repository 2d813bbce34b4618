//! Programs in a readable form.

use std::fmt;

use super::program::{Operation, Program};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {} ranks: {:?}, {}, ", self.seed, self.ranks, self.kind, model(self))?;
        write!(f, "a window of {:?}", self.word)?;
        writeln!(f, ", bytes {:?}, units {:?}", self.regions, self.units)?;
        if let Some(second) = &self.second {
            writeln!(f, "  a second one over bytes {second:?}")?;
        }
        if !self.hints.is_empty() {
            writeln!(f, "  hints {:?}", self.hints)?;
        }
        for round in &self.rounds {
            writeln!(f, "round {}: {:?}", round.number, round.epoch)?;
            if round.second {
                writeln!(f, "  through the second window")?;
            }
            for (rank, stores) in round.stores.iter().enumerate() {
                for store in stores {
                    let (id, region, at) = (store.id, store.region, store.at);
                    writeln!(f, "  rank {rank} #{id} Store, {region}+{at}: {}", Bytes(&store.bytes))?;
                }
            }
            for (rank, operations) in round.operations.iter().enumerate() {
                operations.iter().try_for_each(|operation| writeln!(f, "  rank {rank} {operation}"))?;
            }
        }
        Ok(())
    }
}

fn model(program: &Program) -> &'static str {
    if program.separate { "separate" } else { "unified" }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {:?}", self.id, self.verb)?;
        match self.target {
            Some(target) => write!(f, " at rank {target}")?,
            None => write!(f, " at the null rank")?,
        }
        if self.verb.is_flush() {
            return Ok(());
        }
        write!(f, ", {}+{}: {} of {:?}", self.region, self.at, self.there.count, self.there.recipe)?;
        if !self.compare.is_empty() {
            write!(f, ", if it is {}", Bytes(&self.compare))?;
        }
        if self.from.count > 0 {
            write!(f, ", from {} of {:?} in {}", self.from.count, self.from.recipe, Bytes(&self.data))?;
        }
        if self.room > 0 {
            write!(f, ", to {} of {:?} in {} bytes", self.to.count, self.to.recipe, self.room)?;
        }
        if self.typed { f.write_str(" (typed)") } else { Ok(()) }
    }
}

/// The first of some bytes.
struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        self.0.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > SHOWN { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}
