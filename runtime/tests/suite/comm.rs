//! Groups and communicators: who is where, and that nothing of one is taken for another's.

use transom::{Class, Communicator, Comparison, Group, Job, RankRange, Result, Sum};

use super::neighbours;

/// Everybody's rank in the job, by rank in `comm`.
fn members(comm: &Communicator) -> Vec<usize> {
    comm.group().job_ranks().collect()
}

/// The members agree on who they are, and talk to each other.
fn check(job: &Job, comm: &Communicator, expected: &[usize]) -> Result<()> {
    assert_eq!(members(comm), expected);
    assert_eq!(comm.size(), expected.len());
    assert_eq!(expected[comm.rank()], job.rank());
    let all: Vec<usize> = comm.allgather(&[job.rank()])?.concat();
    assert_eq!(all, expected);
    let contexts = comm.allgather(&[comm.context()])?.concat();
    assert!(contexts.iter().all(|context| *context == comm.context()));
    comm.barrier()
}

pub fn splits(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for parts in 1..=3 {
        // Descending, some ranks without a colour.
        let color = (rank % 4 != 3).then_some((rank % parts) as u32 * 1000);
        let part = job.split(color, -(rank as i64))?;
        assert_eq!(part.is_some(), color.is_some());
        if let Some(part) = &part {
            let expected: Vec<usize> =
                (0..size).rev().filter(|r| r % 4 != 3 && r % parts == rank % parts).collect();
            check(job, part, &expected)?;
            // Of a part, a part.
            let half = part.split(Some(u32::from(part.rank() < part.size() / 2)), 0)?.unwrap();
            let middle = expected.len() / 2;
            let (low, high) = expected.split_at(middle);
            check(job, &half, if part.rank() < middle { low } else { high })?;
        }
    }
    // Equal keys: in the order of ranks.
    check(job, &job.split(Some(7), 3)?.unwrap(), &(0..size).collect::<Vec<_>>())?;
    assert!(job.split(None, 0)?.is_none());
    let shared = job.split_shared()?;
    for rank in 0..size {
        let expected = rank == job.rank() || job.transport(rank).unwrap().0 == "shm";
        assert_eq!(shared.group().rank_of(rank).is_some(), expected);
    }
    shared.barrier()
}

pub fn duplicates_and_names(job: &Job) -> Result<()> {
    let all: Vec<usize> = (0..job.size()).collect();
    let first = job.dup()?;
    let second = first.dup()?;
    check(job, &first, &all)?;
    check(job, &second, &all)?;
    assert_eq!(job.compare(job), Comparison::Identical);
    assert_eq!(first.compare(&first.clone()), Comparison::Identical);
    assert_eq!(first.compare(&second), Comparison::Congruent);
    let reversed = job.split(Some(0), -(job.rank() as i64))?.unwrap();
    let expected = if job.size() > 1 { Comparison::Similar } else { Comparison::Congruent };
    assert_eq!(job.compare(&reversed), expected);
    let alone = job.split(Some(job.rank() as u32), 0)?.unwrap();
    assert_eq!(job.compare(&alone) == Comparison::Unequal, job.size() > 1);
    assert_eq!((&*job.name(), &*first.name()), ("world", ""));
    first.set_name("rows");
    assert_eq!(&*first.clone().name(), "rows");
    Ok(())
}

