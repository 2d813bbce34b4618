//! A rank gives up waiting for a lock: those behind it get it all the same.

use std::time::{Duration, Instant};

use transom::{Class, Job, LockKind, Max, Result, Window};

/// Nothing here takes that long beside the deadline.
const LIMIT: Duration = Duration::from_secs(30);

/// Rank 0 holds the lock of each rank in turn, rank 1 gives up by TRANSOM_DEADLINE, then the last rank and rank 1 again
/// get it. `_time` is that of the deadline.
pub fn abandoned_locks(job: &Job, _time: Duration) -> Result<()> {
    let steps = job.allocate::<u64>(1)?;
    let mut step = 0;
    for window in [job.allocate::<u64>(1)?, job.create(vec![0u64; 1])?] {
        for target in 0..job.size() {
            let kinds =
                if target % 2 == 0 { [LockKind::Exclusive, LockKind::Shared] } else { [LockKind::Shared; 2] };
            let turn = Turn { job, window: &window, target, steps: &steps, step };
            let programs: [&dyn Fn() -> Result<()>; 3] =
                [&|| turn.hold(), &|| turn.give_up(kinds[0]), &|| turn.come_later(kinds[1])];
            let place = match job.rank() {
                0 => 0,
                1 => 1,
                rank if rank + 1 == job.size() => 2,
                _ => 3,
            };
            if let Some(program) = programs.get(place) {
                program()?;
            }
            step += 4;
            hear(&steps, step)?;
        }
        job.barrier()?;
        window.free()?;
    }
    steps.free()
}

/// Tells everybody which step has been reached. Whoever is slow at that takes nobody back to an earlier one.
fn say(job: &Job, steps: &Window<u64>, step: u64) -> Result<()> {
    steps.lock_all(|epoch| (0..job.size()).try_for_each(|rank| epoch.accumulate(rank, 0, Max, &[step])))
}

/// Waits for a step, without a call that has a deadline.
fn hear(steps: &Window<u64>, step: u64) -> Result<()> {
    let start = Instant::now();
    while steps.local().get(0)? < step {
        assert!(start.elapsed() < LIMIT, "step {step} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The lock of one rank, with the steps that its holders agree on.
struct Turn<'a> {
    job: &'a Job,
    window: &'a Window<u64>,
    target: usize,
    steps: &'a Window<u64>,
    /// The step before the first.
    step: u64,
}

impl Turn<'_> {
    fn say(&self, step: u64) -> Result<()> {
        say(self.job, self.steps, self.step + step)
    }

    fn hear(&self, step: u64) -> Result<()> {
        hear(self.steps, self.step + step)
    }

    fn hold(&self) -> Result<()> {
        self.window.lock(LockKind::Exclusive, self.target, |epoch| {
            epoch.put_value(self.target, 0, self.step)?;
            // The lock is held from here on at the latest.
            epoch.flush(self.target)?;
            self.say(1)?;
            self.hear(2)
        })
    }

    fn give_up(&self, kind: LockKind) -> Result<()> {
        self.hear(1)?;
        let given_up = self.window.lock(kind, self.target, |epoch| epoch.put_value(self.target, 0, u64::MAX));
        assert_eq!(given_up.unwrap_err().class(), Class::Timeout);
        self.say(2)?;
        self.hear(3)?;
        self.window.lock(LockKind::Exclusive, self.target, |epoch| {
            assert_eq!(epoch.get_value(self.target, 0)?, self.step + 1);
            Ok(())
        })?;
        self.say(4)
    }

    fn come_later(&self, kind: LockKind) -> Result<()> {
        self.hear(2)?;
        let value = self.window.lock(kind, self.target, |epoch| epoch.get_value(self.target, 0))?;
        // Of another target the holder may release the lock before it hears that rank 1 has given up.
        assert!(self.target != 0 || value == self.step, "an operation of a rank that has given up: {value}");
        self.window
            .lock(LockKind::Exclusive, self.target, |epoch| epoch.put_value(self.target, 0, self.step + 1))?;
        self.say(3)
    }
}
