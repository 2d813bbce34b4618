//! Windows in a job inside one process.

use transom::{Class, Error, LockKind, NULL_RANK};

#[test]
fn ring_of_puts() {
    for ranks in [1, 2, 3, 4, 7] {
        transom::local(ranks, |job| {
            let window = job.allocate::<u64>(16)?;
            let right = (job.rank() + 1) % job.size();
            let left = (job.rank() + job.size() - 1) % job.size();
            let data: Vec<u64> = (0..16).map(|i| (job.rank() * 100 + i) as u64).collect();
            window.fence(|epoch| epoch.put(right, 0, &data))?;
            let expected: Vec<u64> = (0..16).map(|i| (left * 100 + i) as u64).collect();
            assert_eq!(window.local().to_vec()?, expected);
            window.free()
        })
        .unwrap();
    }
}

#[test]
fn counters_and_locks() {
    transom::local(4, |job| {
        let window = job.allocate::<i64>(2)?;
        for _ in 0..200 {
            window.lock_all(|epoch| epoch.fetch_add(0, 0, 1).map(drop))?;
            window.lock(LockKind::Exclusive, 0, |epoch| {
                let value = epoch.get_value(0, 1)?;
                epoch.put_value(0, 1, value + 1)
            })?;
        }
        job.barrier()?;
        if job.rank() == 0 {
            assert_eq!(window.local().to_vec()?, [800, 800]);
        }
        window.free()
    })
    .unwrap();
}

#[test]
fn user_memory() {
    transom::local(3, |job| {
        let window = job.create(vec![0.0f64; 3000])?;
        let data = vec![1.5; 1000];
        window.lock_all(|epoch| {
            epoch.put((job.rank() + 1) % 3, job.rank() * 1000, &data)?;
            epoch.accumulate(0, 2000, transom::Sum, &data[..500])?;
            assert_eq!(epoch.fetch_op(NULL_RANK, 0, transom::Sum, 1.0)?, 0.0);
            Ok(())
        })?;
        let memory = window.reclaim()?;
        let from = (job.rank() + 2) % 3 * 1000;
        let put = if job.rank() == 0 { 500 } else { 0 };
        assert!(memory[from + put..from + 1000].iter().all(|x| *x == 1.5));
        Ok(())
    })
    .unwrap();
}

#[test]
fn errors_are_values() {
    let class = |e: Result<(), Error>| e.unwrap_err().class();
    transom::local(2, |job| {
        let window = job.allocate::<u32>(4)?;
        window.lock_all(|epoch| {
            assert_eq!(class(epoch.put(1, 4, &[1])), Class::RmaRange);
            assert_eq!(class(epoch.put(1, usize::MAX, &[1])), Class::RmaRange);
            assert_eq!(class(epoch.put(2, 0, &[1])), Class::Rank);
            assert_eq!(class(window.lock_all(|_| Ok(()))), Class::RmaSync);
            assert_eq!(class(window.lock(LockKind::Shared, 0, |_| Ok(()))), Class::RmaSync);
            Ok(())
        })?;
        window.lock(LockKind::Shared, 0, |epoch| {
            assert_eq!(class(epoch.put(1, 0, &[1])), Class::RmaSync);
            Ok(())
        })?;
        assert_eq!(class(window.explicit().unlock(0)), Class::RmaSync);
        window.free()
    })
    .unwrap();
    let error = transom::local(2, |job| {
        if job.rank() == 0 {
            drop(job.allocate::<u32>(1)?)
        } else {
            drop(job.allocate::<f32>(1)?)
        }
        Ok(())
    });
    assert_eq!(class(error.map(drop)), Class::Type);
    let error = transom::local(2, |job| job.allocate::<u8>(1 << 50).map(drop));
    assert_eq!(class(error.map(drop)), Class::NoMemory);
}
