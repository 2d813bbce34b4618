//! Hangs and progress.

use std::sync::Barrier;

use transom::{Assert, Job, LockKind, Result, Sum, Window};

use super::all::put_to_all;
use super::random::Random;

const NONE: Assert = Assert::NONE;

/// Rank 0 computes: it only loads, until all others have said by `signal` that they are done.
fn compute_until_told(
    job: &Job,
    signals: &Window<u64>,
    round: u64,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let done = round * (job.size() - 1) as u64;
    if job.rank() > 0 {
        work()?;
        return signals.lock_all(|epoch| epoch.accumulate(0, 0, Sum, &[1]));
    }
    while signals.local().get(0)? < done {
        std::hint::spin_loop();
        std::thread::yield_now();
    }
    Ok(())
}

/// Both kinds of windows: mapped memory, and the user's.
fn windows(job: &Job, len: usize) -> Result<[Window<u64>; 2]> {
    Ok([job.allocate(len)?, job.create(vec![0; len])?])
}

pub fn spin_on_fetch_and_op(job: &Job) -> Result<()> {
    let signals = job.allocate(1)?;
    for (round, window) in (1..).zip(windows(job, 2)?) {
        compute_until_told(job, &signals, round, || {
            window.lock_all(|epoch| {
                epoch.fetch_add(0, 0, 1)?;
                // The others' additions come without rank 0's help, and without a flush.
                while epoch.fetch(0, 0)? < (job.size() - 1) as u64 {}
                // Polling by flush_local as well.
                epoch.accumulate(0, 1, Sum, &[1])?;
                epoch.flush_local(0)?;
                while epoch.get_value(0, 1)? < (job.size() - 1) as u64 {
                    epoch.flush_local(0)?;
                }
                Ok(())
            })
        })?;
        window.free()?;
    }
    signals.free()
}

pub fn flush_on_one_node(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for window in windows(job, size)? {
        let rma = window.explicit();
        rma.lock_all(NONE)?;
        for round in 1..=100 {
            for target in 0..size {
                rma.put(target, rank, &[round])?;
                rma.accumulate(target, rank, Sum, &[0])?;
                rma.flush(target)?;
                assert_eq!(rma.fetch_op(target, rank, Sum, 0)?, round);
            }
            rma.flush_all()?;
        }
        rma.unlock_all()?;
        drop(rma);
        window.free()?;
    }
    Ok(())
}

pub fn half_in_a_barrier(job: &Job) -> Result<()> {
    for window in windows(job, 1)? {
        for round in 0..20 {
            // The odd ranks wait in the barrier, then the even ones do, while the other half accesses them.
            if job.rank() % 2 == round % 2 {
                for _ in 0..5 {
                    window.lock_all(|epoch| {
                        (0..job.size()).try_for_each(|target| epoch.accumulate(target, 0, Sum, &[1]))
                    })?;
                }
            }
            job.barrier()?;
        }
        let halves = [job.size().div_ceil(2), job.size() / 2].map(|ranks| ranks as u64 * 10 * 5);
        assert_eq!(window.local().get(0)?, halves[0] + halves[1]);
        window.free()?;
    }
    Ok(())
}

/// Random modes on random targets, with as much as one lock and lock_all can do: a soak under the watchdog.
pub fn random_locks(job: &Job) -> Result<()> {
    const ROUNDS: usize = 400;
    let mut random = Random(job.rank() as u64 ^ 0xabc);
    for window in windows(job, 2)? {
        let mut added = vec![0u64; job.size()];
        for _ in 0..ROUNDS {
            let target = random.below(job.size());
            match random.below(4) {
                0 => window.lock(LockKind::Exclusive, target, |epoch| {
                    let value = epoch.get_value(target, 0)?;
                    added[target] += 1;
                    epoch.put_value(target, 0, value + 1)
                })?,
                1 => window.lock(LockKind::Shared, target, |epoch| epoch.accumulate(target, 1, Sum, &[1]))?,
                2 => window.lock(LockKind::Shared, target, |epoch| epoch.get_value(target, 0).map(drop))?,
                _ => window.lock_all(|epoch| epoch.fetch_add(target, 1, 0).map(drop))?,
            }
        }
        let expected: u64 = job.allgather(&added)?.iter().map(|added| added[job.rank()]).sum();
        assert_eq!(window.local().get(0)?, expected);
        window.free()?;
    }
    Ok(())
}

/// Rank 0 polls its window 1 and nothing else, while others need window 2 of it.
pub fn polling_one_window(job: &Job) -> Result<()> {
    let polled = job.allocate::<u64>(1)?;
    for (round, second) in (1..).zip(windows(job, 10_000)?) {
        let all = round * (job.size() - 1) as u64;
        if job.rank() == 0 {
            polled.lock_all(|epoch| {
                while epoch.fetch(0, 0)? < all {
                    epoch.flush_local(0)?;
                }
                Ok(())
            })?;
        } else {
            let ones = vec![1; 10_000];
            second.lock(LockKind::Exclusive, 0, |epoch| epoch.accumulate(0, 0, Sum, &ones))?;
            second.lock_all(|epoch| epoch.fetch_add(0, 1, 1).map(drop))?;
            polled.lock_all(|epoch| epoch.accumulate(0, 0, Sum, &[1]))?;
        }
        job.barrier()?;
        second.free()?;
    }
    polled.free()
}

/// Several threads of each rank, each with a window of its own, while rank 0's program is idle.
pub fn threads_and_windows(job: &Job) -> Result<()> {
    const THREADS: usize = 3;
    let windows: Vec<Window<u64>> = (0..THREADS).map(|_| job.allocate(2)).collect::<Result<_>>()?;
    if job.rank() > 0 {
        let together = Barrier::new(THREADS);
        let work = |window: &Window<u64>| -> Result<()> {
            together.wait();
            for _ in 0..50 {
                window.lock(LockKind::Exclusive, 0, |epoch| {
                    let value = epoch.get_value(0, 0)?;
                    epoch.put_value(0, 0, value + 1)
                })?;
                window.lock_all(|epoch| epoch.fetch_add(0, 1, 1).map(drop))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = windows.iter().map(|window| scope.spawn(move || work(window))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
    }
    job.barrier()?;
    if job.rank() == 0 {
        let expected = 50 * (job.size() - 1) as u64;
        for window in &windows {
            assert_eq!(window.local().to_vec()?, [expected; 2]);
        }
    }
    windows.into_iter().try_for_each(Window::free)
}

/// A post to more ranks than a table of 32 has slots for, by all of them at once, and empty groups.
pub fn large_groups(job: &Job) -> Result<()> {
    let window = job.allocate::<u32>(job.size())?;
    let rma = window.explicit();
    for round in 1..=2 {
        put_to_all(job, &window, round)?;
        rma.post(&[], NONE)?;
        rma.start(&[], NONE)?;
        rma.complete()?;
        rma.wait()?;
    }
    drop(rma);
    window.free()
}
