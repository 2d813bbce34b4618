//! Notification, registration, leaks.

use transom::{Class, Job, Result};

use super::resident::resident;

/// Data and notice of it in one call: the target sees all of the data when it sees the notice.
pub fn notification(job: &Job) -> Result<()> {
    const LEN: usize = 500;
    let (rank, size) = (job.rank(), job.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    for window in [job.allocate::<u64>(LEN)?, job.create(vec![0; LEN])?] {
        for round in 0..100u64 {
            let data = [round * 100 + rank as u64; LEN];
            window.lock_all(|epoch| epoch.put_notify(right, 0, &data, round))?;
            window.wait_notifications(round, 1)?;
            assert_eq!(window.local().to_vec()?, [round * 100 + left as u64; LEN]);
            // The memory may be written again: told the same way, backwards.
            window.lock_all(|epoch| epoch.put_notify(left, 0, &[], u64::MAX))?;
            window.wait_notifications(u64::MAX, 1)?;
        }
        window.free()?;
    }
    Ok(())
}

/// More than 64 regions, many of them on one page; some go, and those on the same page stay within reach.
pub fn dynamic_regions(job: &Job) -> Result<()> {
    const REGIONS: usize = 500;
    let right = (job.rank() + 1) % job.size();
    let window = job.dynamic::<u64>()?;
    for _ in 0..3 {
        let own: Vec<usize> =
            (0..REGIONS).map(|i| window.attach(vec![i as u64; 3])).collect::<Result<_>>()?;
        let there = &job.allgather(&own)?[right];
        let read = |some: &dyn Fn(usize) -> bool| {
            window.lock_all(|epoch| {
                for (i, address) in there.iter().enumerate() {
                    match epoch.get_value(right, address + 16) {
                        Ok(value) => assert!(some(i) && value == i as u64),
                        Err(error) => assert!(!some(i) && error.class() == Class::RmaRange, "{error}"),
                    }
                }
                Ok(())
            })
        };
        read(&|_| true)?;
        job.barrier()?;
        // A region and its neighbour on the page have nothing to do with each other.
        own.iter().step_by(2).try_for_each(|address| window.detach(*address).map(drop))?;
        job.barrier()?;
        read(&|i| i % 2 == 1)?;
        job.barrier()?;
        own.iter().skip(1).step_by(2).try_for_each(|address| window.detach(*address).map(drop))?;
    }
    window.free()
}

/// Creation that fails at one rank fails at all, with one error that names the rank, and the job goes on.
pub fn failure_at_one_rank(job: &Job) -> Result<()> {
    for failing in 0..job.size() {
        let len = if job.rank() == failing { 1 << 46 } else { 16 };
        for round in 0..2 {
            let error = match round {
                0 => job.allocate::<u8>(len).unwrap_err(),
                _ => job.allocate_with::<u8>(len, &separate()).unwrap_err(),
            };
            assert_eq!(error.class(), Class::NoMemory, "{error}");
            assert!(error.message().contains(&format!("rank {failing}")), "{error}");
            let texts = job.allgather(error.message().as_bytes())?;
            assert!(texts.iter().all(|text| *text == texts[0]), "all ranks see the same error");
        }
        let window = job.allocate::<u8>(1)?;
        window.fence(|epoch| epoch.put_value(failing, 0, 1))?;
        window.free()?;
    }
    Ok(())
}

fn separate() -> transom::WindowOptions {
    transom::WindowOptions::default().model(transom::MemoryModel::Separate)
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs `cycle` until pools have been used all around: libfabric's queues are rings of 20 MB, whose pages become resident
/// when they are first used. What leaks never settles, and shows in what follows.
fn settle(job: &Job, cycle: &impl Fn(usize) -> Result<()>) -> Result<()> {
    for _ in 0..50 {
        let before = resident();
        (0..1000).try_for_each(cycle)?;
        let mut flat = [u8::from(resident() < before + 16)];
        job.broadcast(0, &mut flat)?;
        if flat == [1] {
            break;
        }
    }
    job.barrier()
}

/// Makes and frees windows `times` times: neither memory nor descriptors grow.
fn create_and_free(job: &Job, times: usize) -> Result<()> {
    let right = (job.rank() + 1) % job.size();
    let cycle = |i: usize| -> Result<()> {
        let window = if i.is_multiple_of(2) { job.allocate::<u64>(512)? } else { job.create(vec![0; 512])? };
        window.lock_all(|epoch| {
            epoch.put_value(right, 511, 1)?;
            epoch.fetch_add(right, 0, 1).map(drop)
        })?;
        window.free()
    };
    settle(job, &cycle)?;
    let before = (resident(), open_files());
    job.barrier()?;
    (0..times).try_for_each(cycle)?;
    job.barrier()?;
    let after = (resident(), open_files());
    job.barrier()?;
    if job.rank() == 0 {
        eprintln!(
            "{times} windows: {} KiB and {} files before, {} and {} after",
            before.0, before.1, after.0, after.1
        );
        // A hundred bytes a window would show at 10,000; the allocator's own variation must not.
        assert!(after.0 < before.0 + 600 + times / 50, "memory grows");
        assert!(after.1 <= before.1 + 4, "descriptors grow");
    }
    Ok(())
}

pub fn ten_thousand_times(job: &Job) -> Result<()> {
    create_and_free(job, 10_000)
}

/// Every rank in turn is the only one with memory, or the only one without.
pub fn zero_size_windows(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for odd_one in 0..size {
        for len in [usize::from(rank == odd_one), usize::from(rank != odd_one), 0] {
            for window in
                [job.allocate::<u64>(len)?, job.create(vec![0; len])?, job.allocate_with(len, &separate())?]
            {
                window.fence(|epoch| {
                    for target in 0..size {
                        let room = window.len_at(target).unwrap();
                        epoch.put(target, 0, &[])?;
                        assert_eq!(epoch.accumulate(target, 0, transom::Sum, &[1]).is_ok(), room == 1);
                    }
                    Ok(())
                })?;
                assert_eq!(window.local().to_vec()?, vec![size as u64; len]);
                window.free()?;
            }
        }
    }
    Ok(())
}
