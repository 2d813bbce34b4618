//! Derived datatypes (MPI-4.1 chapter 5): where the elements of a message are in memory, and in which order.
//!
//! A [`Datatype`] is a value: it never changes, cloning it costs a reference count, and it can be used as
//! soon as it is there (`MPI_Type_commit` and `MPI_Type_free` have nothing to do). Displacements and extents
//! are bytes, counts are 64 bits wide.
//!
//! ```
//! use transom::Datatype;
//! // One column of a matrix of 3 rows and 5 columns.
//! let column = Datatype::vector(3, 1, 5, &Datatype::of::<f64>())?;
//! assert_eq!((column.size(), column.extent()), (24, 88));
//! let offsets: Vec<_> = column.runs(1)?.map(|run| (run.offset, run.bytes)).collect();
//! assert_eq!(offsets, [(0, 8), (40, 8), (80, 8)]);
//! // Resized, the next instance is the next column.
//! let column = column.resized(0, 8)?;
//! assert_eq!(column.runs(2)?.nth(3).map(|run| run.offset), Some(8));
//! # Ok::<(), transom::Error>(())
//! ```
//!
//! Layouts are kept as loops over dense pieces, never as lists of what a loop would say: a vector of a
//! thousand million blocks takes as little room as one of two, and walking through it begins at once.

#![forbid(unsafe_code)]

mod array;
mod basic;
mod bounds;
mod construct;
mod contents;
mod copy;
mod cursor;
mod display;
mod external;
mod layout;
mod node;
mod pack;
mod runs;
mod scalar;
mod sequence;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::Arc;

use transom_transport::DataType;

pub use contents::{Contents, Distribution, Order};
pub use cursor::{Cursor, ZipRuns, zip_runs};
pub use runs::{ElementRun, Elements, Run, Runs};

use crate::{Class, Error, Result};
use layout::Layout;
use signature::Parts;

/// A datatype: a sequence of basic types with their displacements, and the extent at which instances follow
/// each other (MPI-4.1 §5.1).
///
/// Equality is structural: two types are equal if the same constructors made them of the same arguments.
/// Whether one may be sent and the other received is asked of [`Datatype::matches`].
#[derive(Clone)]
pub struct Datatype(Arc<Inner>);

struct Inner {
    contents: Contents,
    layout: Layout,
    lower_bound: i64,
    extent: i64,
    /// Constructors around the basic types.
    depth: usize,
}

impl Datatype {
    /// Bytes of data in one instance, without gaps (`MPI_Type_size`, §5.1.5).
    pub fn size(&self) -> usize {
        self.0.layout.size
    }

    /// Bytes from one instance to the next (`MPI_Type_get_extent`, §5.1.7). Can be negative if it was set.
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// Where an instance begins, in bytes from the buffer's address (`MPI_Type_get_extent`, §5.1.7).
    pub fn lower_bound(&self) -> i64 {
        self.0.lower_bound
    }

    /// Bytes from the first one of data to the last, whatever bounds were set (`MPI_Type_get_true_extent`,
    /// §5.1.8).
    pub fn true_extent(&self) -> i64 {
        self.0.layout.bounds.data.map_or(0, |data| data.high - data.low)
    }

    /// Where the first byte of data is (`MPI_Type_get_true_extent`, §5.1.8).
    pub fn true_lower_bound(&self) -> i64 {
        self.0.layout.bounds.data.map_or(0, |data| data.low)
    }

    /// The one basic type that all of it is made of; `None` if there are several, or nothing. Accumulates ask
    /// for it (§12.3.4).
    pub fn element(&self) -> Option<DataType> {
        match self.0.layout.signature.parts {
            Parts::Uniform(ty) => Some(ty),
            Parts::Empty | Parts::Mixed => None,
        }
    }

    /// The number of basic elements in one instance.
    pub fn basic_count(&self) -> usize {
        self.0.layout.signature.count
    }

    /// Whether any number of instances is one run of bytes, which begins at
    /// [`true_lower_bound`](Self::true_lower_bound).
    pub fn is_contiguous(&self) -> bool {
        self.is_dense() && i128::from(self.0.extent) == self.size() as i128
    }

