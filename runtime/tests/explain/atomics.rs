//! Accumulates and atomics.

use transom::explain::{Kind, Path, Reason};
use transom::{Complex, Job, Result, Sum};

use super::expected::{check, counted, right, way};

const OWN: (Path, Reason) = (Path::Cpu, Reason::Loopback);
const NEAR: (Path, Reason) = (Path::Cpu, Reason::Mapped);
const FAR: (Path, Reason) = (Path::Agent, Reason::Provider);

pub fn of_one_element(job: &Job) -> Result<()> {
    let window = job.allocate_with::<u64>(64, &counted())?;
    let right = right(job);
    window.lock_all(|epoch| {
        for _ in 0..5 {
            epoch.fetch_add(right, 0, 1)?;
            epoch.fetch_add(job.rank(), 0, 1)?;
        }
        for i in 0..3 {
            epoch.compare_and_swap(right, 1, i, i + 1)?;
        }
        for _ in 0..7 {
            epoch.accumulate(right, 2, Sum, &[1])?;
        }
        epoch.rfetch_op(right, 0, Sum, 1)?.wait()?;
        epoch.raccumulate(right, 3, Sum, vec![1, 2])?.wait()?;
        epoch.rget_accumulate(right, 3, Sum, &[1, 2])?.wait()?;
        epoch.get_accumulate(right, 3, Sum, &[1, 2, 3], &mut [0; 3])
    })?;
    let (path, reason) = way(job, OWN, NEAR, FAR);
    check(
        &window,
        &[
            (Kind::FetchAndOp, path, reason, 6, 48),
            (Kind::FetchAndOp, OWN.0, OWN.1, 5, 40),
            (Kind::CompareAndSwap, path, reason, 3, 24),
            (Kind::Accumulate, path, reason, 8, 72),
            (Kind::GetAccumulate, path, reason, 2, 40),
        ],
    );
    window.free()
}

/// Elements of 16 bytes, and such as lie across words.
pub fn without_instruction(job: &Job) -> Result<()> {
    let wide = job.allocate_with::<Complex<f64>>(4, &counted())?;
    let one = Complex::new(1.0, 0.0);
    wide.lock_all(|epoch| {
        for _ in 0..3 {
            epoch.fetch_add(right(job), 1, one)?;
        }
        epoch.accumulate(right(job), 1, Sum, &[one])?;
        epoch.accumulate(job.rank(), 0, Sum, &[one, one])
    })?;
    let lock = (Path::Stripe, Reason::Type);
    let (path, reason) = way(job, lock, lock, (Path::Agent, Reason::Type));
    let rows = [
        (Kind::FetchAndOp, path, reason, 3, 48),
        (Kind::Accumulate, path, reason, 1, 16),
        (Kind::Accumulate, lock.0, lock.1, 1, 32),
    ];
    check(&wide, &rows);
    wide.free()?;

    let bytes = transom::WindowOptions { displacement_unit: Some(1), ..counted() };
    let askew = job.allocate_with::<u64>(8, &bytes)?;
    askew.lock_all(|epoch| {
        for displacement in [4, 4, 12, 16] {
            epoch.fetch_add(right(job), displacement, 1)?;
        }
        epoch.compare_and_swap(right(job), 20, 0, 1).map(drop)
    })?;
    let lock = (Path::Stripe, Reason::Alignment);
    let (path, reason) = way(job, lock, lock, FAR);
    let aligned = way(job, OWN, NEAR, FAR);
    let rows = [
        (Kind::FetchAndOp, path, reason, 3, 24),
        (Kind::FetchAndOp, aligned.0, aligned.1, 1, 8),
        (Kind::CompareAndSwap, path, reason, 1, 8),
    ];
    check(&askew, &rows);
    askew.free()
}

/// What takes more than four short messages the target gets itself, whether in order or not; TCP has long ones.
pub fn of_many_elements(job: &Job) -> Result<()> {
    const LEN: usize = (128 << 10) / 8;
    const FEW: usize = (32 << 10) / 8;
    for ordering in ["rar,raw,war,waw", "none"] {
        let window = job.allocate_with::<u64>(LEN, &counted().with("accumulate_ordering", ordering))?;
        let operands = vec![1; LEN];
        window.lock_all(|epoch| {
            epoch.accumulate(right(job), 0, Sum, &operands)?;
            epoch.accumulate(right(job), 0, Sum, &operands)?;
            epoch.accumulate(right(job), 1, Sum, &operands[..FEW])?;
            epoch.get_accumulate(right(job), 0, Sum, &operands, &mut vec![0; LEN])
        })?;
        let has_long = job.transport(right(job)).is_some_and(|(name, _)| name == "tcp");
        let large = way(job, OWN, NEAR, if has_long { FAR } else { (Path::Pull, Reason::Size) });
        let small = way(job, OWN, NEAR, FAR);
        let bytes = 8 * LEN as u64;
        let rows = [
            (Kind::Accumulate, large.0, large.1, 2, 2 * bytes),
            (Kind::Accumulate, small.0, small.1, 1, 8 * FEW as u64),
            (Kind::GetAccumulate, small.0, small.1, 1, bytes),
        ];
        check(&window, &rows);
        job.barrier()?;
        assert_eq!(window.local().get(1)?, 4);
        window.free()?;
    }
    Ok(())
}
