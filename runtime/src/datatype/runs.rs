//! What a layout covers, in the order of the type map: runs of bytes, and runs of elements.

use std::iter::FusedIterator;

use transom_transport::DataType;

use super::Datatype;
use super::basic::{self, Leaf};
use super::node::Placed;
use super::walk::{Piece, Walk};
use crate::Result;

/// Consecutive bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first byte, relative to the buffer's address.
    pub offset: i64,
    /// How many, at least 1.
    pub bytes: usize,
}

/// Consecutive elements of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementRun {
    /// The first byte, relative to the buffer's address.
    pub offset: i64,
    /// How many, at least 1, each [`DataType::size`] bytes behind the one before.
    pub count: usize,
    /// Their type.
    pub ty: DataType,
}

/// Pieces, those that touch in one.
#[derive(Debug, Clone)]
struct Merged<'a, const TYPES_MATTER: bool>(Walk<'a>);

impl<'a, const TYPES_MATTER: bool> Merged<'a, TYPES_MATTER> {
    fn new(placed: Option<&'a Placed>, count: usize, extent: i64) -> Self {
        Self(Walk::new(placed, count, extent))
    }

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        let mut piece = self.0.next_piece()?;
        // Neighbours in a loop never touch, but the last piece of one may touch the first of the next.
        if self.0.inner.left == 0 {
            self.extend(&mut piece);
        }
        Some(piece)
    }

    /// Takes in the pieces that touch.
    fn extend(&mut self, piece: &mut Piece) {
        while self.0.inner.left == 0 && self.0.ready() {
            let next = self.0.inner;
            let touching = piece.offset.wrapping_add(piece.len as i64) == next.offset;
            if !touching || TYPES_MATTER && piece.ty != next.ty {
                return;
            }
            piece.len += next.len;
            self.0.inner.advance(1);
        }
    }
}

/// The bytes of some instances: see [`Datatype::runs`].
#[derive(Debug, Clone)]
pub struct Runs<'a>(Merged<'a, false>);

impl Runs<'_> {
    /// At an end.
    pub(super) fn none() -> Self {
        Self(Merged::new(None, 0, 0))
    }

    /// Goes to byte `position` of the data, which must be less than all of it.
    pub(super) fn seek(&mut self, position: usize) {
        self.0.0.seek(position);
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        self.0.next().map(|Piece { offset, len, .. }| Run { offset, bytes: len })
    }
}

impl FusedIterator for Runs<'_> {}

/// The elements of some instances: see [`Datatype::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a>(Merged<'a, true>);

impl Iterator for Elements<'_> {
    type Item = ElementRun;

    #[inline]
    fn next(&mut self) -> Option<ElementRun> {
        self.next_leaves().map(|(run, _)| run)
    }
}

impl Elements<'_> {
    /// The next run, and as which predefined type it was described.
    #[inline]
    pub(super) fn next_leaves(&mut self) -> Option<(ElementRun, Leaf)> {
        let Piece { offset, len, ty } = self.0.next()?;
        let (leaf, ty) = (ty?, ty?.element());
        Some((ElementRun { offset, count: len / basic::size(ty), ty }, leaf))
    }
}

impl FusedIterator for Elements<'_> {}

impl Datatype {
    /// The bytes of `count` instances, in the order of the type map, as runs that are as long as that order
    /// allows. Padding is left out.
    ///
    /// # Errors
    /// `Class::Count` if they go beyond 64-bit addresses.
    pub fn runs(&self, count: usize) -> Result<Runs<'_>> {
        self.checked_bytes(count)?;
        Ok(Runs(Merged::new(self.layout().bytes(), count, self.extent())))
    }

    /// The elements of `count` instances, in the order of the type map: what accumulates work on.
    ///
    /// # Errors
    /// `Class::Count` if they go beyond 64-bit addresses.
    pub fn elements(&self, count: usize) -> Result<Elements<'_>> {
        self.checked_bytes(count)?;
        Ok(Elements(Merged::new(self.layout().elements.as_ref(), count, self.extent())))
    }

    /// All bytes of `count` instances, if they are one run. Costs next to nothing.
    ///
    /// # Errors
    /// `Class::Count` if they go beyond 64-bit addresses.
    pub fn single_run(&self, count: usize) -> Result<Option<Run>> {
        let bytes = self.checked_bytes(count)?;
        let one = bytes > 0 && (self.is_contiguous() || count == 1 && self.is_dense());
        Ok(one.then_some(Run { offset: self.true_lower_bound(), bytes }))
    }
}
