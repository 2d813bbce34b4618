//! Ranges of addresses, and the pages that they are in.

use std::io;
use std::ops::Range;

use transom_transport::thread;

use super::PAGE;

/// The pages that hold some memory.
pub fn pages_of(memory: &Range<usize>) -> Range<usize> {
    memory.start / PAGE * PAGE..memory.end.next_multiple_of(PAGE)
}

/// Those of some pages that hold something else, too.
pub fn edges_of(pages: &Range<usize>, memory: &Range<usize>) -> Vec<usize> {
    let whole = |page: &usize| memory.start <= *page && page + PAGE <= memory.end;
    let mut ends: Vec<usize> =
        [pages.start, pages.end - PAGE].into_iter().filter(|page| !whole(page)).collect();
    ends.dedup();
    ends
}

/// Whether the C library's record of the calling thread is in some pages. The kernel writes parts of it when it takes the core away
/// (rseq(2)), and would wait there for this thread.
pub fn holds_thread(pages: &Range<usize>) -> bool {
    let record = thread::current();
    meet(pages, &(record..record + PAGE)).is_some()
}

/// What two ranges have in common.
pub fn meet(a: &Range<usize>, b: &Range<usize>) -> Option<Range<usize>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}

/// What is left of a range without another.
pub fn without(range: Range<usize>, other: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let before = range.start..range.end.min(other.start);
    let after = range.start.max(other.end)..range.end;
    [before, after].into_iter().filter(|part| !part.is_empty())
}

/// Calls `edge` with each page of `part` that is not wholly in `memory`, and `inner` with the others.
pub fn take_apart(
    part: &Range<usize>,
    memory: &Range<usize>,
    mut edge: impl FnMut(usize) -> io::Result<()>,
    inner: impl FnOnce(&Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = part.clone();
    for page in edges_of(part, memory) {
        edge(page)?;
        if page == rest.start { rest.start += PAGE } else { rest.end -= PAGE }
    }
    if rest.is_empty() { Ok(()) } else { inner(&rest) }
}
