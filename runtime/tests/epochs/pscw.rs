//! Post, start, complete, wait.

use transom::{Assert, Class, Job, Result, Sum};

use super::all::put_to_all;
use super::class;
use super::each::each;

const NONE: Assert = Assert::NONE;

/// Rank 0 is exposed to the first 0, 1, … of all ranks, itself among them.
pub fn groups_of_all_sizes(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    each(job, size, |window| {
        let rma = window.explicit();
        for count in (0..=size).chain((0..size).rev()) {
            // Not in the order of ranks.
            let group: Vec<usize> = (0..count).rev().collect();
            if rank == 0 {
                rma.post(&group, NONE)?;
            }
            if rank < count {
                rma.start(&[0], NONE)?;
                rma.accumulate(0, rank, Sum, &[1])?;
                rma.complete()?;
            }
            if rank == 0 {
                rma.wait()?;
                let sums = window.local().to_vec()?;
                assert!(sums[count..].iter().all(|sum| *sum <= sums[0]));
            }
        }
        if rank == 0 {
            // Rank r is in the groups of r + 1 and more ranks: size - r times on the way up, and one less down.
            let expected: Vec<u64> = (0..size).map(|r| (2 * (size - r) - 1) as u64).collect();
            assert_eq!(window.local().to_vec()?, expected);
        }
        job.barrier()
    })
}

/// Every rank posts to all, starts to all, itself included, and puts to all.
pub fn all_to_all(job: &Job) -> Result<()> {
    each(job, job.size(), |window| (1..=10).try_for_each(|round| put_to_all(job, window, round)))
}

pub fn empty_groups(job: &Job) -> Result<()> {
    each(job, 1, |window| {
        let rma = window.explicit();
        for _ in 0..3 {
            rma.start(&[], NONE)?;
            assert_eq!(class(rma.put(job.rank(), 0, &[1])), Class::RmaSync);
            rma.complete()?;
            rma.post(&[], NONE)?;
            rma.wait()?;
            rma.post(&[], Assert::NOCHECK)?;
            assert!(rma.test()?);
            assert_eq!(class(rma.test()), Class::RmaSync);
        }
        window.start(&[], |_| Ok(()))?;
        window.expose(&[], |_| Ok(()))
    })
}

/// Origins that access nothing need no post: they run epochs ahead of the target. The next epoch with an access waits for the
/// post that matches it, not for an earlier one.
pub fn epochs_run_ahead(job: &Job) -> Result<()> {
    const AHEAD: u64 = 5;
    let (rank, size) = (job.rank(), job.size());
    let others: Vec<usize> = (1..size).collect();
    each(job, size, |window| {
        let rma = window.explicit();
        for epoch in 0..=AHEAD {
            if rank > 0 {
                rma.start(&[0], NONE)?;
                // Each rank at an epoch of its own, and all in the last.
                if epoch == AHEAD || epoch == rank as u64 {
                    rma.put(0, rank, &[epoch + 1])?;
                }
                rma.complete()?;
            } else {
                rma.post(&others, NONE)?;
                rma.wait()?;
                for other in 1..size {
                    let put = match other as u64 {
                        _ if epoch == AHEAD => AHEAD + 1,
                        other if epoch >= other => other + 1,
                        _ => 0,
                    };
                    assert_eq!(window.local().get(other)?, put, "rank {other} in epoch {epoch}");
                }
            }
        }
        job.barrier()
    })
}

/// Polling by test ends the epoch when the last origin has completed, and then makes its updates visible.
pub fn polling_by_test(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let others: Vec<usize> = (1..size).collect();
    each(job, size, |window| {
        let rma = window.explicit();
        for round in 1..=5 {
            if rank > 0 {
                rma.start(&[0], NONE)?;
                rma.put(0, rank, &[round])?;
                job.barrier()?;
                rma.complete()?;
                continue;
            }
            rma.post(&others, NONE)?;
            // Nobody has completed before the barrier.
            assert_eq!(rma.test()?, others.is_empty());
            job.barrier()?;
            if !others.is_empty() {
                while !rma.test()? {
                    std::thread::yield_now();
                }
            }
            assert_eq!(class(rma.test()), Class::RmaSync);
            assert_eq!(class(rma.wait()), Class::RmaSync);
            assert!(window.local().to_vec()?[1..].iter().all(|element| *element == round));
        }
        job.barrier()
    })
}

/// With NOCHECK at both ends, and a barrier in place of the posts.
pub fn without_posts(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    each(job, 1, |window| {
        let rma = window.explicit();
        for round in 1..=10 {
            rma.post(&[left], Assert::NOCHECK | Assert::NOSTORE)?;
            job.barrier()?;
            rma.start(&[right], Assert::NOCHECK)?;
            rma.put(right, 0, &[round])?;
            rma.complete()?;
            rma.wait()?;
            assert_eq!(window.local().get(0)?, round);
        }
        window.expose_with(&[], Assert::NOPUT, |_| Ok(()))
    })
}

pub fn wrong_groups(job: &Job) -> Result<()> {
    let size = job.size();
    each(job, 1, |window| {
        let rma = window.explicit();
        for (group, expected, word) in
            [(vec![size], Class::Rank, "ranks 0 to"), (vec![0, 0], Class::Group, "twice")]
        {
            for error in [rma.start(&group, NONE).unwrap_err(), rma.post(&group, NONE).unwrap_err()] {
                assert_eq!(error.class(), expected);
                assert!(error.message().contains(word), "{error}");
            }
        }
        assert_eq!(class(rma.complete()), Class::RmaSync);
        assert_eq!(class(rma.wait()), Class::RmaSync);
        Ok(())
    })
}

/// In a window of many ranks some share the words in which they would signal, and send messages instead.
pub fn more_ranks_than_lines(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let window = job.allocate::<u64>(size)?;
    let (rma, others) = (window.explicit(), (1..size).collect::<Vec<_>>());
    for round in 1..=3 {
        if rank == 0 {
            rma.post(&others, NONE)?;
            rma.wait()?;
            assert_eq!(window.local().to_vec()?[1..], vec![round; size - 1]);
        } else {
            rma.start(&[0], NONE)?;
            rma.put(0, rank, &[round])?;
            rma.complete()?;
        }
        rma.fence(Assert::NOSUCCEED)?;
    }
    drop(rma);
    window.free()
}
