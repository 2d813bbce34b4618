//! Places in layouts, and two layouts side by side.

use std::iter::FusedIterator;

use super::{Datatype, Run, Runs};
use crate::{Class, Error, Result};

/// A place in the data of some instances: see [`Datatype::cursor`].
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    runs: Runs<'a>,
    /// What is left of the run that the cursor is in; no bytes between runs.
    current: Run,
    position: usize,
    total: usize,
}

impl Datatype {
    /// A cursor at the begin of `count` instances.
    ///
    /// # Errors
    /// `Class::Count` if they go beyond 64-bit addresses.
    pub fn cursor(&self, count: usize) -> Result<Cursor<'_>> {
        let (runs, total) = (self.runs(count)?, self.pack_size(count)?);
        Ok(Cursor { runs, current: Run { offset: 0, bytes: 0 }, position: 0, total })
    }
}

impl Cursor<'_> {
    /// Bytes of data before the cursor.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes of data behind the cursor.
    pub fn remaining(&self) -> usize {
        self.total - self.position
    }

    /// The rest of the run that the cursor is in; `None` at the end. The cursor stays.
    #[inline]
    pub fn peek(&mut self) -> Option<Run> {
        if self.current.bytes == 0 {
            self.current = self.runs.next()?;
        }
        Some(self.current)
    }

    /// At most `max` bytes of the run that the cursor is in, and goes behind them; `None` at the end, or if
    /// `max` is 0.
    #[inline]
    pub fn next(&mut self, max: usize) -> Option<Run> {
        let Run { offset, bytes } = self.peek().filter(|_| max > 0)?;
        let bytes = bytes.min(max);
        self.take(bytes);
        Some(Run { offset, bytes })
    }

    /// Goes on by `bytes`, which are in the current run.
    #[inline]
    fn take(&mut self, bytes: usize) {
        self.position += bytes;
        self.current.bytes -= bytes;
        self.current.offset = self.current.offset.wrapping_add(bytes as i64);
    }

    /// Goes on by `bytes` bytes of data, or to the end if there are not as many. Takes no longer for many.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.remaining());
        if bytes <= self.current.bytes {
            return self.take(bytes);
        }
        self.position += bytes;
        self.current.bytes = 0;
        if self.position < self.total {
            self.runs.seek(self.position);
        } else {
            self.runs = Runs::none();
        }
    }
}

/// Two layouts side by side: see [`zip_runs`].
#[derive(Debug, Clone)]
pub struct ZipRuns<'a> {
    first: Cursor<'a>,
    second: Cursor<'a>,
}

/// What to copy to get the data of `count_a` instances of `a` into those of `count_b` of `b`, without a
/// buffer between: offset in the first, offset in the second, bytes. Neither needs to have the other's
/// signature, only its size.
///
/// ```
/// use transom::{Datatype, datatype::zip_runs};
/// let byte = Datatype::of::<u8>();
/// let (a, b) = (Datatype::vector(2, 3, 4, &byte)?, Datatype::vector(3, 2, 10, &byte)?);
/// let pieces: Vec<_> = zip_runs(1, &a, 1, &b)?.collect();
/// assert_eq!(pieces, [(0, 0, 2), (2, 10, 1), (4, 11, 1), (5, 20, 2)]);
/// # Ok::<(), transom::Error>(())
/// ```
///
/// # Errors
/// `Class::Count` if the sizes are not the same, or go beyond 64-bit addresses.
pub fn zip_runs<'a>(count_a: usize, a: &'a Datatype, count_b: usize, b: &'a Datatype) -> Result<ZipRuns<'a>> {
    let (first, second) = (a.cursor(count_a)?, b.cursor(count_b)?);
    if first.total != second.total {
        let message = format!(
            "{count_a} instances of {a} have {} bytes, {count_b} of {b} have {}; \
             both sides must have as many",
            first.total, second.total
        );
        return Err(Error::new(Class::Count, "datatype", message));
    }
    Ok(ZipRuns { first, second })
}

impl Iterator for ZipRuns<'_> {
    type Item = (i64, i64, usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (a, b) = (self.first.peek()?, self.second.peek()?);
        let bytes = a.bytes.min(b.bytes);
        self.first.take(bytes);
        self.second.take(bytes);
        Some((a.offset, b.offset, bytes))
    }
}

impl FusedIterator for ZipRuns<'_> {}
