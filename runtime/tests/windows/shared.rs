//! Windows in memory that all ranks map.

use std::time::Duration;

use transom::explain::{Kind, Path, Reason};
use transom::{Class, Flavour, Job, LockKind, MemoryModel, Result, Sum, WindowOptions};

/// The parts lie one behind the other, in the order of ranks, also where some are empty.
pub fn contiguous(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let len = |rank: usize| if rank.is_multiple_of(2) { rank + 3 } else { 0 };
    let window = job.allocate_shared::<u64>(len(rank))?;
    assert_eq!((window.flavour(), window.len()), (Flavour::Shared, len(rank)));
    for peer in 0..size {
        let part = window.shared(peer)?;
        assert_eq!(part.len(), len(peer));
        assert_eq!(window.len_at(peer), Some(len(peer)));
    }
    assert_eq!(window.shared(transom::NULL_RANK)?.len(), len(0));
    // Threads of one process map it at different addresses: distances from the first part are the same.
    let start: usize = (0..rank).map(len).sum();
    assert_eq!(window.base() == 0, len(rank) == 0);
    if len(rank) > 0 {
        let bases = window.base() - start * 8;
        assert_eq!(bases % 4096, 0, "the first part starts on a page, this one {start} elements behind it");
    }
    stores_and_operations_meet(job, &window)?;
    window.free()
}

fn stores_and_operations_meet(job: &Job, window: &transom::Window<u64>) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    job.barrier()?;
    for peer in (0..size).filter(|peer| window.len_at(*peer) > Some(0)) {
        window.lock(LockKind::Exclusive, peer, |_| {
            let part = window.shared(peer)?;
            part.set(0, part.get(0)? + 1)
        })?;
        window.lock(LockKind::Shared, peer, |epoch| epoch.accumulate(peer, 1, Sum, &[1]))?;
        window.lock_all(|epoch| epoch.put_value(peer, 2, 7))?;
    }
    job.barrier()?;
    window.sync()?;
    if !window.is_empty() {
        let mut first = [0; 3];
        window.shared(rank)?.read(0, &mut first)?;
        assert_eq!(first, [size as u64, size as u64, 7]);
    }
    job.barrier()
}

/// A lock is held when the call returns: loads and stores ask nobody, whatever path operations take.
pub fn loads_in_a_lock(job: &Job) -> Result<()> {
    let window = job.allocate_shared::<u64>(1)?;
    let last = job.size() - 1;
    if job.rank() == last && last > 0 {
        window.lock(LockKind::Exclusive, 0, |_| {
            for peer in 0..last {
                job.send::<u8>(peer, 0, &[])?;
            }
            std::thread::sleep(Duration::from_millis(50));
            window.shared(0)?.set(0, 1)
        })?;
    } else if last > 0 {
        job.recv::<u8>(last, 0)?;
        let seen = window.lock(LockKind::Shared, 0, |_| window.shared(0)?.get(0))?;
        assert_eq!(seen, 1, "read while rank {last} had the exclusive lock");
    }
    job.barrier()?;
    window.free()
}

/// With the hint alloc_shared_noncontig each part starts on a page of its own.
pub fn noncontiguous(job: &Job) -> Result<()> {
    let options = WindowOptions::default().with("alloc_shared_noncontig", "true");
    let window = job.allocate_shared_with::<u64>(3, &options)?;
    assert_eq!(window.base() % 4096, 0);
    assert_eq!(window.info().get("alloc_shared_noncontig"), Some("true"));
    stores_and_operations_meet(job, &window)?;
    window.free()
}

/// A window without any memory.
pub fn empty(job: &Job) -> Result<()> {
    let window = job.allocate_shared::<u32>(0)?;
    assert_eq!((window.base(), window.bytes()), (0, 0));
    window.fence(|epoch| epoch.put(0, 0, &[]))?;
    window.free()
}

/// What cannot be shared by load and store says so.
pub fn refused(job: &Job) -> Result<()> {
    let separate = WindowOptions::default().model(MemoryModel::Separate);
    let error = job.allocate_shared_with::<u32>(1, &separate).unwrap_err();
    assert_eq!(error.class(), Class::Info);
    assert!(error.message().contains("unified"), "{error}");
    let created = job.create(vec![0u32])?;
    let error = created.shared(0).unwrap_err();
    assert_eq!(error.class(), Class::RmaFlavour);
    assert!(error.message().contains("allocated"), "{error}");
    created.free()?;
    let window = job.allocate_with::<u32>(1, &separate)?;
    assert_eq!(window.shared(0).unwrap_err().class(), Class::RmaFlavour);
    window.free()?;
    let window = job.allocate::<u32>(1)?;
    assert_eq!(window.shared(job.size()).unwrap_err().class(), Class::Rank);
    window.shared(job.rank())?.set(0, 5)?;
    window.free()
}

/// Memory that all map changes nothing about how operations go to it.
pub fn operations_go_by_the_transport(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let right = (rank + 1) % size;
    let window =
        job.allocate_shared_with::<u64>(600, &WindowOptions::default().with("transom_explain", "true"))?;
    let many = vec![rank as u64 + 1; 500];
    window.fence(|epoch| {
        epoch.put(right, 0, &many)?;
        epoch.accumulate(right, 500, Sum, &[3; 100])
    })?;
    window.fence(|epoch| epoch.fetch_add(right, 599, 1).map(drop))?;
    job.barrier()?;
    window.sync()?;
    for peer in 0..size {
        let mut found = vec![0; 600];
        window.shared(peer)?.read(0, &mut found)?;
        let left = (peer + size - 1) % size;
        let expected = [vec![left as u64 + 1; 500], vec![3; 99], vec![4]].concat();
        assert_eq!(found, expected, "of rank {peer}");
    }
    let explanation = window.explain();
    let mapped = explanation.by_reason(Kind::Put, Path::Direct, Reason::Mapped).operations;
    let by_shm = job.transport(right).is_some_and(|(name, _)| name == "shm");
    assert_eq!(mapped, u64::from(size > 1 && by_shm));
    job.barrier()?;
    window.free()
}

/// A job that is told to use a network shares the memory of windows that ask for it, and no other's.
pub fn not_where_all_is_told_to_go_by_a_network(job: &Job) -> Result<()> {
    if job.size() > 1 {
        let window = job.allocate::<u32>(1)?;
        let error = window.shared((job.rank() + 1) % job.size()).unwrap_err();
        assert_eq!(error.class(), Class::RmaShared);
        assert!(error.message().contains("put and get"), "{error}");
        window.free()?;
    }
    let alone = job.split_shared()?;
    assert_eq!(alone.size(), 1);
    let window = alone.allocate_shared::<u32>(4)?;
    window.shared(0)?.set(3, 7)?;
    window.lock_all(|epoch| {
        epoch.put_value(0, 2, 6)?;
        epoch.flush(0)?;
        assert_eq!((epoch.get_value(0, 2)?, epoch.fetch_add(0, 3, 1)?), (6, 7));
        Ok(())
    })?;
    assert_eq!((window.shared(0)?.get(2)?, window.shared(0)?.get(3)?), (6, 8));
    window.free()?;
    job.barrier()
}
