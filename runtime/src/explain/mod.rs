//! Counts of a window's operations: how many of each kind took which path, and why. Nothing here decides a path; the code
//! that does reports it by one call (`operation/path.rs`).
//!
//! Counting is off unless `TRANSOM_EXPLAIN` is set or a window is made with the hint `transom_explain`. With the setting,
//! each rank also reports the counts of its windows:
//!
//! - `TRANSOM_EXPLAIN=yes` prints the ways to other ranks at the start, a table when a window goes, and one of all windows at the job's end, to
//!   standard error.
//! - `TRANSOM_EXPLAIN=count` prints nothing: it is for `transom top`.
//! - `TRANSOM_EXPLAIN=FILE` appends a line of JSON for each row of such a table to `FILE.RANK` when a window goes: `rank` (of
//!   the job), `window`, `name`, `created` (of memory of the program's: `share`, or `attach` or `messages` and why), `operation`, `path`, `reason`, `operations`, `bytes`.
//!
//! Counted windows that are freed are also reported as events of `tracing`, target `transom::explain`, one for each row; the ways to other ranks, when they are known, as those of target `transom::ways`.

mod counters;
mod explanation;
mod labels;
mod report;
mod tally;

pub(crate) use counters::Counters;
pub use explanation::{Count, Entry, Explanation};
pub use labels::{Kind, Path, Reason};
pub(crate) use report::{ExplainSetting, Reporter, WindowLabel};
pub(crate) use tally::Tally;
pub use tally::count_windows_from_now_on;

use crate::window::Window;
use crate::{Element, Job};

impl<T: Element> Window<T> {
    /// This rank's operations on the window so far, by the path that they took and the reason for it. Of this window only: one
    /// that overlaps it counts for itself.
    ///
    /// Nothing is counted unless the setting `TRANSOM_EXPLAIN` or the hint `transom_explain` asks for it when the window is
    /// made ([`Explanation::is_counted`]). An operation counts when its path is chosen, also if it then fails; those on the
    /// null rank, and those without effect, do not.
    ///
    /// ```
    /// use transom::WindowOptions;
    /// use transom::explain::{Kind, Path, Reason};
    /// transom::local(2, |job| {
    ///     let window = job.allocate_with::<u64>(8, &WindowOptions::default().with("transom_explain", "true"))?;
    ///     window.lock_all(|epoch| {
    ///         epoch.put_value(1 - job.rank(), 0, 7)?;
    ///         epoch.fetch_add(1 - job.rank(), 1, 1).map(drop)
    ///     })?;
    ///     let explanation = window.explain();
    ///     println!("{explanation}"); // a table
    /// #   if job.transport(1 - job.rank()).is_some_and(|(name, _)| name == "shm") {
    ///     assert_eq!(explanation.by_path(Kind::Put, Path::Direct).operations, 1);
    ///     let atomic = explanation.by_reason(Kind::FetchAndOp, Path::Cpu, Reason::Mapped);
    ///     assert_eq!((atomic.operations, atomic.bytes), (1, 8));
    /// #   }
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        self.core.counters.as_ref().map_or_else(Explanation::off, |counters| counters.explanation())
    }
}

impl Job {
    /// This rank's operations so far on all its windows that are counted, those that were freed, too: see [`Window::explain`].
    pub fn explain(&self) -> Explanation {
        self.member().engine.tally.explanation()
    }
}
