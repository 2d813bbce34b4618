//! Rules 1 to 4: when an operation is complete at the origin and at the target.

use transom::{Job, LockKind, Result, Sum, Window};

use super::setting::{HOWS, Pair, access, each, public};

const LEN: usize = 1000;

/// Rule 1: after complete, fence and unlock the origin's buffers may be reused, and hold what was got.
pub fn rule_1(job: &Job) -> Result<()> {
    let pair = Pair::of(job);
    each(job, 2 * LEN, |window| {
        for (round, how) in (1..).zip(HOWS) {
            window.local().write(LEN, &[round * 10; LEN])?;
            window.sync()?;
            job.barrier()?;
            let mut origin = vec![round; LEN];
            let mut result = vec![0; LEN];
            access(window, pair, how, |epoch| {
                epoch.put(pair.b, 0, &origin)?;
                epoch.get(pair.b, LEN, &mut result)
            })?;
            origin.fill(u64::MAX);
            assert!(!pair.is_a() || result == [round * 10; LEN], "{how:?}");
            job.barrier()?;
            window.sync()?;
            if pair.is_b() {
                assert_eq!(window.local().to_vec()?[..LEN], [round; LEN], "{how:?}");
            }
            job.barrier()?;
        }
        Ok(())
    })
}

/// Rule 2: what an origin completes by a fence is complete at the target by the matching fence.
pub fn rule_2(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    each(job, LEN, |window| {
        for round in 1..=10u64 {
            let data = vec![round; LEN - 1];
            window.fence(|epoch| {
                epoch.put((rank + 1) % size, 1, &data)?;
                (0..size).try_for_each(|target| epoch.accumulate(target, 0, Sum, &[round]))
            })?;
            // No other call: the fence was enough.
            let now = window.local().to_vec()?;
            assert_eq!(now[1..], data);
            assert_eq!(now[0], (1..=round).sum::<u64>() * size as u64);
        }
        Ok(())
    })
}

/// Rule 3: what an origin completes by complete is complete at the target by the matching wait.
pub fn rule_3(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let others: Vec<usize> = (1..size).collect();
    each(job, size * 100, |window| {
        for round in 1..=10u64 {
            if rank == 0 {
                window.expose(&others, |_| Ok(()))?;
                let now = window.local().to_vec()?;
                assert!(now[100..].iter().all(|element| *element == round));
                assert_eq!(now[0], (1..=round).sum::<u64>() * (size - 1) as u64);
                continue;
            }
            let data = [round; 100];
            window.start(&[0], |epoch| {
                epoch.put(0, rank * 100, &data)?;
                epoch.accumulate(0, 0, Sum, &[round])
            })?;
        }
        Ok(())
    })
}

/// Rule 4: unlock completes at the target, which makes no call: a third rank reads the public copy.
pub fn rule_4(job: &Job) -> Result<()> {
    if job.size() < 2 {
        return Ok(());
    }
    each(job, 2, |window| {
        let signals = job.allocate::<u64>(1)?;
        for round in 1..=5 {
            unlock_while_the_target_computes(job, window, &signals, round)?;
        }
        signals.free()
    })
}

fn unlock_while_the_target_computes(
    job: &Job,
    window: &Window<u64>,
    signals: &Window<u64>,
    round: u64,
) -> Result<()> {
    let (origin, target) = (0, 1);
    let reader = if job.size() > 2 { 2 } else { origin };
    job.barrier()?;
    if job.rank() == origin {
        window.lock(LockKind::Exclusive, target, |epoch| {
            epoch.put_value(target, 0, round)?;
            epoch.accumulate(target, 1, Sum, &[round])
        })?;
        signals.lock_all(|epoch| epoch.put_notify(reader, 0, &[], round))?;
    }
    if job.rank() == reader {
        signals.wait_notifications(round, 1)?;
        assert_eq!(public(window, target, 0)?, round);
        assert_eq!(public(window, target, 1)?, (1..=round).sum::<u64>());
        signals.lock_all(|epoch| epoch.put_value(target, 0, round))?;
    }
    if job.rank() == target {
        // It only loads, until the reader has read.
        while signals.local().get(0)? != round {
            std::thread::yield_now();
        }
    }
    job.barrier()
}
