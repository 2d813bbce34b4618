//! Every operation on every type by all kinds of calls, on a few elements of every rank: the result is exact.

use transom::*;
use zerocopy::IntoBytes;

use super::values::small;
use super::{Memory, RANKS, count, is_fast, is_slow, window};

/// Elements at each rank.
const ELEMENTS: usize = 4;
/// Updates of all elements of some rank, by each rank: fewer where each is a message.
fn steps() -> usize {
    match () {
        () if is_fast() => 96,
        () if is_slow() => RANKS,
        () => 32,
    }
}

/// Behind the largest elements.
const BYTES: usize = 256;

/// A compare-and-swap, of types that have it.
type Swap<B> = fn(&Epoch<'_, '_, ComplexLongDouble>, usize, usize, B, B) -> Result<B>;

pub fn run(job: &Job) -> Result<()> {
    for created in [false, true] {
        let window = window(job, created, BYTES)?;
        // Aligned, and not; where time is short each in one kind of memory.
        for start in [0, 3].into_iter().filter(|start| !is_slow() || created == (*start > 0)) {
            every_type(job, &window, start)?;
        }
        window.free()?;
    }
    Ok(())
}

fn every_type(job: &Job, window: &Memory, start: usize) -> Result<()> {
    macro_rules! of {
        ([$($T:ty),*] $ops:tt $swap:tt) => { $(of!(@ $T, $ops, $swap);)* };
        (@ $T:ty, [$($op:ident)*], swap) => {
            $(check::<$T, _>(job, window, start, $op, Some(|epoch, target, at, old, new| {
                epoch.compare_and_swap_of(target, at, old, new)
            }))?;)*
        };
        (@ $T:ty, [$($op:ident)*], none) => { $(check::<$T, _>(job, window, start, $op, None)?;)* };
    }
    of!([i8, i16, i32, i64, u8, u16, u32, u64]
        [Sum Prod Min Max Land Lor Lxor Band Bor Bxor Replace NoOp] swap);
    of!([f32, f64, LongDouble] [Sum Prod Min Max Replace NoOp] none);
    of!([Complex<f32>, Complex<f64>, ComplexLongDouble] [Sum Prod Replace NoOp] none);
    of!([Flag] [Land Lor Lxor Replace NoOp] swap);
    of!([Byte] [Band Bor Bxor Replace NoOp] swap);
    of!([Char, WideChar] [Replace NoOp] swap);
    of!([F32I32, F64I32, I64I32, I32I32, I16I32, F80I32] [MinLoc MaxLoc Replace NoOp] none);
    Ok(())
}

/// What a rank does to a target in a step.
fn operand<B: Basic>(op: ReduceOp, rank: usize, step: usize) -> B {
    match op {
        // Few factors, so that floating products stay exact.
        ReduceOp::Prod => small(if step < 2 { 2 } else { 1 }),
        // By this the last one is known.
        ReduceOp::Replace => small(if step + RANKS >= steps() { 10 + rank as u8 } else { 1 }),
        _ => small((rank + step / 3) as u8 % 4),
    }
}

fn check<B: Basic, O: Operation<B>>(
    job: &Job,
    window: &Memory,
    start: usize,
    op: O,
    swap: Option<Swap<B>>,
) -> Result<()> {
    let first: B = small(1);
    let size = size_of::<B>();
    window.lock_all(|epoch| {
        let first = [first; ELEMENTS];
        let row = Datatype::of::<B>();
        let rows = Layout::new(ELEMENTS, &row);
        epoch.accumulate_as(job.rank(), start, ReduceOp::Replace, first.as_bytes(), rows, rows)
    })?;
    job.barrier()?;
    // Elements that lie the other way round.
    let backwards: Vec<i64> = (0..ELEMENTS as i64).rev().collect();
    let backwards = Datatype::indexed_block(1, &backwards, &Datatype::of::<B>())?;
    window.lock_all(|epoch| {
        (0..steps()).try_for_each(|step| {
            let value: B = operand(O::OP, job.rank(), step);
            update(epoch, step % job.size(), start, (step + job.rank()) % 5, op, value, &backwards, swap)
        })
    })?;
    count(steps() * ELEMENTS);
    job.barrier()?;
    let memory = window.local().to_vec()?;
    for element in memory.as_bytes()[start..start + ELEMENTS * size].chunks(size) {
        let element = B::read_from_bytes(element).unwrap();
        let orders = results::<B>(job, O::OP, first);
        assert!(orders.contains(&element), "{:?} on {:?} at {start}", O::OP, B::TYPE);
    }
    job.barrier()
}

/// What this rank's elements may hold in the end.
fn results<B: Basic>(job: &Job, op: ReduceOp, first: B) -> Vec<B> {
    let mine = || (0..steps()).filter(|step| step % job.size() == job.rank());
    if op == ReduceOp::Replace {
        // Whoever came last, with its last value.
        return mine()
            .next_back()
            .map_or(Vec::new(), |step| (0..job.size()).map(|rank| operand(op, rank, step)).collect());
    }
    let all = (0..job.size()).flat_map(|rank| mine().map(move |step| operand(op, rank, step)));
    vec![all.fold(first, |result, operand| B::reduce(op, result, operand))]
}

#[expect(clippy::too_many_arguments, reason = "a place, a form and an operation")]
fn update<B: Basic, O: Operation<B>>(
    epoch: &Epoch<'_, '_, ComplexLongDouble>,
    target: usize,
    start: usize,
    form: usize,
    op: O,
    value: B,
    backwards: &Datatype,
    swap: Option<Swap<B>>,
) -> Result<()> {
    let row = Datatype::of::<B>();
    let rows = Layout::new(ELEMENTS, &row);
    let values = [value; ELEMENTS];
    let data = values.as_bytes();
    let places = || (0..ELEMENTS).map(|i| start + i * size_of::<B>());
    match (form, swap) {
        (0, _) | (4.., None) => {
            places().try_for_each(|at| epoch.fetch_op_of(target, at, op, value).map(drop))
        }
        (1, _) => epoch.accumulate_as(target, start, O::OP, data, rows, rows),
        (2, _) => {
            let mut old = vec![0; data.len()];
            epoch.get_accumulate_as(target, start, O::OP, data, rows, &mut old, rows, rows)
        }
        (3, _) => epoch.accumulate_as(target, start, O::OP, data, rows, Layout::new(1, backwards)),
        (_, Some(swap)) => places().try_for_each(|at| {
            let mut old: B = epoch.fetch_op_of(target, at, NoOp, value)?;
            loop {
                let now = swap(epoch, target, at, old, B::reduce(O::OP, old, value))?;
                if now == old {
                    return Ok(());
                }
                old = now;
            }
        }),
    }
}
