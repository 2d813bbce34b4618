//! Complaints of derived and wide types.

use transom::{Complex, Datatype, Job, Layout, MemoryModel, NoOp, ReduceOp, Replace, Result, WindowOptions};

/// Columns of a matrix by one accumulate with an indexed type, by all ranks at once: every update of every element counts.
pub fn indexed_accumulates(job: &Job) -> Result<()> {
    const ROWS: usize = 50;
    const ROUNDS: i64 = 40;
    let number = Datatype::of::<i64>();
    // Three of every row, with a gap, in an order of their own.
    let blocks: Vec<(usize, i64)> =
        (0..ROWS as i64).map(|row| (3, (ROWS as i64 - 1 - row) * 5 + 1)).collect();
    let columns = Datatype::indexed(&blocks, &number)?;
    let operands = vec![job.rank() as i64 + 1; 3 * ROWS];
    for window in [job.allocate::<i64>(5 * ROWS)?, job.create(vec![0; 5 * ROWS])?] {
        window.lock_all(|epoch| {
            for round in 0..ROUNDS {
                let target = (job.rank() + round as usize) % job.size();
                let (from, to) = (Layout::new(3 * ROWS, &number), Layout::new(1, &columns));
                epoch.accumulate_as(target, 0, ReduceOp::Sum, &operands, from, to)?;
                epoch.fetch_add(target, 6, 1)?;
            }
            Ok(())
        })?;
        job.barrier()?;
        let visits = |target: usize, origin: usize| {
            (0..ROUNDS as usize).filter(|round| (origin + round) % job.size() == target).count() as i64
        };
        let me = job.rank();
        let sum: i64 = (0..job.size()).map(|origin| visits(me, origin) * (origin as i64 + 1)).sum();
        let ones: i64 = (0..job.size()).map(|origin| visits(me, origin)).sum();
        for (i, now) in window.local().to_vec()?.into_iter().enumerate() {
            let expected = if (1..4).contains(&(i % 5)) { sum } else { 0 };
            assert_eq!(now, expected + if i == 6 { ones } else { 0 }, "element {i}");
        }
        window.free()?;
    }
    Ok(())
}

/// While others replace a pair of equal numbers, an atomic fetch never sees two different ones.
pub fn no_torn_values(job: &Job) -> Result<()> {
    const ROUNDS: usize = 400;
    for window in [job.allocate::<Complex<f64>>(1)?, job.create(vec![Complex::new(0.0, 0.0)])?] {
        window.lock_all(|epoch| {
            for round in 0..ROUNDS {
                let value = (round * job.size() + job.rank()) as f64;
                if job.rank() > 0 {
                    epoch.accumulate(0, 0, Replace, &[Complex::new(value, value)])?;
                }
                let seen = epoch.fetch_op(0, 0, NoOp, Complex::new(0.0, 0.0))?;
                assert_eq!(seen.re(), seen.im(), "half of one value, half of another");
            }
            Ok(())
        })?;
        window.free()?;
    }
    Ok(())
}

/// More memory than there is: an error when the window is made, at every rank the same, and no signal later.
pub fn memory_that_is_not_there(job: &Job) -> Result<()> {
    // Together more than any machine has, at the last rank alone.
    let len = |rank: usize| if rank + 1 == job.size() { 1usize << 45 } else { 1 };
    let separate = WindowOptions::default().model(MemoryModel::Separate);
    let mut results = vec![
        job.allocate::<u8>(len(job.rank())).map(drop),
        job.allocate_with::<u8>(len(job.rank()), &separate).map(drop),
    ];
    results.push(job.allocate_shared::<u8>(len(job.rank())).map(drop));
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.class(), transom::Class::NoMemory, "{error}");
        let all = job.allgather(error.message().as_bytes())?;
        assert!(all.iter().all(|message| *message == all[0]));
    }
    Ok(())
}
