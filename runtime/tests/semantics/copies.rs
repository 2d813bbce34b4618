//! Rules 5 and 6: when an update of one copy becomes visible in the other. In the separate memory model it does so at these
//! calls and, as the programs see, not before.

use transom::{Assert, Explicit, Job, LockKind, Result, Window, WindowOptions};

use super::setting::{Pair, assert_obsolete, each, public};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Post,
    Wait,
    Fence,
    Lock,
    LockAll,
    Unlock,
    UnlockAll,
    Sync,
}

/// Checks each call twice; in round n the old value is n - 1, the new one n.
fn with_each(
    job: &Job,
    calls: [Call; 5],
    check: fn(&Job, &Window<u64>, Call, u64) -> Result<()>,
) -> Result<()> {
    each(job, 1, |window| {
        (1..).zip(calls.into_iter().chain(calls)).try_for_each(|(new, call)| check(job, window, call, new))
    })
}

/// Rule 5: what the owner stored becomes visible in the public copy by its post, fence, unlock, unlock_all or sync.
pub fn rule_5(job: &Job) -> Result<()> {
    with_each(job, [Call::Post, Call::Fence, Call::Unlock, Call::UnlockAll, Call::Sync], published_by)
}

fn published_by(job: &Job, window: &Window<u64>, call: Call, new: u64) -> Result<()> {
    let pair = Pair::of(job);
    let rma = window.explicit();
    if pair.is_b() {
        match call {
            Call::Unlock => rma.lock(LockKind::Shared, pair.b, Assert::NONE)?,
            Call::UnlockAll => rma.lock_all(Assert::NONE)?,
            _ => {}
        }
        window.local().set(0, new)?;
    }
    job.barrier()?;
    if pair.is_a() {
        assert_obsolete(window, public(window, pair.b, 0)?, new - 1, new);
    }
    job.barrier()?;
    match call {
        Call::Fence => rma.fence(Assert::NONE)?,
        Call::Post if pair.is_b() => rma.post(&[pair.a], Assert::NONE)?,
        Call::Unlock if pair.is_b() => rma.unlock(pair.b)?,
        Call::UnlockAll if pair.is_b() => rma.unlock_all()?,
        Call::Sync if pair.is_b() => window.sync()?,
        _ => {}
    }
    job.barrier()?;
    if pair.is_a() {
        assert_eq!(get_after(window, &rma, pair, call)?, new, "{call:?}");
    }
    match call {
        Call::Fence => rma.fence(Assert::NOSUCCEED)?,
        Call::Post if pair.is_b() => rma.wait()?,
        _ => {}
    }
    job.barrier()
}

/// What A gets, in an epoch that goes with `call`.
fn get_after(window: &Window<u64>, rma: &Explicit<'_, u64>, pair: Pair, call: Call) -> Result<u64> {
    let mut got = [0];
    match call {
        Call::Fence => rma.get(pair.b, 0, &mut got)?,
        Call::Post => {
            rma.start(&[pair.b], Assert::NONE)?;
            rma.get(pair.b, 0, &mut got)?;
            rma.complete()?;
        }
        _ => got = [public(window, pair.b, 0)?],
    }
    Ok(got[0])
}

/// Rule 6: what others put becomes visible to the owner's loads by its wait, fence, lock, lock_all or sync.
pub fn rule_6(job: &Job) -> Result<()> {
    with_each(job, [Call::Wait, Call::Fence, Call::Lock, Call::LockAll, Call::Sync], refreshed_by)
}

fn refreshed_by(job: &Job, window: &Window<u64>, call: Call, new: u64) -> Result<()> {
    let pair = Pair::of(job);
    let rma = window.explicit();
    match call {
        Call::Fence => rma.fence(Assert::NOPRECEDE)?,
        Call::Wait if pair.is_b() => rma.post(&[pair.a], Assert::NONE)?,
        _ => {}
    }
    // The fence is over everywhere: what follows it cannot be seen by it.
    job.barrier()?;
    if pair.is_a() {
        match call {
            Call::Fence => rma.put(pair.b, 0, &[new])?,
            Call::Wait => {
                rma.start(&[pair.b], Assert::NONE)?;
                rma.put(pair.b, 0, &[new])?;
                rma.complete()?;
            }
            _ => window.lock(LockKind::Exclusive, pair.b, |epoch| epoch.put_value(pair.b, 0, new))?,
        }
    }
    job.barrier()?;
    if pair.is_b() {
        assert_obsolete(window, window.local().get(0)?, new - 1, new);
    }
    match call {
        Call::Fence => rma.fence(Assert::NOSUCCEED)?,
        Call::Wait if pair.is_b() => rma.wait()?,
        Call::Lock if pair.is_b() => rma.lock(LockKind::Shared, pair.b, Assert::NONE)?,
        Call::LockAll if pair.is_b() => rma.lock_all(Assert::NONE)?,
        Call::Sync if pair.is_b() => window.sync()?,
        _ => {}
    }
    if pair.is_b() {
        assert_eq!(window.local().get(0)?, new, "{call:?}");
    }
    match call {
        Call::Lock if pair.is_b() => rma.unlock(pair.b)?,
        Call::LockAll if pair.is_b() => rma.unlock_all()?,
        _ => {}
    }
    job.barrier()
}

/// After rule 6: an update of win1 is visible in the public copy of win2, which overlaps it, after fence(win1) and then
/// fence(win2).
pub fn overlapping_windows(job: &Job) -> Result<()> {
    let pair = Pair::of(job);
    each(job, 4, |win1| {
        let win2 = win1.overlapping(1..4, &WindowOptions::default().model(win1.model()))?;
        for new in 1..=4 {
            win1.fence(|epoch| if pair.is_a() { epoch.put_value(pair.b, 2, new) } else { Ok(()) })?;
            if pair.is_b() {
                assert_eq!((win1.local().get(2)?, win2.local().get(1)?), (new, new));
            }
            job.barrier()?;
            if pair.is_a() {
                assert_eq!(public(win1, pair.b, 2)?, new);
                assert_obsolete(&win2, public(&win2, pair.b, 1)?, new - 1, new);
            }
            job.barrier()?;
            win2.explicit().fence(Assert::NOPRECEDE)?;
            job.barrier()?;
            if pair.is_a() {
                assert_eq!(public(&win2, pair.b, 1)?, new);
            }
            job.barrier()?;
        }
        win2.free()
    })
}
