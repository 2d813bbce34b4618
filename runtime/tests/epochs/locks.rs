//! Locks with operations of all kinds and with others inside, with NOCHECK, and windows without locks.

use transom::{Assert, Class, Datatype, Job, Layout, LockKind, MemoryModel, Result, Sum, WindowOptions};

use super::class;
use super::each::each;

/// Elements of a window; a put of all is more than one message takes.
const LEN: usize = 10_000;

/// NOCHECK takes no lock: it would otherwise wait for ever, since the lock is held.
pub fn without_a_check(job: &Job) -> Result<()> {
    each(job, job.size(), |window| {
        let rma = window.explicit();
        rma.lock(LockKind::Exclusive, job.rank(), Assert::NONE)?;
        job.barrier()?;
        let others = (0..job.size()).filter(|rank| *rank != job.rank());
        for target in others {
            rma.lock(LockKind::Exclusive, target, Assert::NOCHECK)?;
            rma.put(target, job.rank(), &[7])?;
            rma.unlock(target)?;
        }
        job.barrier()?;
        rma.unlock(job.rank())?;
        rma.lock_all(Assert::NOCHECK)?;
        rma.put(job.rank(), job.rank(), &[7])?;
        rma.flush_all()?;
        rma.unlock_all()?;
        window.sync()?;
        assert_eq!(window.local().to_vec()?, vec![7; job.size()]);
        window.lock_with(LockKind::Shared, 0, Assert::NOCHECK, |epoch| epoch.accumulate(0, 0, Sum, &[0]))?;
        job.barrier()
    })
}

/// The hint no_locks: locks are refused, fences and posts are not.
pub fn refused_by_a_hint(job: &Job) -> Result<()> {
    for model in [MemoryModel::Unified, MemoryModel::Separate] {
        let options = WindowOptions::default().with("no_locks", "true").model(model);
        let window = job.allocate_with::<u64>(1, &options)?;
        let error = window.lock(LockKind::Shared, 0, |_| Ok(())).unwrap_err();
        assert_eq!(error.class(), Class::RmaSync);
        assert!(error.message().contains("no_locks"), "{error}");
        assert_eq!(class(window.lock_all(|_| Ok(()))), Class::RmaSync);
        assert_eq!(class(window.explicit().lock_all(Assert::NOCHECK)), Class::RmaSync);
        window.fence(|epoch| epoch.put_value(job.rank(), 0, 3))?;
        let rma = window.explicit();
        rma.post(&[job.rank()], Assert::NONE)?;
        rma.start(&[job.rank()], Assert::NONE)?;
        assert_eq!(rma.fetch_op(job.rank(), 0, Sum, 1)?, 3);
        rma.complete()?;
        rma.wait()?;
        drop(rma);
        window.free()?;
    }
    Ok(())
}

/// Whatever comes after small operations, or instead of them, the lock is held for it, and all is done in its order.
pub fn with_operations_of_all_kinds(job: &Job) -> Result<()> {
    let right = (job.rank() + 1) % job.size();
    let number = Datatype::of::<u64>();
    let every_other = Datatype::vector(2, 1, 2, &number)?;
    each(job, LEN, |window| {
        let rma = window.explicit();
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            let in_lock = |body: &dyn Fn() -> Result<()>| -> Result<()> {
                rma.lock(kind, right, Assert::NONE)?;
                body()?;
                rma.unlock(right)
            };
            let now = || -> Result<Vec<u64>> {
                let mut now = vec![0; LEN];
                in_lock(&|| rma.put(right, 4, &[0; LEN - 4]))?;
                rma.lock(LockKind::Shared, right, Assert::NONE)?;
                rma.get(right, 0, &mut now)?;
                rma.unlock(right)?;
                Ok(now[..4].to_vec())
            };
            in_lock(&|| Ok(()))?;
            in_lock(&|| {
                rma.put(right, 0, &[1, 2, 3, 4])?;
                rma.accumulate(right, 1, Sum, &[10, 10])
            })?;
            assert_eq!(now()?, [1, 12, 13, 4]);
            in_lock(&|| {
                rma.put(right, 0, &[5])?;
                let mut seen = [0; 2];
                rma.get(right, 0, &mut seen)?;
                assert_eq!(seen, [5, 12]);
                assert_eq!(rma.fetch_op(right, 0, Sum, 1)?, 5);
                rma.put(right, 1, &[6])
            })?;
            in_lock(&|| {
                rma.accumulate(right, 0, Sum, &[1])?;
                assert_eq!(rma.compare_and_swap(right, 0, 7, 8)?, 7);
                let mut old = [0; 2];
                rma.get_accumulate(right, 0, Sum, &[1, 1], &mut old)?;
                assert_eq!(old, [8, 6]);
                Ok(())
            })?;
            assert_eq!(now()?, [9, 7, 13, 4]);
            in_lock(&|| {
                rma.put(right, 0, &[1])?;
                rma.put_as(right, 1, &[2u64, 3], Layout::new(2, &number), Layout::new(1, &every_other))?;
                rma.rput(right, 2, vec![4])?.wait().map(drop)
            })?;
            assert_eq!(now()?, [1, 2, 4, 3]);
            in_lock(&|| {
                rma.put(right, 0, &[7])?;
                rma.put(right, 0, &[8; LEN])?;
                rma.flush_all()?;
                rma.accumulate(right, 3, Sum, &[1])
            })?;
            assert_eq!(now()?, [8, 8, 8, 9]);
            in_lock(&|| {
                rma.put(right, 0, &[1])?;
                assert_eq!(class(rma.put(right, LEN, &[1])), Class::RmaRange);
                assert_eq!(class(rma.lock(kind, right, Assert::NONE)), Class::RmaSync);
                rma.accumulate(right, 0, Sum, &[1])
            })?;
            assert_eq!(now()?, [2, 8, 8, 9]);
        }
        job.barrier()
    })
}

/// A lock that another is opened under is held as long: no update under it is lost, wherever that is.
pub fn one_in_another(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 30;
    let last = job.size() - 1;
    each(job, 1, |window| {
        let rma = window.explicit();
        for _ in 0..ROUNDS {
            rma.lock(LockKind::Exclusive, 0, Assert::NONE)?;
            rma.accumulate(0, 0, Sum, &[1])?;
            if last > 0 {
                // Shared, it excludes nobody itself.
                rma.lock(LockKind::Shared, last, Assert::NONE)?;
                let mut value = [0];
                rma.get(last, 0, &mut value)?;
                rma.put(last, 0, &[value[0] + 1])?;
                rma.unlock(last)?;
            }
            rma.unlock(0)?;
        }
        job.barrier()?;
        if job.rank() == 0 || job.rank() == last {
            window.sync()?;
            assert_eq!(window.local().get(0)?, ROUNDS * job.size() as u64);
        }
        job.barrier()
    })
}
