//! Programs of one rank each.

use transom::{Communicator, Error, Job, MemoryModel, Result, Sum, Window, WindowOptions};

const MODEL: &str = "transom_memory_model";

/// Each rank adds to every rank's part; then each finds everybody's sum in its own, which was zero.
fn use_window(comm: &Communicator, window: &Window<u64>) -> Result<()> {
    assert!(window.local().to_vec()?.iter().all(|element| *element == 0), "memory that is not zeroed");
    comm.barrier()?;
    window.lock_all(|epoch| {
        for rank in 0..comm.size() {
            if let Some(last) = window.len_at(rank).and_then(|len| len.checked_sub(1)) {
                epoch.accumulate(rank, last, Sum, &[comm.rank() as u64 + 1])?;
            }
        }
        Ok(())
    })?;
    comm.barrier()?;
    window.sync()?;
    let sum = (comm.size() * (comm.size() + 1) / 2) as u64;
    assert!(window.local().to_vec()?.last().is_none_or(|last| *last == sum));
    Ok(())
}

pub fn different_histories(job: &Job) -> Result<()> {
    // Ranks 0 and 1 have taken much, 2 and 3 little, with holes at different places.
    let half = job.split(Some(job.rank() as u32 / 2), 0)?.unwrap();
    let count = if job.rank() < 2 { 7 } else { 3 };
    let mut held = Vec::new();
    for i in 0..count {
        let window = half.allocate::<u64>(300 * (i + 1))?;
        use_window(&half, &window)?;
        if i % 2 == 0 { held.push(window) } else { window.free()? }
    }
    let separate = WindowOptions::default().model(MemoryModel::Separate);
    for (len, options) in
        [(1, None), (0, None), (700, None), (2000, Some(separate)), (job.rank() * 900, None)]
    {
        let window = job.allocate_with::<u64>(len, &options.unwrap_or_default())?;
        use_window(job, &window)?;
        if std::env::var_os("TRANSOM_HEAP").is_none()
            && len > 0
            && window.info().get(MODEL) == Some("unified")
        {
            // Those who have held nothing have agreed with those who have.
            assert!(
                (0..job.size()).all(|rank| window.len_at(rank) == Some(0) || window.base_at(rank).is_some())
            );
        }
        if window.is_symmetric() {
            let bases: Vec<_> = (0..job.size()).filter_map(|rank| window.base_at(rank)).collect();
            assert!(bases.iter().all(|base| *base == bases[0]));
        }
        // Ranks of another order, who know each other's heaps from another communicator.
        let turned = job.split(Some(0), -(job.rank() as i64))?.unwrap();
        let other = turned.allocate::<u64>(10)?;
        use_window(&turned, &other)?;
        other.free()?;
        window.free()?;
    }
    held.into_iter().try_for_each(Window::free)
}

/// Numbers that all ranks draw alike (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

pub fn any_order(job: &Job) -> Result<()> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut own = Random(job.rank() as u64 + 99);
    let half = job.split(Some(job.rank() as u32 % 2), 0)?.unwrap();
    let mut windows: Vec<(Window<u64>, u64)> = Vec::new();
    for step in 0..300u64 {
        if random.below(5) < 3 || windows.is_empty() {
            let comm: &Communicator = if random.below(2) == 0 { job } else { &half };
            let window = comm.allocate::<u64>(own.below([3, 600, 3000][random.below(3)]))?;
            use_window(comm, &window)?;
            window.local().write(0, &vec![step; window.len()])?;
            windows.push((window, step));
        } else {
            let (window, step) = windows.swap_remove(random.below(windows.len()));
            assert!(window.local().to_vec()?.iter().all(|element| *element == step), "windows overlap");
            window.free()?;
        }
    }
    for (window, step) in windows {
        assert!(window.local().to_vec()?.iter().all(|element| *element == step), "windows overlap");
        window.free()?;
    }
    Ok(())
}

pub fn dropped(job: &Job) -> Result<()> {
    let other = (job.rank() + 1) % job.size();
    for _ in 0..5 {
        let old = job.allocate::<u64>(100)?;
        old.lock_all(|epoch| epoch.put_value(other, 7, 1))?;
        job.barrier()?;
        let odd = job.rank() % 2 == 1;
        let mut kept = Some(old);
        if odd {
            // The others do not know that it is gone.
            drop(kept.take());
        }
        job.barrier()?;
        let half = job.split(Some(u32::from(odd)), 0)?.unwrap();
        let new = half.allocate::<u64>(100)?;
        if let Some(old) = &kept {
            // Too late: an error or nothing, but nowhere else.
            let _ = old.lock_all(|epoch| epoch.put_value(other, 7, 9));
        }
        job.barrier()?;
        assert!(
            new.local().to_vec()?.iter().all(|element| *element == 0),
            "a late put reached another window"
        );
        drop(kept);
        new.free()?;
    }
    Ok(())
}

pub fn overlapping(job: &Job) -> Result<()> {
    let other = (job.rank() + 1) % job.size();
    let whole = job.allocate::<u64>(512)?;
    let part = whole.overlapping(100..200, &WindowOptions::default())?;
    whole.lock_all(|epoch| epoch.put_value(other, 100, 5))?;
    job.barrier()?;
    assert_eq!(part.local().get(0)?, 5);
    whole.free()?;
    let next = job.allocate::<u64>(512)?;
    next.lock_all(|epoch| epoch.put_value(other, 100, 6))?;
    part.lock_all(|epoch| epoch.put_value(other, 1, 7))?;
    job.barrier()?;
    assert_eq!(part.local().get(0)?, 5, "another window has the place of one that is overlapped");
    assert_eq!((part.local().get(1)?, next.local().get(101)?), (7, 0));
    part.free()?;
    next.free()
}

pub fn threads(job: &Job) -> Result<()> {
    let comms = (0..3).map(|_| job.dup()).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let makers: Vec<_> = comms
            .iter()
            .map(|comm| {
                scope.spawn(|| {
                    for i in 0..30 {
                        let windows =
                            [1, 600, 5].map(|len| comm.allocate::<u64>(len * (1 + i * comm.rank() % 3)));
                        for window in windows {
                            let window = window?;
                            use_window(comm, &window)?;
                            window.free()?;
                        }
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        makers.into_iter().try_for_each(|maker| maker.join().unwrap())
    })
}
