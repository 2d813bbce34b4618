//! The target computes and makes no call: operations to it complete all the same.

use std::time::{Duration, Instant};

use transom::{Job, LockKind, Result, Sum, Window};

/// How long the target computes at most.
const TIMEOUT: Duration = Duration::from_secs(50);

pub fn passive_target_computes(job: &Job) -> Result<()> {
    target_computes(job, job.allocate::<f64>(20_000)?)
}

pub fn passive_target_computes_users_memory(job: &Job) -> Result<()> {
    target_computes(job, job.create(vec![0.0; 20_000])?)
}

fn target_computes(job: &Job, window: Window<f64>) -> Result<()> {
    if job.size() < 2 {
        return window.free();
    }
    let data = vec![1.0; 10_000];
    job.barrier()?;
    let others = (job.size() - 1) as f64;
    if job.rank() == 1 {
        // It sees in its memory that the others have finished.
        let (start, mut x) = (Instant::now(), 1.0f64);
        while window.local().get(19_999)? < others {
            x = std::hint::black_box(x * 1.000_001).min(1e9);
            assert!(start.elapsed() < TIMEOUT, "operations wait for the target");
        }
    } else {
        window.lock(LockKind::Shared, 1, |epoch| epoch.put_value(1, 10_000 + job.rank(), 3.0))?;
        window.lock_all(|epoch| {
            epoch.accumulate(1, 0, Sum, &data)?;
            epoch.flush(1)?;
            assert_eq!(epoch.get_value(1, 10_000 + job.rank())?, 3.0);
            Ok(())
        })?;
        window.lock(LockKind::Exclusive, 1, |epoch| epoch.fetch_add(1, 19_999, 1.0).map(drop))?;
    }
    job.barrier()?;
    if job.rank() == 1 {
        assert_eq!((window.local().get(5)?, window.local().get(19_999)?), (others, others));
    }
    window.free()
}
