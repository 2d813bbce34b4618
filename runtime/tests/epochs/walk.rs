//! A random walk over all calls: each fails exactly when the model says so, with the class that it says.

use transom::{Assert, Explicit, Job, LockKind, Result, Sum};

use super::each::each;
use super::model::{Call, Model, Outcome};
use super::random::Random;

const PHASES: u64 = 12;
const STEPS: usize = 60;

pub fn random_orders_of_calls(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    each(job, size + 1, |window| {
        // One generator for this rank's calls, and one that is the same everywhere for the collective ones.
        let (mut own, mut common) = (Random(rank as u64 + 1), Random(99));
        let mut walker = Walker { rma: window.explicit(), model: Model::new(rank), added: vec![0; size] };
        for _ in 0..PHASES {
            for _ in 0..STEPS {
                walker.step(some_call(&mut own, size))?;
            }
            while let Some(call) = walker.model.next_to_close() {
                walker.step(call)?;
            }
            walker.fence_together(job, &mut common)?;
        }
        walker.rma.fence(Assert::NOSUCCEED)?;
        let expected: u64 = job.allgather(&walker.added)?.iter().map(|added| added[rank]).sum();
        assert_eq!(window.local().get(size)?, expected, "what was accumulated without an error");
        Ok(())
    })
}

fn some_call(random: &mut Random, size: usize) -> Call {
    let target = random.below(size);
    let group = random.below(3) > 0;
    match random.below(22) {
        0 | 1 => Call::Lock(target),
        2 => Call::LockWrongly(target),
        3 | 4 => Call::Unlock(target),
        5 => Call::LockAll,
        6 => Call::UnlockAll,
        7 => Call::Fence { wrong: group, no_precede: random.below(2) == 0 },
        8 => Call::Start(group),
        9 => Call::StartWrongly,
        10 => Call::Complete,
        11 => Call::Post(group),
        12 => Call::PostWrongly,
        13 => Call::Wait,
        14 => Call::Test,
        15 => Call::Flush(target),
        16 => Call::FlushAll,
        17 => Call::Put(target),
        18 => Call::PutOutside(target),
        19 => Call::Get(target),
        _ => Call::Accumulate(target),
    }
}

struct Walker<'w> {
    rma: Explicit<'w, u64>,
    model: Model,
    /// How much was added at each rank.
    added: Vec<u64>,
}

impl Walker<'_> {
    fn step(&mut self, call: Call) -> Result<()> {
        let before = self.model.clone();
        let outcome = self.model.call(call);
        let result = match outcome {
            Outcome::Waits => return Ok(()),
            Outcome::Tested(_) => self.rma.test().map(Outcome::Tested),
            _ => self.call(call).map(|()| Outcome::Done),
        };
        let result = result.unwrap_or_else(|error| Outcome::Fails(error.class()));
        assert_eq!(result, outcome, "{call:?} in {before:?}");
        if let (Call::Accumulate(target), Outcome::Done) = (call, outcome) {
            self.added[target] += 1;
        }
        Ok(())
    }

    fn call(&self, call: Call) -> Result<()> {
        let (rma, me, size) = (&self.rma, self.model.rank(), self.added.len());
        let group = |some: bool| if some { vec![me] } else { Vec::new() };
        match call {
            // Shared: ranks that hold several exclusive locks wait for each other.
            Call::Lock(target) => rma.lock(LockKind::Shared, target, Assert::NONE),
            Call::LockWrongly(target) => rma.lock(LockKind::Exclusive, target, Assert::NOPUT),
            Call::Unlock(target) => rma.unlock(target),
            Call::LockAll => rma.lock_all(Assert::NONE),
            Call::UnlockAll => rma.unlock_all(),
            Call::Fence { wrong, no_precede } => {
                let wrong = if wrong { Assert::NOCHECK } else { Assert::NONE };
                rma.fence(wrong | if no_precede { Assert::NOPRECEDE } else { Assert::NONE })
            }
            Call::Start(some) => rma.start(&group(some), Assert::NONE),
            Call::StartWrongly => rma.start(&[me], Assert::NOSUCCEED),
            Call::Complete => rma.complete(),
            Call::Post(some) => rma.post(&group(some), Assert::NONE),
            Call::PostWrongly => rma.post(&[me], Assert::NOPRECEDE),
            Call::Wait => rma.wait(),
            Call::Test => rma.test().map(drop),
            Call::Flush(target) => rma.flush(target).and_then(|()| rma.flush_local(target)),
            Call::FlushAll => rma.flush_all().and_then(|()| rma.flush_local_all()),
            Call::Put(target) => rma.put(target, me, &[1]),
            Call::PutOutside(target) => rma.put(target, size + 1, &[1]),
            Call::Get(target) => rma.get(target, me, &mut [0]),
            Call::Accumulate(target) => rma.accumulate(target, size, Sum, &[1]),
        }
    }

    /// A fence of all ranks, with assertions that hold.
    fn fence_together(&mut self, job: &Job, common: &mut Random) -> Result<()> {
        let used = job.allgather(&[u8::from(self.model.in_use())])?.concat().contains(&1);
        let mut assert = [Assert::NONE, Assert::NOSTORE][common.below(2)];
        if common.below(2) == 0 && !used {
            assert = assert | Assert::NOPRECEDE;
        }
        let succeed = common.below(4) > 0;
        if !succeed {
            assert = assert | Assert::NOSUCCEED;
        }
        self.rma.fence(assert)?;
        self.model.fenced(succeed);
        Ok(())
    }
}
