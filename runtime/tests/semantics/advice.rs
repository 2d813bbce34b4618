//! The advice to users behind the rules: programs that follow it are correct.

use transom::{Assert, Job, LockKind, Result, Sum, WindowOptions};

use super::setting::{Pair, each, public};

fn neighbours(job: &Job) -> (usize, usize) {
    let (rank, size) = (job.rank(), job.size());
    ((rank + size - 1) % size, (rank + 1) % size)
}

/// Between two fences a window is either updated by others or by stores; what is got is not updated.
pub fn advice_fence(job: &Job) -> Result<()> {
    const LEN: usize = 100;
    let (left, right) = neighbours(job);
    each(job, LEN + 1, |window| {
        let rma = window.explicit();
        rma.fence(Assert::NOPRECEDE)?;
        for round in 1..=15 {
            let of = |rank: usize| vec![round * 1000 + rank as u64; LEN];
            // Stores.
            window.local().write(0, &of(job.rank()))?;
            rma.fence(Assert::NOPUT)?;
            // Gets, and loads of the same.
            let mut got = [0; LEN];
            rma.get(right, 0, &mut got)?;
            assert_eq!(window.local().get(0)?, of(job.rank())[0]);
            rma.fence(Assert::NOSTORE)?;
            assert_eq!(got[..], of(right));
            // Puts, and accumulates at one place.
            rma.put(right, 0, &of(job.rank()))?;
            rma.accumulate(0, LEN, Sum, &[1])?;
            rma.fence(Assert::NOSTORE)?;
            assert_eq!(window.local().to_vec()?[..LEN], of(left));
            let count = if job.rank() == 0 { round * job.size() as u64 } else { 0 };
            assert_eq!(window.local().get(LEN)?, count);
        }
        rma.fence(Assert::NOSTORE | Assert::NOPUT | Assert::NOSUCCEED)
    })
}

/// Post says that a window may be accessed, wait that it has been. In a ring, each rank being both.
pub fn advice_pscw(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    each(job, 3, |window| {
        let rma = window.explicit();
        for round in 1..=15 {
            let of = |rank: usize| round * 1000 + rank as u64;
            window.local().set(0, of(job.rank()))?;
            rma.post(&[left], Assert::NONE)?;
            rma.start(&[right], Assert::NONE)?;
            let mut got = [0];
            rma.get(right, 0, &mut got)?;
            assert_eq!(got[0], of(right), "stored before the post");
            rma.put(right, 1, &[of(job.rank())])?;
            rma.accumulate(right, 2, Sum, &[round])?;
            // A location that is only got may be loaded.
            assert_eq!(window.local().get(0)?, of(job.rank()));
            rma.complete()?;
            rma.wait()?;
            assert_eq!(window.local().to_vec()?, [of(job.rank()), of(left), (1..=round).sum()]);
        }
        Ok(())
    })
}

/// Updates that conflict under exclusive locks, local ones, too; what does not conflict under shared locks.
pub fn advice_lock(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 8;
    let size = job.size() as u64;
    each(job, 2, |window| {
        for _ in 0..ROUNDS {
            for target in 0..job.size() {
                window.lock(LockKind::Exclusive, target, |epoch| {
                    if target == job.rank() {
                        let value = window.local().get(0)?;
                        return window.local().set(0, value + 1);
                    }
                    let value = epoch.get_value(target, 0)?;
                    epoch.put_value(target, 0, value + 1)
                })?;
                window.lock(LockKind::Shared, target, |epoch| epoch.accumulate(target, 1, Sum, &[1]))?;
            }
        }
        job.barrier()?;
        for target in 0..job.size() {
            assert_eq!(public(window, target, 0)?, ROUNDS * size);
        }
        window.lock(LockKind::Shared, job.rank(), |_| {
            assert_eq!(window.local().to_vec()?, [ROUNDS * size; 2]);
            Ok(())
        })?;
        job.barrier()
    })
}

/// One location by fences, then locks, then post and start, then through another window, and again: the copies are the same
/// whenever the mode changes.
pub fn advice_changing_mode(job: &Job) -> Result<()> {
    let pair = Pair::of(job);
    each(job, 3, |window| {
        let other = window.overlapping(0..3, &WindowOptions::default().model(window.model()))?;
        let mut value = 0;
        for _ in 0..5 {
            value += 1;
            window.fence(|epoch| if pair.is_a() { epoch.put_value(pair.b, 0, value) } else { Ok(()) })?;
            assert!(!pair.is_b() || window.local().get(0)? == value);
            job.barrier()?;
            if pair.is_a() {
                value = window.lock(LockKind::Exclusive, pair.b, |epoch| {
                    let value = epoch.get_value(pair.b, 0)? + 1;
                    epoch.put_value(pair.b, 0, value).map(|()| value)
                })?;
                value += 1;
                window.start(&[pair.b], |epoch| {
                    assert_eq!(epoch.get_value(pair.b, 0)?, value - 1);
                    epoch.put_value(pair.b, 0, value)
                })?;
                value += 1;
                other.start(&[pair.b], |epoch| {
                    assert_eq!(epoch.get_value(pair.b, 0)?, value - 1);
                    epoch.put_value(pair.b, 0, value)
                })?;
            }
            if pair.is_b() {
                window.expose(&[pair.a], |_| Ok(()))?;
                assert_eq!(window.local().get(0)?, value + 2);
                other.expose(&[pair.a], |_| Ok(()))?;
                value += 3;
                assert_eq!(window.local().get(0)?, value);
            }
        }
        other.free()
    })
}
