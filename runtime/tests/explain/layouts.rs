//! Operations with datatypes.

use transom::explain::{Kind, Path, Reason};
use transom::{Datatype, Job, Layout, ReduceOp, Result, WindowOptions};

use super::expected::{check, counted, right, way};

/// Blocks of `len` numbers, with a gap behind each.
fn blocks(count: usize, len: usize) -> Result<Datatype> {
    let blocks: Vec<(usize, i64)> = (0..count).map(|i| (len, (i * (len + 1)) as i64)).collect();
    Datatype::indexed(&blocks, &Datatype::of::<u64>())
}

pub fn transfers(job: &Job) -> Result<()> {
    const COUNT: usize = 10;
    let window = job.allocate_with::<u64>(1 << 12, &counted())?;
    let number = Datatype::of::<u64>();
    for (len, far) in [(2, Path::Packed), (256, Path::Pieces)] {
        let (pieces, before) = (blocks(COUNT, len)?, window.explain());
        let data = vec![1u64; COUNT * len];
        let mut back = vec![0u64; COUNT * len];
        let (here, there) = (Layout::new(COUNT * len, &number), Layout::new(1, &pieces));
        window.lock_all(|epoch| {
            for _ in 0..3 {
                epoch.put_as(right(job), 0, &data, here, there)?;
            }
            epoch.flush(right(job))?;
            epoch.get_as(right(job), 0, &mut back, here, there)
        })?;
        assert_eq!(back, data);
        let near = (Path::Direct, Reason::Mapped);
        let (path, reason) = way(job, (Path::Direct, Reason::Loopback), near, (far, Reason::Layout));
        let bytes = 8 * (COUNT * len) as u64;
        for (kind, times) in [(Kind::Put, 3), (Kind::Get, 1)] {
            let (old, now) =
                (before.by_reason(kind, path, reason), window.explain().by_reason(kind, path, reason));
            assert_eq!((now.operations - old.operations, now.bytes - old.bytes), (times, times * bytes));
        }
        assert_eq!(window.explain().total().operations - before.total().operations, 4);
    }
    window.free()
}

/// At all ranks' words, then across them.
pub fn accumulates(job: &Job) -> Result<()> {
    let options = WindowOptions { displacement_unit: Some(1), ..counted() };
    let window = job.allocate_with::<u64>(64, &options)?;
    let (number, pieces) = (Datatype::of::<u64>(), blocks(5, 2)?);
    let (data, mut old) = ([1u64; 10], [0u64; 10]);
    let (here, there) = (Layout::new(10, &number), Layout::new(1, &pieces));
    window.lock_all(|epoch| {
        epoch.accumulate_as(right(job), 8, ReduceOp::Sum, &data, here, there)?;
        epoch.accumulate_as(right(job), 12, ReduceOp::Sum, &data, here, there)?;
        epoch.get_accumulate_as(right(job), 8, ReduceOp::Sum, &data, here, &mut old, here, there)
    })?;
    let far = (Path::Agent, Reason::Layout);
    let lock = (Path::Stripe, Reason::Alignment);
    let whole = way(job, (Path::Cpu, Reason::Loopback), (Path::Cpu, Reason::Mapped), far);
    let askew = way(job, lock, lock, far);
    check(
        &window,
        &[
            (Kind::Accumulate, whole.0, whole.1, 1, 80),
            (Kind::Accumulate, askew.0, askew.1, 1, 80),
            (Kind::GetAccumulate, whole.0, whole.1, 1, 80),
        ],
    );
    window.free()
}
