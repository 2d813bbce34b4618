//! Dynamic windows: memory attached and taken away while others access.

use transom::{Class, Job, MemoryModel, Result, Sum, Window, WindowOptions};

/// Runs `program` with a dynamic window of each memory model.
fn each<T: transom::Element>(job: &Job, program: impl Fn(&Window<T>) -> Result<()>) -> Result<()> {
    for model in [MemoryModel::Unified, MemoryModel::Separate] {
        let window = job.dynamic_with(&WindowOptions::default().model(model))?;
        program(&window)?;
        window.free()?;
    }
    Ok(())
}

/// Everybody's address, by rank.
fn addresses(job: &Job, own: usize) -> Result<Vec<usize>> {
    Ok(job.allgather(&[own])?.concat())
}

/// Regions that start and end anywhere, some of them on one page, to which others put and from which they get.
pub fn regions_on_one_page(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let right = (rank + 1) % size;
    each::<u8>(job, |window| {
        // Vectors of 5 and 11 bytes share pages and cache lines, and are not aligned.
        let own: Vec<usize> =
            (0..40).map(|i| window.attach(vec![0; [5, 11][i % 2]])).collect::<Result<_>>()?;
        assert!(own.iter().zip(&own[1..]).any(|(a, b)| a / 4096 == b / 4096), "two regions on one page");
        let there = &job.allgather(&own)?[right];
        window.lock_all(|epoch| {
            for (i, address) in there.iter().enumerate() {
                epoch.put_copy(right, address + 1, &[i as u8, 200, rank as u8, 7])?;
                epoch.flush(right)?;
                assert_eq!(epoch.get_value(right, address + 1)?, i as u8);
                // The region ends here.
                assert_eq!(epoch.put_value(right, address + 11, 1).is_ok(), region_at(there, address + 11));
            }
            Ok(())
        })?;
        job.barrier()?;
        window.sync()?;
        let left = (rank + size - 1) % size;
        for (i, address) in own.into_iter().enumerate() {
            let read = window.with_attached(address, |memory| memory.to_vec())?;
            assert_eq!(read[1..4], [i as u8, 200, left as u8]);
            window.detach(address)?;
        }
        job.barrier()
    })
}

/// Whether an attached region of the list holds this byte.
fn region_at(regions: &[usize], byte: usize) -> bool {
    let inside = |(i, start): (usize, &usize)| (*start..*start + [5, 11][i % 2]).contains(&byte);
    regions.iter().enumerate().any(inside)
}

/// 10,000 regions at once, each accessed by the other rank.
pub fn ten_thousand_regions(job: &Job) -> Result<()> {
    const REGIONS: usize = 10_000;
    let other = 1 - job.rank();
    let window = job.dynamic::<u64>()?;
    let own: Vec<usize> = (0..REGIONS).map(|i| window.attach(vec![i as u64; 2])).collect::<Result<_>>()?;
    let there = &job.allgather(&own)?[other];
    window.lock_all(|epoch| {
        for (i, address) in there.iter().enumerate() {
            assert_eq!(epoch.get_value(other, *address)?, i as u64);
            epoch.put_value(other, address + 8, (i * 3) as u64)?;
        }
        Ok(())
    })?;
    job.barrier()?;
    for (i, address) in own.into_iter().enumerate() {
        assert_eq!(window.detach(address)?, [i as u64, (i * 3) as u64]);
    }
    window.free()
}

/// After a detach an access fails; memory attached there again, at the same address, is reached.
pub fn detach_and_attach_again(job: &Job) -> Result<()> {
    let right = (job.rank() + 1) % job.size();
    each::<u64>(job, |window| {
        let mut memory = vec![job.rank() as u64; 600];
        let at = memory.as_ptr() as usize;
        for round in 1..=5 {
            let own = window.attach(memory)?;
            assert_eq!(own, at, "a vector is attached where it is");
            let there = addresses(job, own)?[right];
            window.lock_all(|epoch| epoch.put_value(right, there + 8 * 599, round))?;
            job.barrier()?;
            memory = window.detach(own)?;
            assert_eq!(memory[599], round);
            job.barrier()?;
            window.lock_all(|epoch| {
                let errors = [
                    epoch.put_value(right, there, 1).unwrap_err(),
                    epoch.get_value(right, there + 8 * 599).unwrap_err(),
                    epoch.fetch_add(right, there, 1).unwrap_err(),
                ];
                let wanted = format!("rank {right} has detached the 4800 bytes at address {there:#x}");
                for error in errors {
                    assert_eq!(error.class(), Class::RmaRange);
                    assert!(error.to_string().contains(&wanted), "{error}");
                }
                let never = epoch.put_value(right, there + 8 * 600, 1).unwrap_err().to_string();
                assert!(never.contains("attach it there first"), "{never}");
                Ok(())
            })?;
            job.barrier()?;
        }
        Ok(())
    })
}

/// Rank 0 attaches and detaches while the others access another region of its; then accumulates on all.
pub fn attach_while_others_access(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 100;
    let others = (job.size() - 1) as u64;
    each::<u64>(job, |window| {
        let own = window.attach(vec![0; 20_000])?;
        let there = addresses(job, own)?[0];
        if job.rank() == 0 {
            for _ in 0..ROUNDS {
                let regions: Vec<usize> =
                    (1..9).map(|len| window.attach(vec![3; len])).collect::<Result<_>>()?;
                for address in regions {
                    assert!(window.detach(address)?.iter().all(|element| *element == 3));
                }
            }
        } else {
            let ones = vec![1; 20_000 - 1];
            window.lock_all(|epoch| {
                for _ in 0..ROUNDS {
                    epoch.fetch_op(0, there, Sum, 1)?;
                }
                epoch.accumulate(0, there + 8, Sum, &ones)
            })?;
        }
        job.barrier()?;
        let memory = window.detach(own)?;
        if job.rank() == 0 {
            assert_eq!(memory[0], ROUNDS * others);
            assert!(memory[1..].iter().all(|element| *element == others));
        }
        job.barrier()
    })
}

/// In the separate model attached memory has two copies, too, reconciled by the same calls.
pub fn copies_of_attached_memory(job: &Job) -> Result<()> {
    if job.size() < 2 {
        return Ok(());
    }
    each::<u64>(job, |window| {
        let own = window.attach(vec![0; 2])?;
        let there = addresses(job, own)?[1];
        let load = |at: usize| window.with_attached(own, |memory| memory.get(at));
        let separate = window.model() == MemoryModel::Separate;
        if job.rank() == 0 {
            window.lock_all(|epoch| epoch.put_value(1, there, 5))?;
        }
        job.barrier()?;
        if job.rank() == 1 {
            assert_eq!(load(0)?, if separate { 0 } else { 5 });
            window.sync()?;
            assert_eq!(load(0)?, 5);
            window.with_attached(own, |memory| memory.set(1, 6))?;
        }
        job.barrier()?;
        let get = || window.lock_all(|epoch| epoch.get_value(1, there + 8));
        if job.rank() == 0 {
            assert_eq!(get()?, if separate { 0 } else { 6 });
        }
        job.barrier()?;
        window.sync()?;
        job.barrier()?;
        if job.rank() == 0 {
            assert_eq!(get()?, 6);
        }
        job.barrier()
    })
}
