//! Put and get.

use transom::{Job, NULL_RANK, Result};

use super::neighbours;

pub fn ring_of_puts(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(16)?;
    let (left, right) = neighbours(job);
    for round in 0..20 {
        let value =
            |rank: usize| -> Vec<u64> { (0..16).map(|i| (round * 1000 + rank * 100 + i) as u64).collect() };
        let data = value(job.rank());
        window.fence(|epoch| epoch.put(right, 0, &data))?;
        assert_eq!(window.local().to_vec()?, value(left));
        job.barrier()?;
    }
    window.free()
}

pub fn sizes_and_offsets(job: &Job) -> Result<()> {
    const LEN: usize = 300_000;
    let windows = [job.allocate::<u8>(LEN)?, job.create(vec![0u8; LEN])?];
    let (left, right) = neighbours(job);
    for window in windows {
        for (i, size) in
            [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4095, 4096, 8193, 65_537, 250_001].into_iter().enumerate()
        {
            let offset = i * 3;
            let byte = |rank: usize, at: usize| (rank * 31 + at * 7 + i) as u8;
            let data: Vec<u8> = (0..size).map(|at| byte(job.rank(), at)).collect();
            window.fence(|epoch| epoch.put(right, offset, &data))?;
            let mut here = vec![0; size];
            window.local().read(offset, &mut here)?;
            assert!(here.iter().enumerate().all(|(at, b)| *b == byte(left, at)), "put of {size} bytes");
            let mut back = vec![0; size];
            let mut read = vec![0; size];
            window.lock_all(|epoch| {
                epoch.get(right, offset, &mut back)?;
                epoch.read(right, offset, &mut read)
            })?;
            assert!(back == data && read == data, "get of {size} bytes");
            job.barrier()?;
        }
        window.free()?;
    }
    Ok(())
}

/// Says which elements differ, since that tells who has lost them: parts of a page, packets or whole work requests.
fn assert_same(what: &str, found: &[u64], expected: &[u64]) {
    let differs = |i: &usize| found[*i] != expected[*i];
    let Some(first) = (0..expected.len()).find(differs) else { return };
    let last = (0..expected.len()).rfind(differs).unwrap_or(first);
    let count = (first..=last).filter(differs).count();
    panic!(
        "{what}: {count} elements differ, from {first} to {last} of {}; the first is {}, not {}",
        expected.len(),
        found[first],
        expected[first],
    );
}

pub fn large_transfers(job: &Job) -> Result<()> {
    const LEN: usize = 3 << 20;
    let (left, right) = neighbours(job);
    for window in [job.allocate::<u64>(LEN)?, job.create(vec![0u64; LEN])?] {
        let data: Vec<u64> = (0..LEN).map(|i| (i * (job.rank() + 3)) as u64).collect();
        window.fence(|epoch| epoch.put(right, 0, &data))?;
        let here = window.local().to_vec()?;
        let sent: Vec<u64> = (0..LEN).map(|i| (i * (left + 3)) as u64).collect();
        assert_same("put", &here, &sent);
        let mut back = vec![0; LEN];
        window.lock_all(|epoch| epoch.get(right, 0, &mut back))?;
        assert_same("get", &back, &data);
        window.free()?;
    }
    Ok(())
}

/// The peer sees the data when it sees the flag that was put after a flush.
pub fn put_flush_flag(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 300;
    for window in [job.allocate::<u64>(2)?, job.create(vec![0u64; 2])?] {
        let (left, right) = neighbours(job);
        // In a job of one rank, and between neighbours at the same time, too.
        window.lock_all(|epoch| {
            for round in 1..=ROUNDS {
                epoch.put_value(right, 0, round * 7)?;
                epoch.flush(right)?;
                epoch.fetch_op(right, 1, transom::Replace, round)?;
                while window.local().get(1)? < round {
                    std::thread::yield_now();
                }
                let seen = window.local().get(0)?;
                assert!(seen >= round * 7 && seen <= (round + 1) * 7, "round {round} from {left}: {seen}");
                job.barrier()?;
            }
            Ok(())
        })?;
        window.free()?;
    }
    Ok(())
}

/// Put X, flush, get Y here against put Y, flush, get X there: not both old.
pub fn flush_orders_get_after_put(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(2)?;
    if job.size() < 2 {
        return window.free();
    }
    let mut both_old = 0;
    for round in 1..=500u64 {
        let mut seen = u64::MAX;
        if job.rank() < 2 {
            let (mine, other) = (job.rank(), 1 - job.rank());
            seen = window.lock_all(|epoch| {
                epoch.put_value(0, mine, round)?;
                epoch.flush(0)?;
                epoch.get_value(0, other)
            })?;
        }
        let all = job.allgather(&[seen])?;
        both_old += u32::from(all[0][0] < round && all[1][0] < round);
    }
    assert_eq!(both_old, 0);
    window.free()
}

pub fn target_itself_and_null_rank(job: &Job) -> Result<()> {
    for window in [job.allocate::<i32>(8)?, job.create(vec![0i32; 8])?] {
        let data = [1, 2, 3];
        let mut got = [0; 3];
        window.lock_all(|epoch| {
            epoch.put(job.rank(), 2, &data)?;
            epoch.flush(job.rank())?;
            epoch.accumulate(job.rank(), 2, transom::Sum, &[10, 10, 10])?;
            epoch.put(NULL_RANK, 1 << 40, &data)?;
            epoch.accumulate(NULL_RANK, 0, transom::Sum, &data)?;
            assert_eq!(epoch.fetch_add(NULL_RANK, 0, 1)?, 0);
            assert_eq!(epoch.compare_and_swap(NULL_RANK, 0, 0, 1)?, 0);
            epoch.flush(NULL_RANK)?;
            epoch.flush_all()
        })?;
        window.lock(transom::LockKind::Shared, NULL_RANK, |epoch| epoch.put(NULL_RANK, 0, &data))?;
        window.lock(transom::LockKind::Exclusive, job.rank(), |epoch| epoch.get(job.rank(), 2, &mut got))?;
        assert_eq!(got, [11, 12, 13]);
        assert_eq!(window.reclaim()?, [0, 0, 11, 12, 13, 0, 0, 0]);
    }
    Ok(())
}
