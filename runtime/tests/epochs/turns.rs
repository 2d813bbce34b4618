//! Operations that go different ways, epoch after epoch, to the same memory: none of a later epoch is overtaken by one before.

use transom::{Assert, Datatype, Explicit, Job, Layout, Replace, Result, Sum};

use super::each::each;
use super::random::Random;

/// More than travels with other messages, and than one message takes.
const LARGE: usize = 5_000;
const ROUNDS: u64 = 30;
/// Epochs of a round.
const EPOCHS: u64 = 4;
const NONE: Assert = Assert::NONE;

/// Elements of `value` are stored from element 0 on, by one of several ways; how many. The last element counts epochs.
fn store(rma: &Explicit<'_, u64>, target: usize, way: usize, value: u64) -> Result<usize> {
    rma.accumulate(target, LARGE, Sum, &[1])?;
    match way {
        0 => rma.put(target, 0, &[value]).map(|()| 1),
        1 => rma.accumulate(target, 0, Replace, &[value; 3]).map(|()| 3),
        2 => rma.put(target, 0, &[value; LARGE]).map(|()| LARGE),
        3 => rma.put(target, 0, &[value; 100]).map(|()| 100),
        4 => {
            let number = Datatype::of::<u64>();
            let pairs = Datatype::vector(20, 2, 2, &number)?;
            rma.put_as(target, 0, &[value; 40], Layout::new(40, &number), Layout::new(1, &pairs))?;
            Ok(40)
        }
        5 => {
            rma.accumulate(target, 0, Replace, &[0])?;
            assert_eq!(rma.fetch_op(target, 0, Replace, value)?, 0);
            Ok(1)
        }
        _ => {
            // Small ones before and behind a large one, to other elements.
            rma.put(target, 0, &[value])?;
            rma.put(target, 1, &[value; LARGE - 2])?;
            rma.put(target, LARGE - 1, &[value])?;
            Ok(LARGE)
        }
    }
}

/// Epochs that `epoch` opens and closes, at all ranks, around what accesses the right neighbour.
fn turns(
    job: &Job,
    epoch: impl Fn(&Explicit<'_, u64>, &dyn Fn() -> Result<()>) -> Result<()>,
    between: impl Fn(&Explicit<'_, u64>) -> Result<()>,
) -> Result<()> {
    let (right, left) = ((job.rank() + 1) % job.size(), (job.rank() + job.size() - 1) % job.size());
    each(job, LARGE + 1, |window| {
        let (rma, expected) = (window.explicit(), std::cell::RefCell::new(vec![0u64; LARGE]));
        // What the left neighbour does is known here, too.
        let (mut own, mut theirs) = (Random(right as u64), Random(job.rank() as u64));
        for round in 0..ROUNDS {
            for turn in 0..EPOCHS {
                let value = round * EPOCHS + turn + 1;
                let way = own.below(7);
                epoch(&rma, &|| store(&rma, right, way, value).map(drop))?;
                let stored = [1, 3, LARGE, 100, 40, 1, LARGE][theirs.below(7)];
                expected.borrow_mut()[..stored].fill(value);
            }
            let found = window.local().to_vec()?;
            assert!(found[..LARGE] == expected.borrow()[..], "of rank {left} in round {round}");
            assert_eq!(found[LARGE], (round + 1) * EPOCHS);
            between(&rma)?;
        }
        Ok(())
    })
}

pub fn by_fences(job: &Job) -> Result<()> {
    let fence = |rma: &Explicit<'_, u64>, body: &dyn Fn() -> Result<()>| {
        rma.fence(NONE)?;
        body()?;
        rma.fence(Assert::NOSUCCEED)
    };
    turns(job, fence, |_| job.barrier())?;
    // One fence between two epochs; the memory is looked at between two in which nothing is done.
    let open = |rma: &Explicit<'_, u64>, body: &dyn Fn() -> Result<()>| {
        body()?;
        rma.fence(NONE)
    };
    turns_in_one_epoch(job, open)
}

/// As [`turns`], with a fence open all the time.
fn turns_in_one_epoch(
    job: &Job,
    epoch: impl Fn(&Explicit<'_, u64>, &dyn Fn() -> Result<()>) -> Result<()>,
) -> Result<()> {
    let first = std::cell::Cell::new(true);
    turns(
        job,
        |rma, body| {
            if first.replace(false) {
                rma.fence(Assert::NOPRECEDE)?;
            }
            epoch(rma, body)
        },
        |rma| {
            first.set(true);
            rma.fence(Assert::NOSUCCEED)?;
            job.barrier()
        },
    )
}

pub fn by_starts_and_posts(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let epoch = |rma: &Explicit<'_, u64>, body: &dyn Fn() -> Result<()>| {
        rma.post(&[left], NONE)?;
        rma.start(&[right], NONE)?;
        body()?;
        rma.complete()?;
        rma.wait()
    };
    turns(job, epoch, |_| job.barrier())
}
