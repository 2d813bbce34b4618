//! Runs a program at one rank, and compares.

use transom::{Job, NULL_RANK, Result};
use zerocopy::IntoBytes;

use super::calls::{Buffers, Calls, Goal};
use super::epochs::Slots;
use super::model::{self, Expected, Memory, UNTOUCHED};
use super::order::Order;
use super::program::{Epoch, Operation, Program, Round, Verb, Word};
use super::window::{Cell, Windows, words};

/// Runs a program. Returns what was wrong, if anything was anywhere, on all ranks.
pub fn program(job: &Job, program: &Program, expected: &Expected) -> Result<Option<String>> {
    match program.word {
        Word::U8 => typed::<u8>(job, program, expected),
        Word::U16 => typed::<u16>(job, program, expected),
        Word::I32 => typed::<i32>(job, program, expected),
        Word::I64 => typed::<i64>(job, program, expected),
    }
}

fn typed<T: Cell>(job: &Job, program: &Program, expected: &Expected) -> Result<Option<String>> {
    let windows = Windows::<T>::make(job, program)?;
    let rank = job.rank();
    let mut before = program.memory();
    for (round, after) in program.rounds.iter().zip(&expected.after) {
        let mut run = Run { job, program, windows: &windows, rank, wrong: Vec::new() };
        run.round(round, expected, &before, after)?;
        let wrong = std::mem::take(&mut run.wrong);
        // All agree that something is wrong, and the next round's stores wait for all comparisons.
        let wrongs = job.allgather(wrong.join("\n").as_bytes())?;
        if let Some(wrong) = wrongs.iter().find(|wrong| !wrong.is_empty()) {
            windows.finish(None)?;
            return Ok(Some(format!("round {}: {}", round.number, String::from_utf8_lossy(wrong))));
        }
        before.clone_from(after);
    }
    windows.finish(Some(&before))
}

/// One rank's part of a program.
pub struct Run<'a, T> {
    pub job: &'a Job,
    pub program: &'a Program,
    pub windows: &'a Windows<'a, T>,
    pub rank: usize,
    /// What was found to be wrong in this round.
    wrong: Vec<String>,
}

