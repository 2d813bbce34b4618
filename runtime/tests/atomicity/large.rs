//! Large accumulates, and such of derived types, while single elements of theirs are updated: all are exact.

use transom::*;
use zerocopy::IntoBytes;

use super::values::small;
use super::{Memory, count, is_slow, window};

/// Bytes of each: a megabyte, unless an emulated device updates them one by one.
fn bytes() -> usize {
    if is_slow() { 1 << 15 } else { 1 << 20 }
}

const ROUNDS: usize = 2;
/// Elements between two that are updated singly.
const STRIDE: usize = 997;

pub fn run(job: &Job) -> Result<()> {
    for created in [false, true] {
        for start in [0, 3] {
            let window = window(job, created, bytes() + 64)?;
            updates::<u32>(job, &window, start)?;
            updates::<f64>(job, &window, start)?;
            updates::<Complex<f64>>(job, &window, start)?;
            updates::<LongDouble>(job, &window, start)?;
            window.free()?;
        }
    }
    Ok(())
}

fn updates<T: Arithmetic>(job: &Job, window: &Memory, start: usize) -> Result<()> {
    let len = bytes() / size_of::<T>();
    if job.rank() == 0 {
        window.local().write(0, &vec![ComplexLongDouble::default(); window.len()])?;
    }
    window.sync()?;
    job.barrier()?;
    let element = Datatype::of::<T>();
    // Every other element: half as many pieces as elements.
    let sparse = Datatype::vector(len / 2, 1, 2, &element)?;
    let ones = vec![small::<T>(1); len];
    let (all, half) = (Layout::new(len, &element), Layout::new(len / 2, &element));
    for round in 0..ROUNDS {
        window.lock_all(|epoch| {
            if (round + job.rank()).is_multiple_of(2) {
                epoch.accumulate_as(0, start, ReduceOp::Sum, ones.as_bytes(), all, all)?;
            } else {
                let to = Layout::new(1, &sparse);
                let data = ones[..len / 2].as_bytes();
                epoch.accumulate_as(0, start, ReduceOp::Sum, data, half, to)?;
            }
            (0..len).step_by(STRIDE).try_for_each(|i| {
                epoch.fetch_op_of(0, start + i * size_of::<T>(), Sum, small::<T>(1)).map(drop)
            })
        })?;
        count(if (round + job.rank()).is_multiple_of(2) { len } else { len / 2 } + len.div_ceil(STRIDE));
    }
    job.barrier()?;
    if job.rank() == 0 {
        let memory = window.local().to_vec()?;
        let bytes = &memory.as_bytes()[start..start + len * size_of::<T>()];
        let ranks = job.size() * ROUNDS;
        for (i, element) in bytes.chunks(size_of::<T>()).enumerate() {
            let whole = ranks / 2 + if i.is_multiple_of(2) { ranks / 2 } else { 0 };
            let expected = whole + if i.is_multiple_of(STRIDE) { ranks } else { 0 };
            let now = T::read_from_bytes(element).unwrap();
            assert!(now == small(expected as u8), "{:?} {i} at {start}, {expected} expected", T::TYPE);
        }
    }
    job.barrier()
}
