//! Examples 11.11 to 11.15 of MPI-3.0 (12.11 to 12.15 of MPI-4), as they stand there.

use transom::{Assert, Explicit, Job, LockKind, Result, Window};

use super::setting::{Pair, assert_obsolete, each};

const NONE: Assert = Assert::NONE;
const X: usize = 0;
const Y: usize = 1;

fn get(rma: &Explicit<'_, u64>, rank: usize, at: usize) -> Result<u64> {
    let mut got = [0];
    rma.get(rank, at, &mut got)?;
    Ok(got[0])
}

fn get_locked(rma: &Explicit<'_, u64>, kind: LockKind, rank: usize, at: usize) -> Result<u64> {
    rma.lock(kind, rank, NONE)?;
    let got = get(rma, rank, at)?;
    rma.unlock(rank)?;
    Ok(got)
}

/// Process A puts the new value at X of B under a lock, before anything else.
fn a_puts(job: &Job, pair: Pair, rma: &Explicit<'_, u64>, new: u64) -> Result<()> {
    if pair.is_a() {
        rma.lock(LockKind::Exclusive, pair.b, NONE)?;
        rma.put(pair.b, X, &[new])?;
        rma.unlock(pair.b)?;
    }
    job.barrier()
}

/// At last, the process for which `looks` is true gets the new value at X of `rank` under a lock.
fn then_gets(job: &Job, looks: bool, rma: &Explicit<'_, u64>, rank: usize, new: u64) -> Result<()> {
    job.barrier()?;
    if looks {
        assert_eq!(get_locked(rma, LockKind::Exclusive, rank, X)?, new);
    }
    Ok(())
}

type Example = fn(&Job, Pair, &Window<u64>, &Explicit<'_, u64>, u64) -> Result<()>;

/// Runs `example` some times; in round n the old value is n - 1, the new one n, at X and at Y.
fn rounds(job: &Job, example: Example) -> Result<()> {
    each(job, 2, |window| {
        for new in 1..=4 {
            example(job, Pair::of(job), window, &window.explicit(), new)?;
            job.barrier()?;
            window.sync()?;
            job.barrier()?;
        }
        Ok(())
    })
}

/// Rule 5: a store between lock and unlock is got by others after the unlock.
pub fn example_11_11(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        if pair.is_b() {
            rma.lock(LockKind::Exclusive, pair.b, NONE)?;
            window.local().set(X, new)?;
            rma.unlock(pair.b)?;
        }
        then_gets(job, pair.is_a(), rma, pair.b, new)
    })
}

/// Rule 6: what was put under a lock is loaded between lock and unlock; without them it may be obsolete.
pub fn example_11_12(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        a_puts(job, pair, rma, new)?;
        if pair.is_b() {
            assert_obsolete(window, window.local().get(X)?, new - 1, new);
            rma.lock(LockKind::Exclusive, pair.b, NONE)?;
            assert_eq!(window.local().get(X)?, new);
            rma.unlock(pair.b)?;
        }
        Ok(())
    })
}

/// A store before a shared lock is not published by the lock, only by the unlock.
pub fn example_11_13(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        if pair.is_b() {
            window.local().set(X, new)?;
            rma.lock(LockKind::Shared, pair.b, NONE)?;
        }
        job.barrier()?;
        if pair.is_a() {
            assert_obsolete(window, get_locked(rma, LockKind::Shared, pair.b, X)?, new - 1, new);
        }
        // In the text B's unlock comes after A's, without saying how.
        job.barrier()?;
        if pair.is_b() {
            rma.unlock(pair.b)?;
        }
        job.barrier()?;
        if pair.is_a() {
            assert_eq!(get_locked(rma, LockKind::Shared, pair.b, X)?, new);
        }
        Ok(())
    })
}

/// A store while the window is posted is published neither by complete nor by wait; one before the post is. Here process A
/// has the window locations.
pub fn example_11_14(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        if pair.is_a() {
            window.local().set(Y, new)?;
            rma.post(&[pair.a, pair.b], NONE)?;
            rma.start(&[pair.a], NONE)?;
            window.local().set(X, new)?;
            rma.complete()?;
            rma.wait()?;
        }
        if pair.is_b() {
            rma.start(&[pair.a], NONE)?;
            // "The get of Y could be moved to the epoch started by start."
            assert_eq!(get(rma, pair.a, Y)?, new);
            rma.complete()?;
        }
        job.barrier()?;
        if pair.is_b() {
            rma.lock(LockKind::Exclusive, pair.a, NONE)?;
            assert_obsolete(window, get(rma, pair.a, X)?, new - 1, new);
            assert_eq!(get(rma, pair.a, Y)?, new);
            rma.unlock(pair.a)?;
        }
        Ok(())
    })
}

/// "The local store must be replaced by a local put": then B gets it, and A loads it after wait.
pub fn example_11_14_with_a_put(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        if pair.is_a() {
            rma.post(&[pair.a, pair.b], NONE)?;
            rma.start(&[pair.a], NONE)?;
            rma.put(pair.a, X, &[new])?;
            rma.complete()?;
            assert_obsolete(window, window.local().get(X)?, new - 1, new);
            rma.wait()?;
            assert_eq!(window.local().get(X)?, new);
        }
        if pair.is_b() {
            rma.start(&[pair.a], NONE)?;
            rma.complete()?;
        }
        then_gets(job, pair.is_b(), rma, pair.a, new)
    })
}

/// A put under a lock is not seen by a load between post and wait, only by one after wait, or by a get.
pub fn example_11_15(job: &Job) -> Result<()> {
    rounds(job, |job, pair, window, rma, new| {
        a_puts(job, pair, rma, new)?;
        if pair.is_b() {
            rma.post(&[pair.b], NONE)?;
            rma.start(&[pair.b], NONE)?;
            assert_obsolete(window, window.local().get(X)?, new - 1, new);
            assert_eq!(get(rma, pair.b, X)?, new);
            rma.complete()?;
            rma.wait()?;
            assert_eq!(window.local().get(X)?, new);
        }
        Ok(())
    })
}
