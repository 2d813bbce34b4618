//! Atomicity.

use transom::{Job, LockKind, Max, NoOp, Result, Sum, Window};

use super::random::Random;

fn windows(job: &Job, len: usize) -> Result<[Window<i64>; 2]> {
    Ok([job.allocate(len)?, job.create(vec![0; len])?])
}

/// Every rank adds by fetch_and_op, by accumulate of one and of many elements, and by get_accumulate.
pub fn mixed_sums(job: &Job) -> Result<()> {
    const ROUNDS: i64 = 150;
    for window in windows(job, 64)? {
        let ones = [1; 64];
        window.lock_all(|epoch| {
            for _ in 0..ROUNDS {
                epoch.fetch_add(0, 5, 1)?;
                epoch.accumulate(0, 5, Sum, &[1])?;
                epoch.accumulate(0, 0, Sum, &ones)?;
                epoch.get_accumulate(0, 4, Sum, &[1; 3], &mut [0; 3])?;
            }
            Ok(())
        })?;
        job.barrier()?;
        if job.rank() == 0 {
            let now = window.local().to_vec()?;
            let of = |times: i64| times * ROUNDS * job.size() as i64;
            assert_eq!(now[3..8], [of(1), of(2), of(4), of(2), of(1)]);
        }
        window.free()?;
    }
    Ok(())
}

/// The owner, ranks that map its memory, and ranks that ask its agent, all on one word of the owner's.
pub fn one_path_with_the_owner(job: &Job) -> Result<()> {
    const ROUNDS: i64 = 300;
    for window in windows(job, 1)? {
        window.lock_all(|epoch| {
            for _ in 0..ROUNDS {
                for target in 0..job.size() {
                    let mut old = epoch.fetch(target, 0)?;
                    loop {
                        match epoch.compare_and_swap(target, 0, old, old + 1)? {
                            now if now == old => break,
                            now => old = now,
                        }
                    }
                    epoch.accumulate(target, 0, Sum, &[1])?;
                    // Changes nothing, and must lose nothing.
                    epoch.fetch_op(target, 0, Max, -1)?;
                }
            }
            Ok(())
        })?;
        job.barrier()?;
        assert_eq!(window.local().get(0)?, 2 * ROUNDS * job.size() as i64);
        window.free()?;
    }
    Ok(())
}

pub fn counter_under_a_lock(job: &Job) -> Result<()> {
    const ROUNDS: i64 = 150;
    for window in windows(job, 1)? {
        for round in 0..ROUNDS {
            let target = round as usize % job.size();
            window.lock(LockKind::Exclusive, target, |epoch| {
                let value = epoch.get_value(target, 0)?;
                epoch.put_value(target, 0, value + 1)
            })?;
        }
        job.barrier()?;
        let sums = job.allreduce(Sum, &[window.local().get(0)?])?;
        assert_eq!(sums, [ROUNDS * job.size() as i64]);
        window.free()?;
    }
    Ok(())
}

/// 2,000 windows at once, each accumulated to.
pub fn two_thousand_windows(job: &Job) -> Result<()> {
    let right = (job.rank() + 1) % job.size();
    let windows: Vec<Window<u64>> = (0..2000)
        .map(|i| if i % 2 == 0 { job.allocate(4) } else { job.create(vec![0; 4]) })
        .collect::<Result<_>>()?;
    for (i, window) in (0..).zip(&windows) {
        window.lock_all(|epoch| {
            epoch.accumulate(right, 0, Sum, &[i, 1])?;
            epoch.fetch_add(right, 2, i).map(drop)
        })?;
    }
    job.barrier()?;
    for (i, window) in (0..).zip(&windows) {
        assert_eq!(window.local().to_vec()?, [i, 1, i, 0]);
    }
    windows.into_iter().try_for_each(Window::free)
}

/// Each rank has elements of its own at every rank, of which it alone knows what they must be.
pub fn get_accumulate_against_an_oracle(job: &Job) -> Result<()> {
    const PART: usize = 600;
    let (rank, size) = (job.rank(), job.size());
    for window in windows(job, PART * size)? {
        let mut random = Random(rank as u64 * 7 + 1);
        let mut model = vec![vec![0i64; PART]; size];
        window.lock_all(|epoch| {
            for _ in 0..120 {
                let (target, at) = (random.below(size), random.below(PART));
                let len = 1 + random.below(PART - at);
                let operands: Vec<i64> = (0..len).map(|_| random.next() as i64 >> 40).collect();
                let (mut old, part) = (vec![0; len], &mut model[target][at..at + len]);
                let place = rank * PART + at;
                if random.below(4) == 0 {
                    epoch.get_accumulate(target, place, NoOp, &operands, &mut old)?;
                    assert_eq!(old, part);
                    continue;
                }
                epoch.get_accumulate(target, place, Sum, &operands, &mut old)?;
                assert_eq!(old, part);
                part.iter_mut().zip(&operands).for_each(|(element, operand)| *element += operand);
            }
            Ok(())
        })?;
        job.barrier()?;
        let parts = job.allgather(&model.concat())?;
        let now = window.local().to_vec()?;
        for (origin, model) in parts.iter().enumerate() {
            assert_eq!(now[origin * PART..][..PART], model[rank * PART..][..PART]);
        }
        window.free()?;
    }
    Ok(())
}

/// Columns of a matrix, accumulated to by all ranks at once: every update of every element counts.
pub fn strided_accumulates(job: &Job) -> Result<()> {
    const SIDE: usize = 24;
    for window in windows(job, SIDE * SIDE)? {
        window.lock_all(|epoch| {
            for column in 0..SIDE {
                for row in 0..SIDE {
                    epoch.accumulate(0, row * SIDE + column, Sum, &[column as i64 + 1])?;
                }
                // Rows in between, which cross the columns.
                epoch.accumulate(0, column * SIDE, Sum, &[1; SIDE])?;
            }
            Ok(())
        })?;
        job.barrier()?;
        if job.rank() == 0 {
            let now = window.local().to_vec()?;
            let times = job.size() as i64;
            let exact = |(i, element): (usize, &i64)| *element == times * ((i % SIDE) as i64 + 2);
            assert!(now.iter().enumerate().all(exact));
        }
        window.free()?;
    }
    Ok(())
}

/// A large accumulate to one part of a window is under way again and again; small ones to other parts are exact, and get
/// through meanwhile.
pub fn disjoint_parts_of_one_window(job: &Job) -> Result<()> {
    const LARGE: usize = 50_000;
    let size = job.size();
    for window in windows(job, LARGE + size)? {
        let ones = vec![1; LARGE];
        window.lock_all(|epoch| {
            for _ in 0..10 {
                if job.rank() == 0 {
                    epoch.accumulate(size - 1, 0, Sum, &ones)?;
                } else {
                    for _ in 0..100 {
                        epoch.fetch_add(size - 1, LARGE + job.rank(), 1)?;
                    }
                }
            }
            Ok(())
        })?;
        job.barrier()?;
        if job.rank() == size - 1 {
            let now = window.local().to_vec()?;
            assert!(now[..LARGE].iter().all(|element| *element == 10));
            assert!(now[LARGE + 1..].iter().all(|element| *element == 1000));
        }
        window.free()?;
    }
    Ok(())
}
