//! Windows: sizes, units, memory, and collectives around them.

use transom::{Class, Job, Max, Result, Sum, Window, WindowOptions};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::neighbours;

pub fn zero_size_and_uneven_windows(job: &Job) -> Result<()> {
    let (_, right) = neighbours(job);
    // Rank r exposes r elements.
    for window in [job.allocate::<u16>(job.rank())?, job.create(vec![0u16; job.rank()])?] {
        assert_eq!(window.len(), job.rank());
        assert_eq!(window.len_at(right), Some(right));
        assert_eq!(window.len_at(job.size()), None);
        let data = vec![9; right];
        window.fence(|epoch| {
            assert!(epoch.put_value(right, right, 1).is_err());
            epoch.put(right, 0, &data)
        })?;
        assert_eq!(window.reclaim()?, vec![9; job.rank()]);
    }
    let nothing = job.allocate::<f64>(0)?;
    nothing.fence(|epoch| epoch.put(right, 0, &[]))?;
    nothing.free()
}

pub fn displacement_units(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    // Bytes at even ranks, whole elements at odd ones.
    let unit = |rank: usize| if rank.is_multiple_of(2) { 1 } else { 4 };
    let options = WindowOptions::unit(unit(job.rank()));
    let window = job.allocate_with::<u32>(4, &options)?;
    assert_eq!(window.displacement_unit_at(right), Some(unit(right)));
    let value = [job.rank() as u32 + 1];
    window.fence(|epoch| epoch.put(right, 8 / unit(right), &value))?;
    assert_eq!(window.local().to_vec()?, [0, 0, left as u32 + 1, 0]);
    window.free()
}

/// Whatever transports there are: over ranks of one host, shared windows can be made, over ranks of several they are refused.
pub fn memory_is_shared_within_a_host(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    // `transom run` tells; other launchers do not.
    let hosts = std::env::var("TRANSOM_HOST_COUNT").ok().and_then(|count| count.parse::<usize>().ok());
    match (job.allocate_shared::<u32>(2), hosts) {
        (Ok(window), None | Some(1)) => {
            window.local().set(0, job.rank() as u32)?;
            window.fence(|epoch| epoch.put_value(right, 1, 7 + job.rank() as u32))?;
            job.barrier()?;
            window.sync()?;
            assert_eq!(
                (window.shared(right)?.get(0)?, window.local().get(1)?),
                (right as u32, 7 + left as u32)
            );
            window.free()
        }
        (Err(error), None | Some(2..)) => {
            assert_eq!(error.class(), Class::RmaShared);
            assert!(error.message().contains("another host"), "{error}");
            Ok(())
        }
        (made, hosts) => panic!("{:?} on {hosts:?} hosts", made.map(drop)),
    }
}

pub fn windows_of_users_memory(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    let data = [job.rank() as u64; 3];
    let mut array = [7u64; 5];
    job.create_scoped(&mut array, |window| window.fence(|epoch| epoch.put(right, 1, &data)))?;
    let l = left as u64;
    assert_eq!(array, [7, l, l, l, 7]);
    // Dropped, not freed: whoever comes later gets an error, and nothing is written.
    job.barrier()?;
    let window = job.create(vec![1u64; 4])?;
    drop(window);
    job.barrier()
}

pub fn many_windows(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    for _ in 0..3 {
        let windows: Vec<Window<u64>> = (0..60).map(|i| job.allocate(i % 5 + 1)).collect::<Result<_>>()?;
        for (i, window) in windows.iter().enumerate() {
            window.lock_all(|epoch| epoch.put_value(right, i % 5, (i * 10 + job.rank()) as u64))?;
        }
        job.barrier()?;
        for (i, window) in windows.iter().enumerate() {
            assert_eq!(window.local().get(i % 5)?, (i * 10 + left) as u64);
        }
        windows.into_iter().try_for_each(Window::free)?;
    }
    Ok(())
}

pub fn addresses_of_peers(job: &Job) -> Result<()> {
    for len in [1 + job.rank() % 3, 5000, 0] {
        let window = job.allocate::<u64>(len)?;
        let bases = job.allgather(&[window.base()])?;
        for (rank, base) in bases.iter().enumerate() {
            if let Some(known) = window.base_at(rank) {
                assert_eq!([known], base[..]);
            }
            assert!(!window.is_symmetric() || len == 0 || *base == bases[0]);
        }
        assert_eq!(window.base_at(job.size()), None);
        window.free()?;
    }
    Ok(())
}

pub fn collectives(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for root in 0..size {
        let mut data = vec![if rank == root { root as u32 + 5 } else { 0 }; 30_000];
        job.broadcast(root, &mut data)?;
        assert!(data.iter().all(|x| *x == root as u32 + 5));
    }
    let all = job.allgather(&vec![rank as u16; rank * 3000])?;
    assert!(all.iter().enumerate().all(|(r, block)| *block == vec![r as u16; r * 3000]));
    let sums = job.allreduce(Sum, &[1.0, rank as f64])?;
    assert_eq!(sums, [size as f64, (size * (size - 1) / 2) as f64]);
    assert_eq!(job.allreduce(Max, &[rank as i8])?, [size as i8 - 1]);
    for _ in 0..50 {
        job.barrier()?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    charge: i32,
    kind: u32,
}

pub fn structs_as_elements(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    let particle = |rank: usize| Particle { position: [rank as f64; 3], charge: -1, kind: rank as u32 };
    let window = job.allocate::<Particle>(10)?;
    let mine = [particle(job.rank()); 2];
    window.fence(|epoch| epoch.put(right, 4, &mine))?;
    assert_eq!(window.local().get(5)?, particle(left));
    window.free()
}
