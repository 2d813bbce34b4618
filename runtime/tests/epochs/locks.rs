//! Locks with NOCHECK, and windows without locks.

use transom::{Assert, Class, Job, LockKind, MemoryModel, Result, Sum, WindowOptions};

use super::class;
use super::each::each;

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
