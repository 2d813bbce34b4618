//! Every collective against a sequential reference, blocking and nonblocking.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use transom::{Class, Communicator, Complex, F64I32, Job, Max, MinLoc, Request, Result, Sum};

/// Elements of rank `rank`: few, none, or so many that every transport shows them where it can.
fn data(rank: usize, len: usize) -> Vec<u64> {
    (0..len).map(|i| (rank * 1000 + i) as u64).collect()
}

fn uneven(rank: usize) -> Vec<u64> {
    data(rank, [0, 3, 70_000, 1][rank % 4])
}

fn block(from: usize, to: usize) -> Vec<u32> {
    vec![(from * 100 + to) as u32; [0, 300, 17_000, 600, 140_000][(from + 2 * to) % 5]]
}

/// An affine function, whose composition is associative but not commutative.
fn compose([a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

fn affine(rank: usize) -> [u32; 2] {
    [2 * rank as u32 + 3, rank as u32 + 7]
}

/// All of this rank on, blocking and nonblocking must agree.
fn both<T: PartialEq + std::fmt::Debug + 'static>(
    blocking: Result<T>,
    request: Request<T>,
    expected: T,
) -> Result<()> {
    assert_eq!(blocking?, expected);
    assert_eq!(request.wait()?, expected);
    Ok(())
}

pub fn movements(job: &Job) -> Result<()> {
    // On the job and on a communicator with another order of ranks.
    let reversed = job.split(Some(0), -(job.rank() as i64))?.unwrap();
    for comm in [&**job, &reversed] {
        let (rank, size) = (comm.rank(), comm.size());
        let all: Vec<Vec<u64>> = (0..size).map(uneven).collect();
        let own = uneven(rank);
        for root in 0..size {
            let at_root = (rank == root).then(|| all.clone());
            both(comm.gather(root, &own), comm.igather(root, &own), at_root.clone())?;
            let blocks = at_root.as_deref();
            both(comm.scatter(root, blocks), comm.iscatter(root, blocks), own.clone())?;
            let mut bytes = if rank == root { uneven(root + 2) } else { vec![0; uneven(root + 2).len()] };
            comm.broadcast(root, &mut bytes)?;
            assert_eq!(bytes, uneven(root + 2));
            let given = if rank == root { uneven(root) } else { vec![] };
            assert_eq!(comm.ibroadcast(root, &given).wait()?, uneven(root));
        }
        both(comm.allgather(&own), comm.iallgather(&own), all)?;
        let given: Vec<_> = (0..size).map(|to| block(rank, to)).collect();
        let expected: Vec<_> = (0..size).map(|from| block(from, rank)).collect();
        both(comm.alltoall(&given), comm.ialltoall(&given), expected)?;
        both(comm.barrier(), comm.ibarrier(), ())?;
    }
    Ok(())
}

pub fn reductions(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for len in [0, 1, 5, 9000, 70_000] {
        let own = data(rank, len);
        let sum = |ranks: std::ops::Range<usize>| -> Vec<u64> {
            (0..len).map(|i| ranks.clone().map(|r| (r * 1000 + i) as u64).sum()).collect()
        };
        for root in 0..size {
            let expected = (rank == root).then(|| sum(0..size));
            both(job.reduce(root, Sum, &own), job.ireduce(root, Sum, &own), expected)?;
        }
        both(job.allreduce(Sum, &own), job.iallreduce(Sum, &own), sum(0..size))?;
        assert_eq!(job.allreduce(Max, &own)?, data(size - 1, len));
        both(job.scan(Sum, &own), job.iscan(Sum, &own), sum(0..rank + 1))?;
        let before = (rank > 0).then(|| sum(0..rank));
        both(job.exscan(Sum, &own), job.iexscan(Sum, &own), before)?;
        let counts: Vec<usize> = (0..size).map(|r| if r == size / 2 { len } else { 0 }).collect();
        let expected = if rank == size / 2 { sum(0..size) } else { vec![] };
        both(job.reduce_scatter(Sum, &own, &counts), job.ireduce_scatter(Sum, &own, &counts), expected)?;
    }
    let counts: Vec<usize> = (0..size).collect();
    let total = counts.iter().sum();
    let mine: usize = (0..rank).sum();
    let part = job.reduce_scatter(Sum, &vec![1u32; total], &counts)?;
    assert_eq!((part, mine + rank <= total), (vec![size as u32; rank], true));
    let lowest = job.allreduce(MinLoc, &[F64I32::new(-(rank as f64 / 2.0).floor(), rank as i32)])?;
    let expected = (size - 1) / 2;
    assert_eq!((lowest[0].value, lowest[0].index), (-(expected as f64), 2 * expected as i32));
    let total = job.allreduce(Sum, &[Complex::new(rank as f64, 1.0)])?;
    assert_eq!((total[0].re(), total[0].im()), ((size * (size - 1) / 2) as f64, size as f64));
    Ok(())
}

pub fn functions_in_the_order_of_ranks(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let fold = |ranks: std::ops::Range<usize>| ranks.map(affine).reduce(compose).unwrap();
    let own = [affine(rank), affine(rank + 1)];
    for root in 0..size {
        let result = job.reduce_with(root, &own, compose)?;
        assert_eq!(result.map(|r| r[0]), (rank == root).then(|| fold(0..size)));
    }
    let all = job.allreduce_with(&own, compose)?;
    assert_eq!(all, [fold(0..size), fold(1..size + 1)]);
    let scan = job.scan_with(&own, compose)?;
    assert_eq!(scan, [fold(0..rank + 1), fold(1..rank + 2)]);
    Ok(())
}

/// Many at once, completed in another order, among blocking ones and those of another communicator.
pub fn many_at_once(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let other = job.dup()?;
    let mut sums: Vec<Request<Vec<u64>>> = Vec::new();
    for i in 0..40u64 {
        let comm: &Communicator = if i % 3 == 0 { &other } else { job };
        sums.push(comm.iallreduce(Sum, &[i, rank as u64]));
        if i % 8 == 0 {
            job.barrier()?;
        }
    }
    let large = job.iallgather(&data(rank, 20_000));
    let ranks = ranks(size);
    for (i, request) in sums.drain(10..).enumerate().rev() {
        assert_eq!(request.wait()?, [(i as u64 + 10) * size as u64, ranks]);
    }
    let mut done = Vec::new();
    let mut left: Vec<u64> = (0..10).collect();
    while let Some((place, sum)) = transom::wait_any(&mut sums)? {
        let i = left.remove(place);
        assert_eq!(sum, [i * size as u64, ranks]);
        done.push(i);
    }
    assert_eq!(done.len(), 10);
    assert!(large.wait()?.iter().enumerate().all(|(r, block)| *block == data(r, 20_000)));
    let mut barriers: Vec<Request<()>> = (0..4).map(|_| job.ibarrier()).collect();
    while transom::test_all(&mut barriers)?.is_none() {
        std::thread::yield_now();
    }
    let mut barriers: Vec<Request<()>> = (0..4).map(|_| job.ibarrier()).collect();
    while !barriers.is_empty() {
        assert!(!transom::wait_some(&mut barriers)?.is_empty());
    }
    // One that nobody looks at goes on, too.
    drop(job.ibarrier());
    job.barrier()
}

/// Nonblocking collectives do not match blocking ones (MPI-4.1 §6.12): ranks may have them in different orders.
pub fn forms_match_apart(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for round in 0..20 {
        let early = rank == round % size;
        let started = early.then(|| job.iallreduce(Sum, &[1u64]));
        job.barrier()?;
        let sum = started.unwrap_or_else(|| job.iallreduce(Sum, &[1]));
        assert_eq!(
            (sum.wait()?, job.allreduce(Sum, &[rank as u64])?),
            (vec![size as u64], vec![ranks(size)])
        );
    }
    Ok(())
}

fn ranks(size: usize) -> u64 {
    (size * (size - 1) / 2) as u64
}

/// Unparks a thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A smallest executor: sleeps until it is woken, and polls nothing of the runtime.
pub fn block_on<R>(future: impl Future<Output = R>) -> R {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        std::thread::park();
    }
}