    /// Whether one instance is one run of bytes.
    fn is_dense(&self) -> bool {
        self.0.layout.bytes().is_some_and(|placed| matches!(placed.node, node::Node::Dense(_)))
    }

    /// How it was made: the constructor, its arguments and types (`MPI_Type_get_envelope`,
    /// `MPI_Type_get_contents`, §5.1.13).
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// The instances in `bytes` received bytes; `None` (`MPI_UNDEFINED`) if the last one is cut
    /// (`MPI_Get_count`, §3.2.5).
    pub fn get_count(&self, bytes: usize) -> Option<usize> {
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }

    /// The basic elements in `bytes` received bytes; `None` (`MPI_UNDEFINED`) if the last one is cut
    /// (`MPI_Get_elements`, §5.1.11). A value with an index is two, as it is a structure of both (§6.9.4).
    pub fn get_elements(&self, bytes: usize) -> Option<usize> {
        let Some(placed) = &self.0.layout.elements else { return (bytes == 0).then_some(0) };
        let (whole, rest) = (bytes / self.size(), bytes % self.size());
        whole.checked_mul(placed.node.elements())?.checked_add(placed.node.elements_in(rest)?)
    }

    /// Whether `count_a` instances of `a` have the type signature of `count_b` of `b`: the same basic types
    /// in the same order, wherever they are (§5.1, §12.3). Takes no longer for long signatures.
    ///
    /// Signatures of one basic type, or of different lengths, are compared exactly. Others are compared by
    /// 122-bit values, which two different signatures would have to share by accident.
    pub fn matches(count_a: usize, a: &Self, count_b: usize, b: &Self) -> bool {
        Arc::ptr_eq(&a.0, &b.0) && count_a == count_b
            || a.0.layout.signature.matches(count_a, b.0.layout.signature, count_b)
    }

    /// Lowest byte and end of what `count` instances occupy, relative to the buffer's address; `None` without
    /// data. Padding at the end of the last element is not counted.
    ///
    /// # Errors
    /// `Class::Count` if that is beyond 64 bits.
    pub fn span(&self, count: usize) -> Result<Option<(i64, i64)>> {
        self.bounds(count, |data| data.high)
    }

    /// As [`span`](Self::span), with the padding at the end of the last element: what accumulates access.
    ///
    /// # Errors
    /// `Class::Count` if that is beyond 64 bits.
    pub fn element_span(&self, count: usize) -> Result<Option<(i64, i64)>> {
        self.bounds(count, |data| data.padded)
    }

    fn bounds(&self, count: usize, end: fn(&bounds::Data) -> i64) -> Result<Option<(i64, i64)>> {
        let (Some(data), Some(last)) = (&self.0.layout.bounds.data, count.checked_sub(1)) else {
            return Ok(None);
        };
        let far = last as i128 * i128::from(self.0.extent);
        let low = i64::try_from(i128::from(data.low) + far.min(0));
        let high = i64::try_from(i128::from(end(data)) + far.max(0));
        match (low, high) {
            (Ok(low), Ok(high)) if high.checked_sub(low).is_some() => Ok(Some((low, high))),
            _ => Err(self.too_many(count)),
        }
    }

    /// Bytes of data in `count` instances: what [`pack`](Self::pack) appends (`MPI_Pack_size`, §5.2).
    ///
    /// # Errors
    /// `Class::Count` if that is beyond 63 bits.
    pub fn pack_size(&self, count: usize) -> Result<usize> {
        let bytes = self.size().checked_mul(count).filter(|bytes| i64::try_from(*bytes).is_ok());
        bytes.ok_or_else(|| self.too_many(count))
    }

    /// Bytes of data in `count` instances, none of which has a displacement that overflows.
    fn checked_bytes(&self, count: usize) -> Result<usize> {
        self.element_span(count)?;
        self.pack_size(count)
    }

    #[cold]
    fn too_many(&self, count: usize) -> Error {
        let message = format!("{count} instances of {self} go beyond 64-bit addresses; use a smaller count");
        Error::new(Class::Count, "datatype", message)
    }
}
