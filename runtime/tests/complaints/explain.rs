//! Which way an operation went.

use transom::explain::{Kind, Path, Reason};
use transom::{Complex, Element, Job, Result, Sum, Window, WindowOptions};

fn counted() -> WindowOptions {
    WindowOptions::default().with("transom_explain", "true")
}

/// Atomics by hardware, by a lock, and by software at the target look alike to the caller. The explanation tells them apart,
/// with the reason, and counts every one.
pub fn software_atomics_are_told(job: &Job) -> Result<()> {
    const TIMES: u64 = 20;
    let right = (job.rank() + 1) % job.size();
    let mapped = job.transport(right).is_some_and(|(name, _)| name == "shm");

    let narrow = job.allocate_with::<i64>(2, &counted())?;
    narrow.lock_all(|epoch| (0..TIMES).try_for_each(|_| epoch.fetch_add(right, 0, 1).map(drop)))?;
    let (path, reason) = if mapped { (Path::Cpu, Reason::Mapped) } else { (Path::Agent, Reason::Provider) };
    told(&narrow, Kind::FetchAndOp, (path, reason), TIMES);
    narrow.free()?;

    let wide = job.allocate_with::<Complex<f64>>(2, &counted())?;
    wide.lock_all(|epoch| {
        (0..TIMES).try_for_each(|_| epoch.accumulate(right, 0, Sum, &[Complex::new(1.0, 1.0)]))
    })?;
    let path = if mapped { Path::Stripe } else { Path::Agent };
    told(&wide, Kind::Accumulate, (path, Reason::Type), TIMES);
    wide.free()
}

/// All operations of a window took one path, for one reason, and its table says so.
fn told<T: Element>(window: &Window<T>, kind: Kind, (path, reason): (Path, Reason), times: u64) {
    let explanation = window.explain();
    let (of_reason, all) =
        (explanation.by_reason(kind, path, reason).operations, explanation.total().operations);
    assert_eq!((of_reason, all), (times, times), "{explanation}");
    let table = explanation.to_string();
    let row = table.lines().nth(1).unwrap_or_default();
    assert!([kind.text(), path.text(), reason.text()].iter().all(|word| row.contains(word)), "{table}");
}
