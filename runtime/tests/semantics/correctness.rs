//! The three rules that "a correct program must obey": programs that come as near to their edge as they may.

use transom::{Bor, Job, LockKind, NoOp, Result, Sum, Window};

use super::setting::{Pair, each, public};

/// Rule 1: a location is not accessed locally from the start of an update until the update is visible in the private copy.
/// The owner loads right before the update may start and right after it is visible, and other locations in between.
pub fn correctness_1(job: &Job) -> Result<()> {
    let pair = Pair::of(job);
    each(job, 2, |window| {
        window.local().set(1, 77)?;
        window.sync()?;
        for round in 1..=30 {
            if pair.is_b() {
                assert_eq!(window.local().get(0)?, round - 1);
                window.expose(&[pair.a], |local| {
                    assert_eq!(local.get(1)?, 77);
                    Ok(())
                })?;
                assert_eq!(window.local().get(0)?, round);
            }
            if pair.is_a() {
                window.start(&[pair.b], |epoch| epoch.put_value(pair.b, 0, round))?;
            }
        }
        Ok(())
    })
}

/// Rule 2: a location is not the target of two operations at once, except of accumulates: all ranks add to one element,
/// and fetch it, at the same time, and nothing is lost.
pub fn correctness_2(job: &Job) -> Result<()> {
    const ROUNDS: u64 = 50;
    let size = job.size() as u64;
    each(job, 8, |window| {
        window.lock_all(|epoch| {
            let mut seen = 0;
            for _ in 0..ROUNDS {
                epoch.accumulate(0, 0, Sum, &[1; 8])?;
                epoch.fetch_op(0, 3, Sum, 1)?;
                let mut now = [0];
                epoch.get_accumulate(0, 0, NoOp, &[0], &mut now)?;
                assert!(now[0] >= seen && now[0] <= ROUNDS * size);
                seen = now[0];
            }
            Ok(())
        })?;
        job.barrier()?;
        window.sync()?;
        if job.rank() == 0 {
            let mut expected = [ROUNDS * size; 8];
            expected[3] *= 2;
            assert_eq!(window.local().to_vec()?, expected);
        }
        job.barrier()
    })
}

/// As rule 2 in MPI-3 and later, with accumulate_ops as by default here: different operations at once are atomic, too. Half
/// of the ranks count in the low bits, the others set high ones.
pub fn correctness_2_different_operations(job: &Job) -> Result<()> {
    const ROUNDS: usize = 32;
    each(job, 1, |window| {
        window.fence(|epoch| {
            for round in 0..ROUNDS {
                if job.rank().is_multiple_of(2) {
                    epoch.accumulate(0, 0, Sum, &[1])?;
                } else {
                    epoch.accumulate(0, 0, Bor, &[1 << (32 + round)])?;
                }
            }
            Ok(())
        })?;
        if job.rank() == 0 {
            let counting = job.size().div_ceil(2) * ROUNDS;
            let high = if job.size() > 1 { 0xffff_ffff << 32 } else { 0 };
            assert_eq!(window.local().get(0)?, high | counting as u64);
        }
        job.barrier()
    })
}

/// Rule 3: stores and puts to one window, though to disjoint locations, are separated: here by an exclusive lock.
pub fn correctness_3(job: &Job) -> Result<()> {
    let pair = Pair::of(job);
    each(job, 64, |window| {
        for round in 1..=40 {
            // Neighbouring bytes and words, which a second copy must not mix up.
            let at = (round as usize * 2) % 64;
            if pair.is_a() {
                window.lock(LockKind::Exclusive, pair.b, |epoch| epoch.put_value(pair.b, at, round))?;
            }
            if pair.is_b() {
                window.lock(LockKind::Exclusive, pair.b, |_| window.local().set(at + 1, round << 32))?;
            }
        }
        job.barrier()?;
        check_both_copies(job, window, pair)
    })
}

fn check_both_copies(job: &Job, window: &Window<u64>, pair: Pair) -> Result<()> {
    // The last round that came to an even place: rounds 9 to 40 cover all of them once more.
    let last = |at: usize| (1..=40u64).rev().find(|round| (*round as usize * 2) % 64 == at & !1).unwrap_or(0);
    let expected: Vec<u64> = (0..64).map(|at| if at % 2 == 0 { last(at) } else { last(at) << 32 }).collect();
    if pair.is_a() {
        for (at, value) in expected.iter().enumerate() {
            assert_eq!(public(window, pair.b, at)?, *value, "public copy at {at}");
        }
    }
    if pair.is_b() {
        window.lock(LockKind::Shared, pair.b, |_| {
            assert_eq!(window.local().to_vec()?, expected);
            Ok(())
        })?;
    }
    job.barrier()
}

/// Rule 3 by fences: periods of stores and periods of puts in turn.
pub fn correctness_3_by_fences(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    each(job, 2, |window| {
        for round in 1..=20 {
            let of = |rank: usize| round * 100 + rank as u64;
            window.fence(|epoch| epoch.put_value(right, 0, of(rank)))?;
            window.local().set(1, window.local().get(0)? + 1)?;
            window.fence(|epoch| {
                assert_eq!(epoch.get_value(right, 1)?, of(rank) + 1);
                assert_eq!(epoch.get_value(right, 0)?, of(rank));
                Ok(())
            })?;
            assert_eq!(window.local().to_vec()?, [of(left), of(left) + 1]);
        }
        Ok(())
    })
}