pub fn communicators_of_groups(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let all = job.group();
    let even = all.range_incl(&[RankRange { first: 0, last: size - 1, stride: 2 }])?;
    let odd = all.difference(&even);
    // All name the even ranks; then each the half that it is in.
    assert_eq!(job.create_communicator(&even)?.is_some(), rank % 2 == 0);
    let own = if rank % 2 == 0 { &even } else { &odd };
    let half = job.create_communicator(own)?.unwrap();
    check(job, &half, &(rank % 2..size).step_by(2).collect::<Vec<_>>())?;
    assert!(job.create_communicator(&all.incl(&[])?)?.is_none());
    // By its members alone, the last first; again and again; with tags.
    let backwards: Vec<usize> = own.job_ranks().collect::<Vec<_>>().into_iter().rev().collect();
    let backwards: Group = all.incl(&backwards)?;
    let expected: Vec<usize> = backwards.job_ranks().collect();
    let mut contexts = Vec::new();
    for round in 0..6 {
        let comm = job.create_from_group(&backwards, if round < 3 { "a" } else { "b" })?;
        check(job, &comm, &expected)?;
        contexts.push(comm.context());
    }
    contexts.dedup();
    assert_eq!(contexts.len(), 6);
    // Wrong ones, the same error everywhere.
    let other = if rank % 2 == 0 { &odd } else { &even };
    assert_eq!(job.create_from_group(other, "a").unwrap_err().class(), Class::Group);
    if size > 1 {
        let named = if rank == 0 { all.clone() } else { all.excl(&[size - 1])? };
        assert_eq!(
            job.create_communicator(&named).map(drop).map_err(|e| e.class()),
            if rank == size - 1 { Ok(()) } else { Err(Class::Group) }
        );
        let error = half.create_communicator(&all).map(drop).unwrap_err();
        assert_eq!(error.class(), Class::Group);
        assert_eq!(half.broadcast(half.size(), &mut [0]).unwrap_err().class(), Class::Rank);
    }
    Ok(())
}

/// Windows, collectives and splits of several communicators at once, in an order that differs by rank.
pub fn contexts_do_not_mix(job: &Job) -> Result<()> {
    let comms: Vec<Communicator> = (0..4).map(|_| job.dup()).collect::<Result<_>>()?;
    for round in 0..20u64 {
        std::thread::scope(|scope| {
            let threads: Vec<_> = comms
                .iter()
                .enumerate()
                .map(|(i, comm)| {
                    scope.spawn(move || -> Result<()> {
                        let mut data = [if comm.rank() == 0 { round * 10 + i as u64 } else { 0 }; 3];
                        comm.broadcast(0, &mut data)?;
                        assert_eq!(data, [round * 10 + i as u64; 3]);
                        let sum = comm.allreduce(Sum, &[i as u64])?;
                        assert_eq!(sum, [(i * comm.size()) as u64]);
                        comm.barrier()
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
    }
    Ok(())
}

/// Windows on parts of the job, whose ranks are those of the parts, while the parent's collectives go on.
pub fn windows_of_parts(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let part = job.split(Some(rank as u32 % 2), -(rank as i64))?.unwrap();
    let allocated = part.allocate::<u64>(part.size())?;
    let created = part.create(vec![0u64; part.size()])?;
    let whole = job.allocate::<u64>(size)?;
    let me = part.rank();
    for window in [allocated, created] {
        assert_eq!(window.len_at(part.size()), None);
        for target in 0..part.size() {
            window.lock_all(|epoch| {
                epoch.put_value(target, me, rank as u64 + 1)?;
                whole.lock_all(|epoch| epoch.fetch_add(neighbours(job).1, me, 1))?;
                epoch.fetch_add(target, me, 1)?;
                assert_eq!(epoch.get_value(target, me)?, rank as u64 + 2);
                let error = epoch.put_value(part.size(), 0, 1).unwrap_err();
                assert_eq!(error.class(), Class::Rank);
                Ok(())
            })?;
            window.lock(transom::LockKind::Exclusive, target, |epoch| {
                epoch.accumulate(target, me, Sum, &[10])
            })?;
        }
        job.barrier()?;
        let expected: Vec<u64> = members(&part).iter().map(|r| *r as u64 + 12).collect();
        assert_eq!(window.local().to_vec()?, expected);
        // The fences of a part at one rank, the collectives of the job at another, in any order.
        for round in 0..10u64 {
            let right = (me + 1) % part.size();
            window.fence(|epoch| epoch.put_value(right, 0, round))?;
            if rank % 2 == 0 {
                job.barrier()?;
                window.fence(|_| Ok(()))?;
            } else {
                window.fence(|_| Ok(()))?;
                job.barrier()?;
            }
            assert_eq!(window.local().get(0)?, round);
        }
        window.free()?;
    }
    whole.free()
}
