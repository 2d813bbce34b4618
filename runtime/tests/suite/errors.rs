//! Errors are values, and come before anything is sent.

use transom::{Assert, Class, Job, LockKind, NULL_RANK, Result, Sum};

fn class<T>(result: Result<T>) -> Class {
    result.map(drop).unwrap_err().class()
}

pub fn before_anything_is_sent(job: &Job) -> Result<()> {
    let last = job.size() - 1;
    for window in [job.allocate::<u32>(4)?, job.create(vec![0u32; 4])?] {
        let mut room = [0; 2];
        window.lock_all(|epoch| {
            for displacement in [4, 5, 1 << 40, usize::MAX / 4, usize::MAX] {
                assert_eq!(class(epoch.put(last, displacement, &[1])), Class::RmaRange);
                assert_eq!(class(epoch.get_value(last, displacement)), Class::RmaRange);
                assert_eq!(class(epoch.accumulate(last, displacement, Sum, &[1])), Class::RmaRange);
                assert_eq!(class(epoch.fetch_add(last, displacement, 1)), Class::RmaRange);
                assert_eq!(class(epoch.compare_and_swap(last, displacement, 1, 1)), Class::RmaRange);
            }
            assert_eq!(class(epoch.put(last, 3, &[1, 2])), Class::RmaRange);
            for rank in [job.size(), job.size() + 1, 1 << 40, NULL_RANK - 1] {
                assert_eq!(class(epoch.put(rank, 0, &[1])), Class::Rank);
                assert_eq!(class(epoch.flush(rank)), Class::Rank);
                assert_eq!(class(epoch.fetch_add(rank, 0, 1)), Class::Rank);
            }
            assert_eq!(class(epoch.get_accumulate(last, 0, Sum, &[1, 2, 3], &mut room)), Class::Count);
            Ok(())
        })?;
        let error = window.lock_all(|epoch| epoch.put(last, 9, &[1])).unwrap_err();
        assert_eq!((error.operation(), error.rank(), error.target()), ("put", Some(job.rank()), Some(last)));
        let text = error.to_string();
        assert!(text.contains("displacement 9") && text.contains("MPI_ERR_RMA_RANGE"), "{text}");
        assert_eq!(class(window.local().get(4)), Class::RmaRange);
        assert_eq!(class(window.lock(LockKind::Shared, job.size(), |_| Ok(()))), Class::Rank);
        assert_eq!(window.reclaim()?, [0; 4]);
    }
    assert_eq!(class(job.broadcast(job.size(), &mut [0u8])), Class::Rank);
    Ok(())
}

pub fn of_epochs(job: &Job) -> Result<()> {
    let window = job.allocate::<u32>(4)?;
    let other = (job.rank() + 1) % job.size();
    window.lock_all(|_| {
        assert_eq!(class(window.lock_all(|_| Ok(()))), Class::RmaSync);
        assert_eq!(class(window.lock(LockKind::Shared, 0, |_| Ok(()))), Class::RmaSync);
        assert_eq!(class(window.fence(|_| Ok(()))), Class::RmaSync);
        Ok(())
    })?;
    window.lock(LockKind::Shared, job.rank(), |epoch| {
        if other != job.rank() {
            assert_eq!(class(epoch.put(other, 0, &[1])), Class::RmaSync);
            assert_eq!(class(epoch.flush(other)), Class::RmaSync);
        }
        assert_eq!(class(window.lock(LockKind::Shared, job.rank(), |_| Ok(()))), Class::RmaSync);
        Ok(())
    })?;
    let rma = window.explicit();
    // An error inside a fence at one rank leaves the fences of all in step.
    let fenced = window.fence(|epoch| if job.rank() == 0 { epoch.put(other, 99, &[1]) } else { Ok(()) });
    assert_eq!(fenced.is_err(), job.rank() == 0);
    window.fence(|epoch| epoch.put_value(other, 3, 5))?;
    assert_eq!(window.local().get(3)?, 5);
    assert_eq!(class(rma.put(other, 0, &[1])), Class::RmaSync);
    assert_eq!(class(rma.get(other, 0, &mut [1])), Class::RmaSync);
    assert_eq!(class(rma.fetch_op(other, 0, Sum, 1)), Class::RmaSync);
    assert_eq!(class(rma.flush(other)), Class::RmaSync);
    assert_eq!(class(rma.unlock(other)), Class::RmaSync);
    assert_eq!(class(rma.unlock_all()), Class::RmaSync);
    rma.lock(LockKind::Exclusive, job.rank(), Assert::NONE)?;
    assert_eq!(class(rma.lock(LockKind::Exclusive, job.rank(), Assert::NONE)), Class::RmaSync);
    assert_eq!(class(rma.lock_all(Assert::NONE)), Class::RmaSync);
    rma.unlock(job.rank())?;
    assert_eq!(class(rma.unlock(job.rank())), Class::RmaSync);
    drop(rma);
    window.free()
}

pub fn of_creation_are_the_same_everywhere(job: &Job) -> Result<()> {
    let alike = |result: Class| -> Result<()> {
        let all = job.allgather(&[result as u8])?;
        assert!(all.iter().all(|other| *other == all[0]));
        Ok(())
    };
    let last = job.size() - 1;
    if last > 0 {
        let error =
            if job.rank() == last { class(job.allocate::<f32>(1)) } else { class(job.allocate::<u32>(1)) };
        assert_eq!(error, Class::Type);
        alike(error)?;
    }
    let error = class(job.allocate::<u64>(if job.rank() == last { usize::MAX } else { 1 }));
    assert_eq!(error, Class::Size);
    alike(error)?;
    let error = class(job.allocate::<u8>(if job.rank() == last { 1 << 46 } else { 1 }));
    assert_eq!(error, Class::NoMemory);
    alike(error)?;
    let options = transom::WindowOptions::unit(usize::from(job.rank() != last));
    assert_eq!(class(job.allocate_with::<u8>(1, &options)), Class::Displacement);
    // The job goes on.
    job.allocate::<u8>(1)?.free()
}

/// An error in a scope completes it and releases its lock.
pub fn an_early_end_releases_the_lock(job: &Job) -> Result<()> {
    let window = job.allocate::<u32>(1)?;
    for _ in 0..20 {
        let error = window.lock(LockKind::Exclusive, 0, |epoch| {
            epoch.fetch_add(0, 0, 1)?;
            epoch.put(0, 77, &[1])
        });
        assert_eq!(class(error), Class::RmaRange);
    }
    job.barrier()?;
    if job.rank() == 0 {
        assert_eq!(window.local().get(0)?, 20 * job.size() as u32);
    }
    window.free()
}
