//! What was counted, for programs and for people.

use std::collections::BTreeMap;
use std::fmt;

use super::{Kind, Path, Reason};

/// So many operations, which moved so many bytes at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Calls.
    pub operations: u64,
    /// Bytes of the target's elements that they named; once, for those that fetch and store.
    pub bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
    }
}

/// Operations of one kind that took one path for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What was called.
    pub kind: Kind,
    /// The way it went.
    pub path: Path,
    /// Why.
    pub reason: Reason,
    /// How often, and how much.
    pub count: Count,
}

/// A rank's operations by kind, path and reason: see [`crate::Window::explain`]. It prints as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    counted: bool,
    rows: BTreeMap<(Kind, Path, Reason), Count>,
}

impl Explanation {
    pub(super) fn new() -> Self {
        Self { counted: true, rows: BTreeMap::new() }
    }

    /// Of a window that is not counted.
    pub(super) fn off() -> Self {
        Self { counted: false, rows: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, kind: Kind, path: Path, reason: Reason, count: Count) {
        if count.operations > 0 {
            self.rows.entry((kind, path, reason)).or_default().add(count);
        }
    }

    /// Whether the window counts its operations at all.
    pub fn is_counted(&self) -> bool {
        self.counted
    }

    /// Whether no operation was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Every row that has operations, in order of kind, path and reason.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.rows.iter().map(|((kind, path, reason), count)| Entry {
            kind: *kind,
            path: *path,
            reason: *reason,
            count: *count,
        })
    }

    /// Operations of a kind that took a path for a reason.
    pub fn by_reason(&self, kind: Kind, path: Path, reason: Reason) -> Count {
        self.rows.get(&(kind, path, reason)).copied().unwrap_or_default()
    }

    /// Operations of a kind that took a path, for whatever reason.
    pub fn by_path(&self, kind: Kind, path: Path) -> Count {
        self.sum(|entry| entry.kind == kind && entry.path == path)
    }

    /// All operations of a kind.
    pub fn by_kind(&self, kind: Kind) -> Count {
        self.sum(|entry| entry.kind == kind)
    }

    /// All operations.
    pub fn total(&self) -> Count {
        self.sum(|_| true)
    }

    /// The entries that `which` picks, together.
    pub fn sum(&self, which: impl Fn(&Entry) -> bool) -> Count {
        self.entries().filter(which).fold(Count::default(), |mut sum, entry| {
            sum.add(entry.count);
            sum
        })
    }

    /// Adds what another window has counted.
    pub fn merge(&mut self, other: &Self) {
        self.counted |= other.counted;
        for Entry { kind, path, reason, count } in other.entries() {
            self.add(kind, path, reason, count);
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.counted {
            return f.write_str(
                "not counted: set TRANSOM_EXPLAIN=yes, or make the window with the hint transom_explain=true",
            );
        }
        if self.is_empty() {
            return f.write_str("no operations");
        }
        let head = ["operation", "path", "count", "bytes", "reason"].map(String::from);
        let rows = self.entries().map(|Entry { kind, path, reason, count }| {
            let [operations, bytes] = [count.operations, count.bytes].map(|number| number.to_string());
            [kind.to_string(), path.to_string(), operations, bytes, format!("{reason}: {}", reason.meaning())]
        });
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [0, 1, 2, 3].map(width);
        for (i, [kind, path, operations, bytes, reason]) in rows.iter().enumerate() {
            let [a, b, c, d] = widths;
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{kind:a$}  {path:b$}  {operations:>c$}  {bytes:>d$}  {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Explanation {
        let mut some = Explanation::new();
        let count = |operations, bytes| Count { operations, bytes };
        some.add(Kind::FetchAndOp, Path::Stripe, Reason::Alignment, count(3, 24));
        some.add(Kind::Put, Path::Direct, Reason::Mapped, count(1000, 8000));
        some.add(Kind::Put, Path::Direct, Reason::Loopback, count(1, 8));
        some.add(Kind::Get, Path::Direct, Reason::Mapped, count(0, 0));
        some
    }

    #[test]
    fn a_table_is_aligned() {
        let table = "operation     path    count  bytes  reason\n\
                     put           direct   1000   8000  mapped: the target's memory is mapped here\n\
                     put           direct      1      8  loopback: it is this rank's own memory\n\
                     fetch_and_op  stripe      3     24  alignment: the element does not lie at a multiple of its size";
        assert_eq!(some().to_string(), table);
        assert_eq!(Explanation::new().to_string(), "no operations");
        assert!(Explanation::off().to_string().contains("TRANSOM_EXPLAIN"));
    }

    #[test]
    fn rows_are_summed_and_merged() {
        let mut sum = Explanation::off();
        sum.merge(&some());
        sum.merge(&some());
        assert!(sum.is_counted());
        assert_eq!(sum.by_path(Kind::Put, Path::Direct), Count { operations: 2002, bytes: 16016 });
        assert_eq!(sum.by_kind(Kind::FetchAndOp), Count { operations: 6, bytes: 48 });
        assert_eq!(sum.by_kind(Kind::Get), Count::default());
        assert_eq!(sum.total().operations, 2008);
        assert_eq!(sum.entries().count(), 3);
    }
}
