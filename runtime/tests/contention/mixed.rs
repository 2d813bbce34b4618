//! Shared, exclusive and lock_all at random.

use std::time::{Duration, Instant};

use transom::{Class, Epoch, Job, LockKind, Result, Sum, Window};

use super::Random;

/// Two words that are equal whenever no exclusive lock is held.
const LEFT: usize = 0;
const RIGHT: usize = 1;
/// Ranks inside, by kind of lock: writers, readers.
const WRITERS: usize = 2;
const READERS: usize = 3;
/// Updated by accumulates in shared epochs, too.
const SUM: usize = 4;
const WORDS: usize = 5;

/// Everybody locks windows of everybody, in all ways, and sees what the locks promise.
pub fn mixed_locks(job: &Job, time: Duration) -> Result<()> {
    let windows = [job.allocate::<u64>(WORDS)?, job.create(vec![0u64; WORDS])?];
    let mut random = Random(job.rank() as u64);
    // What this rank has added to each target's sum, by window.
    let mut added = vec![vec![0u64; job.size()]; windows.len()];
    let mut epochs = 0u64;
    job.barrier()?;
    let start = Instant::now();
    while start.elapsed() < time {
        let which = random.below(windows.len());
        // Half of the epochs are to one target.
        let target = if random.below(2) == 0 { 0 } else { random.below(job.size()) };
        match random.below(4) {
            0 => write(&windows[which], target)?,
            1 => windows[which].lock(LockKind::Shared, target, |epoch| read(epoch, target))?,
            2 => windows[which].lock_all(|epoch| {
                // In the order of the ranks: nobody waits in a circle.
                let last = job.size().min(target + 3);
                (target..last).try_for_each(|target| read(epoch, target))
            })?,
            _ => early_end(&windows[which], target)?,
        }
        match random.below(4) {
            0 => continue,
            1 => windows[which].lock_all(|epoch| epoch.accumulate(target, SUM, Sum, &[3]))?,
            _ => windows[which].lock(LockKind::Shared, target, |epoch| {
                epoch.accumulate(target, SUM, Sum, &[1])?;
                epoch.flush(target)?;
                epoch.fetch_add(target, SUM, 2).map(drop)
            })?,
        }
        added[which][target] += 3;
        epochs += 1;
    }
    check_sums(job, &windows, &added)?;
    println!("rank {}: {epochs} epochs in {:?}", job.rank(), start.elapsed());
    windows.into_iter().try_for_each(Window::free)
}

fn check_sums(job: &Job, windows: &[Window<u64>], added: &[Vec<u64>]) -> Result<()> {
    for (window, added) in windows.iter().zip(added) {
        let sums = job.allreduce(Sum, added)?;
        window.lock(LockKind::Shared, job.rank(), |epoch| {
            assert_eq!(epoch.get_value(job.rank(), SUM)?, sums[job.rank()], "an accumulate is lost");
            Ok(())
        })?;
    }
    job.barrier()
}

/// Alone at the target: nobody else is inside, and the two words differ meanwhile.
fn write(window: &Window<u64>, target: usize) -> Result<()> {
    window.lock(LockKind::Exclusive, target, |epoch| {
        assert_eq!(epoch.fetch_add(target, WRITERS, 1)?, 0, "two writers");
        assert_eq!(epoch.get_value(target, READERS)?, 0, "a writer beside readers");
        let value = epoch.get_value(target, LEFT)?;
        assert_eq!(epoch.get_value(target, RIGHT)?, value, "half of a write");
        epoch.put_value(target, LEFT, value + 1)?;
        epoch.flush(target)?;
        epoch.put_value(target, RIGHT, value + 1)?;
        assert_eq!(epoch.fetch_add(target, WRITERS, u64::MAX)?, 1);
        Ok(())
    })
}

fn read(epoch: &Epoch<'_, '_, u64>, target: usize) -> Result<()> {
    epoch.fetch_add(target, READERS, 1)?;
    assert_eq!(epoch.fetch_add(target, WRITERS, 0)?, 0, "a reader beside a writer");
    assert_eq!(epoch.get_value(target, LEFT)?, epoch.get_value(target, RIGHT)?, "half of a write");
    epoch.fetch_add(target, READERS, u64::MAX).map(drop)
}

/// An error ends the epoch early, and the lock with it.
fn early_end(window: &Window<u64>, target: usize) -> Result<()> {
    let ended = window.lock(LockKind::Exclusive, target, |epoch| epoch.put_value(target, WORDS, 1));
    assert_eq!(ended.unwrap_err().class(), Class::RmaRange);
    Ok(())
}