pub fn awaited(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    block_on(async {
        for round in 0..30u64 {
            let sum = job.iallreduce(Sum, &[round]);
            let all = job.iallgather(&[rank as u16]);
            assert_eq!(all.await?.concat(), (0..size as u16).collect::<Vec<_>>());
            assert_eq!(sum.await?, [round * size as u64]);
        }
        // Ranks that come late: those that await sleep until then.
        if rank == size - 1 {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        job.ibarrier().await
    })
}

pub fn wrong_arguments(job: &Job) -> Result<()> {
    let size = job.size();
    fn class<T>(result: Result<T>) -> Class {
        result.map(drop).unwrap_err().class()
    }
    assert_eq!(class(job.gather(size, &[1])), Class::Rank);
    assert_eq!(class(job.scatter::<u8>(size, None)), Class::Rank);
    assert_eq!(class(job.reduce(size, Sum, &[1])), Class::Rank);
    assert_eq!(class(job.ireduce(usize::MAX, Sum, &[1]).wait()), Class::Rank);
    assert_eq!(class(job.scatter(job.rank(), Some(&vec![vec![1]; size + 1]))), Class::Count);
    assert_eq!(class(job.alltoall(&vec![vec![1]; size + 1])), Class::Count);
    assert_eq!(class(job.reduce_scatter(Sum, &[1], &vec![0; size])), Class::Count);
    assert_eq!(class(job.reduce_scatter(Sum, &[1], &vec![usize::MAX; size])), Class::Count);
    // Nothing was sent, nothing was counted.
    job.barrier()
}
