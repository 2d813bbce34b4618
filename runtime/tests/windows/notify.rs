//! Puts that notify.

use transom::{Job, MemoryModel, Result};

use super::each::each;

/// All sizes, several numbers, every other rank an origin: what a notification tells of can be loaded at once.
pub fn sizes_and_numbers(job: &Job) -> Result<()> {
    const LARGEST: usize = (1 << 20) / 8;
    let (rank, size) = (job.rank(), job.size());
    each(job, LARGEST * (size - 1), |window| {
        for (number, len) in [(3, 0), (u64::MAX, 1), (0, 2048), (9, LARGEST)] {
            // The memory is that of the number before.
            job.barrier()?;
            if rank > 0 {
                let data: Vec<u64> = (0..len).map(|i| (i * rank) as u64 + number / 2).collect();
                window.lock_all(|epoch| epoch.put_notify(0, LARGEST * (rank - 1), &data, number))?;
                continue;
            }
            window.wait_notifications(number, (size - 1) as u64)?;
            for origin in 1..size {
                let mut data = vec![0; len];
                window.local().read(LARGEST * (origin - 1), &mut data)?;
                assert!(data.iter().enumerate().all(|(i, x)| *x == (i * origin) as u64 + number / 2));
            }
            assert!(!window.test_notifications(number, 1)?, "all were taken");
            assert!(window.test_notifications(number, 0)?);
        }
        job.barrier()
    })
}

/// Numbers are counted apart, and may be awaited in another order than they come; a part of them, too.
pub fn numbers_are_apart(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    each(job, 4, |window| {
        window.lock_all(|epoch| {
            for number in 0..4 {
                for _ in 0..=number {
                    let value = (rank as u64) * 10 + number;
                    epoch.put_value(right, number as usize, value)?;
                    epoch.flush(right)?;
                    epoch.put_notify(right, 0, &[], number)?;
                }
            }
            Ok(())
        })?;
        for number in (0..4u64).rev() {
            (0..=number).try_for_each(|_| window.wait_notifications(number, 1))?;
            assert_eq!(window.local().get(number as usize)?, left as u64 * 10 + number);
        }
        job.barrier()
    })
}

/// In the separate model the wait for a notification brings the data to the private copy, and nothing else does.
pub fn wait_refreshes(job: &Job) -> Result<()> {
    let pair = job.size().min(2);
    each(job, 1, |window| {
        if pair == 2 && job.rank() == 0 {
            window.lock_all(|epoch| epoch.put_notify(1, 0, &[8], 1))?;
        }
        job.barrier()?;
        if pair == 2 && job.rank() == 1 {
            if window.model() == MemoryModel::Separate {
                assert_eq!(window.local().get(0)?, 0);
            }
            window.wait_notifications(1, 1)?;
            assert_eq!(window.local().get(0)?, 8);
        }
        job.barrier()
    })
}
