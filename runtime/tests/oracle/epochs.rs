//! A round's epoch, at one rank.

use transom::{Assert, Job, LockKind, Result, Window};

use super::calls::{Calls, Lent};
use super::program::{Epoch, Round};
use super::run::Run;
use super::window::Cell;

/// The buffers of a rank's operations, taken when their turn comes.
pub type Slots<'env, T> = Vec<Option<Lent<'env, T>>>;

/// Whom a rank posts to and whom it starts to.
struct Groups {
    origins: Vec<usize>,
    post: Assert,
    targets: Vec<usize>,
    start: Assert,
}

impl<T: Cell> Run<'_, T> {
    /// Opens the round's epoch, does this rank's operations in it and closes it.
    pub fn epoch<'env>(&mut self, round: &'env Round, mut slots: Slots<'env, T>) -> Result<()> {
        let slots = &mut slots;
        match &round.epoch {
            Epoch::Fence { before, after, explicit } => {
                self.fenced(round, slots, (before[self.rank], after[self.rank]), *explicit)
            }
            Epoch::LockAll { nocheck, explicit } => self.lock_all(round, slots, *nocheck, *explicit),
            Epoch::Locks { locks, nested, explicit } => {
                self.locked(round, slots, &locks[self.rank], (*nested, *explicit))
            }
            Epoch::Pscw { access, posts, nocheck, explicit } => {
                let ranks = 0..self.program.ranks;
                let origins: Vec<usize> = ranks.clone().filter(|origin| access[*origin][self.rank]).collect();
                let targets: Vec<usize> = ranks.filter(|target| access[self.rank][*target]).collect();
                let start = if *nocheck { Assert::NOCHECK } else { Assert::NONE };
                let groups = Groups { origins, post: posts[self.rank], targets, start };
                self.matched(round, slots, &groups, *explicit)
            }
        }
    }

    fn fenced<'env>(
        &mut self,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        (before, after): (Assert, Assert),
        explicit: bool,
    ) -> Result<()> {
        let windows = self.windows;
        let window = windows.of(round);
        if !explicit {
            return window.fence_with(before, after, |epoch| self.all(&epoch, round, slots, None));
        }
        let rma = window.explicit();
        rma.fence(before)?;
        self.all(&&rma, round, slots, None)?;
        rma.fence(after)
    }

    fn lock_all<'env>(
        &mut self,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        nocheck: bool,
        explicit: bool,
    ) -> Result<()> {
        let windows = self.windows;
        let window = windows.of(round);
        let assert = if nocheck { Assert::NOCHECK } else { Assert::NONE };
        if !explicit {
            return window.lock_all_with(assert, |epoch| self.all(&epoch, round, slots, None));
        }
        let rma = window.explicit();
        rma.lock_all(assert)?;
        self.all(&&rma, round, slots, None)?;
        rma.unlock_all()
    }

    /// Locks one target after the other, or all of them at once in the order of ranks.
    fn locked<'env>(
        &mut self,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        locks: &[(LockKind, Assert)],
        (nested, explicit): (bool, bool),
    ) -> Result<()> {
        let windows = self.windows;
        let window = windows.of(round);
        let mine = &round.operations[self.rank];
        let targets: Vec<usize> =
            (0..self.program.ranks).filter(|t| mine.iter().any(|o| o.target == Some(*t))).collect();
        let rma = window.explicit();
        if nested {
            targets.iter().try_for_each(|target| rma.lock(locks[*target].0, *target, locks[*target].1))?;
            self.all(&&rma, round, slots, None)?;
            return targets.iter().try_for_each(|target| rma.unlock(*target));
        }
        for target in targets {
            let (kind, assert) = locks[target];
            if explicit {
                rma.lock(kind, target, assert)?;
                self.all(&&rma, round, slots, Some(target))?;
                rma.unlock(target)?;
            } else {
                window
                    .lock_with(kind, target, assert, |epoch| self.all(&epoch, round, slots, Some(target)))?;
            }
        }
        Ok(())
    }

    fn matched<'env>(
        &mut self,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        groups: &Groups,
        explicit: bool,
    ) -> Result<()> {
        let windows = self.windows;
        let window = windows.of(round);
        if explicit {
            return self.post_by_calls(window, round, slots, groups);
        }
        let Groups { origins, post, targets, start } = groups;
        let job = self.job;
        let mut access = || -> Result<()> {
            posted(job, *start)?;
            if targets.is_empty() {
                return self.loads(round, slots);
            }
            window.start_with(targets, *start, |epoch| self.all(&epoch, round, slots, None))
        };
        if origins.is_empty() { access() } else { window.expose_with(origins, *post, |_| access()) }
    }

    fn post_by_calls<'env>(
        &mut self,
        window: &Window<T>,
        round: &'env Round,
        slots: &mut Slots<'env, T>,
        Groups { origins, post, targets, start }: &Groups,
    ) -> Result<()> {
        let rma = window.explicit();
        if !origins.is_empty() {
            rma.post(origins, *post)?;
        }
        posted(self.job, *start)?;
        if targets.is_empty() {
            self.loads(round, slots)?;
        } else {
            rma.start(targets, *start)?;
            self.all(&&rma, round, slots, None)?;
            rma.complete()?;
        }
        if origins.is_empty() {
            return Ok(());
        }
        if round.number.is_multiple_of(2) {
            return rma.wait();
        }
        while !rma.test()? {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Loads and stores of a rank without an access epoch.
    fn loads<'env>(&mut self, round: &'env Round, slots: &mut Slots<'env, T>) -> Result<()> {
        self.all(&(), round, slots, None)
    }
}

/// Where posts are not awaited they must have been before.
fn posted(job: &Job, start: Assert) -> Result<()> {
    if start.has(Assert::NOCHECK) { job.barrier() } else { Ok(()) }
}

/// No epoch: nothing is called.
impl<'env, T: Cell> Calls<'env, T> for () {
    fn call(&self, _: Lent<'env, T>, _: super::calls::Goal) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: usize, _: super::program::Verb) -> Result<()> {
        Ok(())
    }
}
