//! Operations with requests: every one of them, completed in every way (ompi#1869, mpich#1801, #1910, #1741).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use transom::{Assert, Class, Job, LockKind, NULL_RANK, Request, Result, Sum, Window, wait_all};

/// The neighbours of a rank in a ring.
fn neighbours(job: &Job) -> (usize, usize) {
    let (rank, size) = (job.rank(), job.size());
    ((rank + size - 1) % size, (rank + 1) % size)
}

/// How a request is completed.
#[derive(Debug, Clone, Copy)]
enum Way {
    Wait,
    Test,
    Flush,
    Unlock,
    Await,
}

const WAYS: [Way; 5] = [Way::Wait, Way::Test, Way::Flush, Way::Unlock, Way::Await];

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor of one task.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn finish<T: 'static>(way: Way, request: Request<T>, flush: impl FnOnce() -> Result<()>) -> Result<T> {
    match way {
        Way::Wait => request.wait(),
        Way::Test => loop {
            if let Some(result) = request.test() {
                return result;
            }
        },
        Way::Flush | Way::Unlock => {
            flush()?;
            assert!(request.is_done(), "a flush or unlock completes the requests of its epoch");
            request.wait()
        }
        Way::Await => block_on(request),
    }
}

/// More elements than a message takes; not so many where an emulated device updates them one by one.
fn long() -> usize {
    let by_device = std::env::var("TRANSOM_TRANSPORT").is_ok_and(|transports| transports.contains("verbs"));
    if by_device { 2500 } else { 20_000 }
}

pub fn every_request_in_every_way(job: &Job) -> Result<()> {
    for window in [job.allocate::<u64>(40_000)?, job.create(vec![0u64; 40_000])?] {
        for len in [1, 100, long()] {
            for way in WAYS {
                in_one_way(job, &window, way, len)?;
            }
        }
        window.free()?;
    }
    Ok(())
}

fn in_one_way(job: &Job, window: &Window<u64>, way: Way, len: usize) -> Result<()> {
    let (left, right) = neighbours(job);
    let rma = window.explicit();
    let data: Vec<u64> = (0..len as u64).map(|i| i + job.rank() as u64).collect();
    let from_left: Vec<u64> = (0..len as u64).map(|i| i + left as u64).collect();
    let unlock_between = || {
        if matches!(way, Way::Unlock) {
            rma.unlock(right)?;
            return rma.lock(LockKind::Shared, right, Assert::NONE);
        }
        rma.flush(right)
    };
    rma.lock(LockKind::Shared, right, Assert::NONE)?;
    assert_eq!(finish(way, rma.rput(right, 0, data.clone())?, unlock_between)?, data);
    rma.flush(right)?;
    assert_eq!(finish(way, rma.rget(right, 0, len)?, unlock_between)?, data);
    let twice: Vec<u64> = data.iter().map(|x| 2 * x).collect();
    finish(way, rma.raccumulate(right, 0, Sum, data.clone())?, unlock_between)?;
    let old = finish(way, rma.rget_accumulate(right, 0, Sum, &data)?, unlock_between)?;
    assert_eq!(old, twice);
    rma.unlock(right)?;
    job.barrier()?;
    let now = window.local().to_vec()?;
    assert!(now.iter().zip(&from_left).all(|(now, put)| *now == 3 * put));
    job.barrier()
}

pub fn many_requests_at_once(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    let window = job.allocate::<u32>(1000)?;
    window.lock_all(|epoch| {
        let puts = (0..1000).map(|i| epoch.rput(right, i, vec![(job.rank() * 1000 + i) as u32]));
        let back = wait_all(puts.collect::<Result<Vec<_>>>()?)?;
        assert_eq!(back[999], [(job.rank() * 1000 + 999) as u32]);
        epoch.flush(right)?;
        let sums = (0..1000).map(|i| epoch.rfetch_op(right, i, Sum, 1));
        let old = wait_all(sums.collect::<Result<Vec<_>>>()?)?;
        assert_eq!(old[7], (job.rank() * 1000 + 7) as u32);
        // Dropped requests go on.
        drop(epoch.rget(right, 0, 1000)?);
        drop(epoch.rput(right, 5, vec![1])?);
        epoch.rput(NULL_RANK, 0, vec![1])?.wait()?;
        assert!(epoch.rget(NULL_RANK, 0, 3)?.wait()?.is_empty());
        Ok(())
    })?;
    job.barrier()?;
    assert_eq!(window.local().get(5)?, 1);
    assert_eq!(window.local().get(999)?, (left * 1000 + 1000) as u32);
    let outside = window.fence(|epoch| epoch.rput(right, 0, vec![1]).map(drop)).unwrap_err();
    assert_eq!(outside.class(), Class::RmaSync);
    window.lock_all(|epoch| {
        assert_eq!(epoch.rput(right, 999, vec![1, 2]).unwrap_err().class(), Class::RmaRange);
        assert_eq!(epoch.rget(right, 0, usize::MAX).unwrap_err().class(), Class::RmaRange);
        assert_eq!(epoch.rget(job.size(), 0, 1).unwrap_err().class(), Class::Rank);
        Ok(())
    })?;
    window.free()
}
