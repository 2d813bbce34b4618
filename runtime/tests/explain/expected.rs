//! What a window's explanation must be, no row more and no row less.

use transom::explain::{Kind, Path, Reason};
use transom::{Element, Job, Window, WindowOptions};

/// A row: kind, path, reason, operations, bytes.
pub type Row = (Kind, Path, Reason, u64, u64);

pub fn counted() -> WindowOptions {
    WindowOptions::default().with("transom_explain", "true")
}

/// The rank to the right, which is this one in a job of one.
pub fn right(job: &Job) -> usize {
    (job.rank() + 1) % job.size()
}

/// Whether loads and stores lead to another rank.
pub fn is_mapped(job: &Job) -> bool {
    job.transport(right(job)).is_some_and(|(name, _)| name == "shm")
}

/// The path and reason of operations to the right: `near` if its memory is mapped, else `far`, and `own` in a job of one.
pub fn way(job: &Job, own: (Path, Reason), near: (Path, Reason), far: (Path, Reason)) -> (Path, Reason) {
    match (job.size(), is_mapped(job)) {
        (1, _) => own,
        (_, true) => near,
        (_, false) => far,
    }
}

/// Compares with rows in any order; several of one path count together, and those of no operations are left out.
pub fn check<T: Element>(window: &Window<T>, rows: &[Row]) {
    let explanation = window.explain();
    assert!(explanation.is_counted());
    for (kind, path, reason, ..) in rows {
        let same = rows.iter().filter(|row| (row.0, row.1, row.2) == (*kind, *path, *reason));
        let (operations, bytes) = same.fold((0, 0), |sum, row| (sum.0 + row.3, sum.1 + row.4));
        let count = explanation.by_reason(*kind, *path, *reason);
        let what = format!("{kind} by {path}, {reason} of\n{explanation}\n");
        assert_eq!((count.operations, count.bytes), (operations, bytes), "{what}");
    }
    let all: u64 = rows.iter().map(|row| row.3).sum();
    assert_eq!(explanation.total().operations, all, "more rows than {rows:?}:\n{explanation}\n");
}
