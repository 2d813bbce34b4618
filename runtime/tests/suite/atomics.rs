//! Accumulate, get_accumulate, fetch_and_op, compare_and_swap.

use transom::*;

/// Every rank applies `op` to elements of rank 0; the result does not depend on the order for the values chosen.
fn check<T: Number + std::fmt::Debug, O: Operation<T>>(
    job: &Job,
    op: O,
    value: fn(usize) -> T,
) -> Result<()> {
    const LEN: usize = 5;
    for created in [false, true] {
        let start = vec![value(1); LEN];
        let window = if created { job.create(start.clone())? } else { job.allocate::<T>(LEN)? };
        window.local().write(0, &start)?;
        job.barrier()?;
        let operands: Vec<T> = (0..LEN).map(|_| value(job.rank() + 2)).collect();
        let mut old = [value(0); 2];
        window.lock_all(|epoch| {
            epoch.accumulate(0, 0, op, &operands[..2])?;
            epoch.get_accumulate(0, 2, op, &operands[..2], &mut old)?;
            epoch.fetch_op(0, 4, op, operands[0]).map(drop)
        })?;
        job.barrier()?;
        if job.rank() == 0 {
            let orders: Vec<T> = [false, true]
                .map(|backwards| {
                    let mut result = value(1);
                    for i in 0..job.size() {
                        let rank = if backwards { job.size() - 1 - i } else { i };
                        result = T::reduce(O::OP, result, value(rank + 2));
                    }
                    result
                })
                .to_vec();
            for element in window.local().to_vec()? {
                // REPLACE keeps whichever came last.
                let any = O::OP == ReduceOp::Replace && (0..job.size()).any(|r| element == value(r + 2));
                assert!(any || orders.contains(&element), "{:?} on {:?}: {element:?}", O::OP, T::TYPE);
            }
        }
        let fetched = window.lock_all(|epoch| epoch.fetch(0, 4))?;
        job.barrier()?;
        if job.rank() == 0 {
            assert_eq!(fetched, window.local().get(4)?);
        }
        window.free()?;
    }
    Ok(())
}

pub fn every_operation_on_every_type(job: &Job) -> Result<()> {
    macro_rules! all {
        ($ops:tt: $($t:ty),*) => { $( all!(@ $t, $ops); )* };
        (@ $t:ty, [$($op:ident),*]) => { $( check::<$t, _>(job, $op, |i| (i % 3) as $t)?; )* };
    }
    all!([Sum, Prod, Min, Max, Land, Lor, Lxor, Band, Bor, Bxor, Replace, NoOp]: i8, u8, i16, u16, i32, u32, i64, u64);
    all!([Sum, Prod, Min, Max, Replace, NoOp]: f32, f64);
    Ok(())
}

/// All kinds of updates to the same words from all ranks, the owner included: none is lost.
pub fn mixed_updates_are_exact(job: &Job) -> Result<()> {
    const ROUNDS: usize = 400;
    for window in [job.allocate::<i32>(16)?, job.create(vec![0i32; 16])?] {
        window.lock_all(|epoch| {
            for round in 0..ROUNDS {
                let target = round % job.size();
                epoch.fetch_add(target, 0, 1)?;
                epoch.accumulate(target, 0, Sum, &[1; 16])?;
                epoch.get_accumulate(target, 0, Sum, &[1, 1], &mut [0, 0])?;
                let mut old = epoch.fetch(target, 0)?;
                loop {
                    match epoch.compare_and_swap(target, 0, old, old + 1)? {
                        now if now == old => break,
                        now => old = now,
                    }
                }
            }
            epoch.flush_all()
        })?;
        job.barrier()?;
        let visits = (ROUNDS / job.size() + usize::from(job.rank() < ROUNDS % job.size())) * job.size();
        let mut expected = [visits as i32; 16];
        expected[0] = 4 * visits as i32;
        expected[1] = 2 * visits as i32;
        assert_eq!(window.reclaim()?, expected);
    }
    Ok(())
}

