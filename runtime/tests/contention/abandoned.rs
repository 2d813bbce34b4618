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
            let programs: [&dyn Fn(u64) -> Result<()>; 3] = [
                &|step| hold(job, &window, target, &steps, step),
                &|step| give_up(job, &window, target, kinds[0], &steps, step),
                &|step| come_later(job, &window, target, kinds[1], &steps, step),
            ];
            let place = match job.rank() {
                0 => 0,
                1 => 1,
                rank if rank + 1 == job.size() => 2,
                _ => 3,
            };
            if let Some(program) = programs.get(place) {
                program(step)?;
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

fn hold(job: &Job, window: &Window<u64>, target: usize, steps: &Window<u64>, step: u64) -> Result<()> {
    window.lock(LockKind::Exclusive, target, |epoch| {
        epoch.put_value(target, 0, step)?;
        say(job, steps, step + 1)?;
        hear(steps, step + 2)
    })
}

fn give_up(
    job: &Job,
    window: &Window<u64>,
    target: usize,
    kind: LockKind,
    steps: &Window<u64>,
    step: u64,
) -> Result<()> {
    hear(steps, step + 1)?;
    let given_up = window.lock(kind, target, |_| Ok(()));
    assert_eq!(given_up.unwrap_err().class(), Class::Timeout);
    say(job, steps, step + 2)?;
    hear(steps, step + 3)?;
    window.lock(LockKind::Exclusive, target, |epoch| {
        assert_eq!(epoch.get_value(target, 0)?, step + 1);
        Ok(())
    })?;
    say(job, steps, step + 4)
}

fn come_later(
    job: &Job,
    window: &Window<u64>,
    target: usize,
    kind: LockKind,
    steps: &Window<u64>,
    step: u64,
) -> Result<()> {
    hear(steps, step + 2)?;
    window.lock(kind, target, |epoch| epoch.get_value(target, 0).map(drop))?;
    window.lock(LockKind::Exclusive, target, |epoch| epoch.put_value(target, 0, step + 1))?;
    say(job, steps, step + 3)
}