impl<T: Cell> Run<'_, T> {
    fn round(&mut self, round: &Round, expected: &Expected, before: &Memory, after: &Memory) -> Result<()> {
        for store in &round.stores[self.rank] {
            self.windows.store(store.region, store.at, &store.bytes)?;
        }
        if round.sync {
            self.windows.sync()?;
        }
        self.job.barrier()?;
        let operations = &round.operations[self.rank];
        let mut buffers: Vec<_> = operations.iter().map(buffers::<T>).collect::<Result<_>>()?;
        let slots = operations.iter().zip(&mut buffers).map(|(o, buffer)| Some(buffer.lend(o))).collect();
        self.epoch(round, slots)?;
        self.notifications(round, after)?;
        for (operation, buffer) in operations.iter().zip(&buffers) {
            self.compare_fetched(operation, buffer, expected);
        }
        self.job.barrier()?;
        self.compare_stale(round, before)?;
        if !round.epoch.is_active() || self.is_idle(round) {
            self.windows.sync()?;
        }
        self.compare_memory(after)
    }

    /// This rank's operations, or those to one target.
    pub fn all<'env>(
        &mut self,
        calls: &impl Calls<'env, T>,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        only: Option<usize>,
    ) -> Result<()> {
        let mut order = Order::new(self.program);
        for (operation, slot) in round.operations[self.rank].iter().zip(slots) {
            if only.is_some() && only != operation.target {
                continue;
            }
            let Some(lent) = slot.take() else { continue };
            if operation.verb.is_local() {
                self.by_hand(lent.fetched(), operation)?;
                continue;
            }
            let target = operation.target.unwrap_or(NULL_RANK);
            if operation.verb.is_flush() {
                calls.flush(target, operation.verb)?;
            } else {
                if order.conflicts(operation) {
                    calls.flush(target, Verb::Flush)?;
                }
                calls
                    .call(lent, Goal { target, displacement: self.windows.displacement(round, operation) })?;
            }
            order.add(operation);
        }
        Ok(())
    }

    /// A load or a store.
    fn by_hand(&self, fetched: &mut [T], operation: &Operation) -> Result<()> {
        let at = operation.at / size_of::<T>();
        self.windows.local(operation.region, |local| match (operation.verb, fetched) {
            (Verb::Load, [one]) => local.get(at).map(|value| *one = value),
            (Verb::Load, fetched) => local.read(at, fetched),
            _ => local.write(at, &words::<T>(&operation.data)),
        })
    }

    /// Waits for the puts that notify, and looks at what they have put.
    fn notifications(&mut self, round: &Round, after: &Memory) -> Result<()> {
        let notified = |o: &&Operation| o.target == Some(self.rank) && matches!(o.verb, Verb::PutNotify(_));
        let puts: Vec<&Operation> = round.operations.iter().flatten().filter(notified).collect();
        let window = self.windows.of(round);
        for put in &puts {
            let Verb::PutNotify(number) = put.verb else { continue };
            if put.id.is_multiple_of(2) {
                window.wait_notifications(number, 1)?;
            } else {
                while !window.test_notifications(number, 1)? {
                    std::thread::yield_now();
                }
            }
        }
        for put in puts {
            let place = |o: &Operation| (o.at + o.there.span().0, o.at + o.there.span().1);
            let (start, end) = place(put);
            let again = |o: &Operation| {
                let (first, last) = place(o);
                o.id > put.id
                    && o.target == put.target
                    && o.region == put.region
                    && first < end
                    && start < last
            };
            if round.operations.iter().flatten().any(again) {
                continue;
            }
            let now = self.windows.load(put.region)?;
            if now[start..end] != after[self.rank][put.region][start..end] {
                self.wrong
                    .push(format!("rank {}: notified of #{}, but its data is not there", self.rank, put.id));
            }
        }
        Ok(())
    }

    fn compare_fetched(&mut self, operation: &Operation, buffers: &Buffers<T>, expected: &Expected) {
        let Some(expected) = expected.fetched.get(&operation.id) else { return };
        let fetched = if operation.typed { buffers.fetched_words.as_bytes() } else { &buffers.fetched };
        if fetched != expected {
            let (rank, id) = (self.rank, operation.id);
            self.wrong.push(format!("rank {rank}: #{id} fetched\n  {fetched:x?}, not\n  {expected:x?}"));
        }
    }

    /// Whether nothing in the round brings this rank's copies together.
    fn is_idle(&self, round: &Round) -> bool {
        match &round.epoch {
            Epoch::Pscw { access, .. } => access.iter().all(|targets| !targets[self.rank]),
            Epoch::Locks { .. } => {
                let notified =
                    |o: &Operation| matches!(o.verb, Verb::PutNotify(_)) && o.target == Some(self.rank);
                round.operations[self.rank].iter().all(|o| o.target.is_none())
                    && !round.operations.iter().flatten().any(notified)
            }
            _ => false,
        }
    }

    /// In the separate memory model others' puts are not in the private copy yet.
    fn compare_stale(&mut self, round: &Round, before: &Memory) -> Result<()> {
        if !self.program.separate || !self.is_idle(round) {
            return Ok(());
        }
        let mut memory = before.clone();
        model::stores(round, &mut memory);
        self.compare_memory(&memory)
    }

    fn compare_memory(&mut self, expected: &Memory) -> Result<()> {
        for (region, expected) in expected[self.rank].iter().enumerate() {
            let now = self.windows.load(region)?;
            let Some(first) = now.iter().zip(expected).position(|(now, expected)| now != expected) else {
                continue;
            };
            let end = (first + 32).min(now.len());
            let (rank, now, expected) = (self.rank, &now[first..end], &expected[first..end]);
            self.wrong.push(format!(
                "rank {rank}: region {region} from byte {first} on is\n  {now:x?}, not\n  {expected:x?}"
            ));
        }
        Ok(())
    }
}

fn buffers<T: Cell>(operation: &Operation) -> Result<Buffers<T>> {
    let fetched = vec![UNTOUCHED; operation.room];
    Ok(Buffers {
        words: if operation.typed { words(&operation.data) } else { Vec::new() },
        fetched_words: if operation.typed { words(&fetched) } else { Vec::new() },
        fetched,
        from: operation.from.recipe.build()?,
        to: operation.to.recipe.build()?,
        there: operation.there.recipe.build()?,
    })
}