pub fn large_accumulates_are_atomic(job: &Job) -> Result<()> {
    const LEN: usize = 40_000;
    let unordered = WindowOptions::default().with("accumulate_ordering", "none");
    for window in [
        job.allocate::<f64>(LEN)?,
        job.create(vec![0f64; LEN])?,
        job.create_with(vec![0f64; LEN], &unordered)?,
    ] {
        let ones = vec![1.0; LEN];
        for _ in 0..4 {
            window.lock_all(|epoch| {
                // In two parts, which the target may apply in any order.
                epoch.accumulate(0, 0, Sum, &ones[..LEN / 2])?;
                epoch.accumulate(0, LEN / 2, Sum, &ones[LEN / 2..])?;
                for i in 0..50 {
                    epoch.fetch_add(0, i * 700, 1.0)?;
                }
                Ok(())
            })?;
        }
        job.barrier()?;
        let memory = window.reclaim()?;
        if job.rank() == 0 {
            let times = 4.0 * job.size() as f64;
            let expected = |i: usize| if i.is_multiple_of(700) && i < 35_000 { 2.0 * times } else { times };
            assert!(memory.iter().enumerate().all(|(i, x)| *x == expected(i)));
        }
    }
    Ok(())
}

/// Elements of one layout, of which a network device updates some (the aligned ones) and CPUs others: each result is in its
/// place.
pub fn results_of_aligned_and_misaligned_elements(job: &Job) -> Result<()> {
    const PLACES: [i64; 5] = [8, 17, 32, 41, 56];
    let element = Datatype::of::<i64>();
    let there = Datatype::hindexed(&PLACES.map(|at| (1, at)), &element)?;
    let dense = Layout::new(PLACES.len(), &element);
    let window = job.allocate::<u8>(64)?;
    let target = (job.rank() + 1) % job.size();
    let bytes = |of: fn(i64) -> i64| PLACES.iter().flat_map(|at| of(*at).to_ne_bytes()).collect::<Vec<u8>>();
    let mut old = vec![0xaa; 8 * PLACES.len()];
    window.lock_all(|epoch| {
        epoch.accumulate_as(target, 0, ReduceOp::Sum, &bytes(|at| at), dense, Layout::new(1, &there))?;
        let to = Layout::new(1, &there);
        epoch.get_accumulate_as(target, 0, ReduceOp::Bxor, &bytes(|_| 1), dense, &mut old, dense, to)?;
        assert_eq!(old, bytes(|at| at));
        let to = Layout::new(1, &there);
        epoch.get_accumulate_as(target, 0, ReduceOp::NoOp, &bytes(|_| 0), dense, &mut old, dense, to)
    })?;
    assert_eq!(old, bytes(|at| at ^ 1));
    window.free()
}

/// What is fetched goes where the result's layout says, and nowhere else: in one run, in pieces, around padding.
pub fn results_stay_in_their_layouts(job: &Job) -> Result<()> {
    type Place = fn(usize) -> usize;
    const LEN: usize = 301;
    const ROOM: usize = 400;
    let byte = Datatype::of::<u8>();
    let dense = Layout::new(LEN, &byte);
    let ahead = Datatype::hindexed(&[(LEN, 5)], &byte)?;
    let pieces = Datatype::vector(43, 7, 9, &byte)?;
    let places: [(Layout<'_>, Place); 3] = [
        (dense, |i| i),
        (Layout::new(1, &ahead), |i| i + 5),
        (Layout::new(1, &pieces), |i| i / 7 * 9 + i % 7),
    ];
    let window = job.allocate::<u8>(ROOM)?;
    let target = (job.rank() + 1) % job.size();
    let operands: Vec<u8> = (0..LEN).map(|i| i as u8).collect();
    window.lock_all(|epoch| {
        for (round, (layout, place)) in places.into_iter().enumerate() {
            let (mut old, mut expected) = (vec![0xaa; ROOM], vec![0xaa; ROOM]);
            (0..LEN).for_each(|i| expected[place(i)] = (i * round) as u8);
            epoch.get_accumulate_as(target, 3, ReduceOp::Sum, &operands, dense, &mut old, layout, dense)?;
            assert_eq!(old, expected, "round {round}");
        }
        let pair = Datatype::of::<I16I32>();
        let two = Layout::new(2, &pair);
        let operands = [I16I32::new(1, 2), I16I32::new(3, 4)];
        let (found, mut old) = ([0, 0, 0xaa, 0xaa, 0, 0, 0, 0], [0xaa; 16]);
        let bytes = operands.map(|pair| [pair.value as u8, 0, 0, 0, pair.index as u8, 0, 0, 0]).concat();
        epoch.get_accumulate_as(target, 320, ReduceOp::MaxLoc, &bytes, two, &mut old, two, two)?;
        assert_eq!(old.as_chunks().0, [found; 2]);
        Ok(())
    })?;
    window.free()
}
