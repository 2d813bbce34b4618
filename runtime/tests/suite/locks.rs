//! Locks.

use transom::{Assert, Job, LockKind, Result};

use super::{Random, neighbours};

pub fn exclusive_lock_loses_no_update(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 100;
    for window in [job.allocate::<u64>(1)?, job.create(vec![0u64; 1])?] {
        for _ in 0..ROUNDS {
            window.lock(LockKind::Exclusive, 0, |epoch| {
                let value = epoch.get_value(0, 0)?;
                epoch.put_value(0, 0, value + 1)
            })?;
        }
        job.barrier()?;
        let memory = window.reclaim()?;
        if job.rank() == 0 {
            assert_eq!(memory[0], ROUNDS * job.size() as u64);
        }
    }
    Ok(())
}

/// Writers keep two words equal; readers never see them differ.
pub fn shared_and_exclusive_locks(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(2)?;
    let mut random = Random(job.rank() as u64);
    for _ in 0..150 {
        let target = random.below(job.size());
        match random.below(3) {
            0 => window.lock(LockKind::Exclusive, target, |epoch| {
                let value = epoch.get_value(target, 0)? + 1;
                epoch.put_value(target, 0, value)?;
                epoch.flush(target)?;
                epoch.put_value(target, 1, value)
            })?,
            1 => window.lock(LockKind::Shared, target, |epoch| {
                assert_eq!(epoch.get_value(target, 1)?, epoch.get_value(target, 0)?);
                Ok(())
            })?,
            _ => window.lock_all(|epoch| {
                assert_eq!(epoch.get_value(target, 1)?, epoch.get_value(target, 0)?);
                Ok(())
            })?,
        }
    }
    window.free()
}

pub fn locks_of_several_targets(job: &Job) -> Result<()> {
    let window = job.allocate::<u32>(1)?;
    let last = job.size() - 1;
    for _ in 0..50 {
        // Always in the same order: two ranks never wait for each other.
        window.lock(LockKind::Exclusive, 0, |first| {
            first.fetch_add(0, 0, 1)?;
            if last == 0 {
                return Ok(());
            }
            window.lock(LockKind::Exclusive, last, |second| second.fetch_add(last, 0, 1).map(drop))
        })?;
    }
    job.barrier()?;
    if job.rank() == 0 || job.rank() == last {
        assert_eq!(window.local().get(0)?, 50 * job.size() as u32);
    }
    window.free()
}

pub fn explicit_epochs(job: &Job) -> Result<()> {
    let window = job.allocate::<i64>(4)?;
    let (left, right) = neighbours(job);
    let rma = window.explicit();
    rma.lock(LockKind::Exclusive, right, Assert::NONE)?;
    rma.put(right, 0, &[job.rank() as i64, 2])?;
    rma.flush(right)?;
    rma.accumulate(right, 1, transom::Sum, &[5])?;
    rma.unlock(right)?;
    job.barrier()?;
    rma.lock_all(Assert::NONE)?;
    let mut here = [0; 2];
    rma.get(job.rank(), 0, &mut here)?;
    assert_eq!(here, [left as i64, 7]);
    assert_eq!(rma.fetch_op(job.rank(), 3, transom::Sum, 4)?, 0);
    assert_eq!(rma.compare_and_swap(job.rank(), 3, 4, 9)?, 4);
    rma.unlock_all()?;
    drop(rma);
    assert_eq!(window.local().get(3)?, 9);
    window.free()
}
