//! Layouts, as the constructors put them together: by repetition and by joining.

use super::basic::{self, Leaf};
use super::bounds::{Bounds, Data};
use super::node::{Dense, Node, Placed};
use super::sequence::Sequence;
use super::signature::{Parts, Signature};

/// Sizes stay below this, so that they can be displacements.
const MOST: usize = i64::MAX as usize;

/// All that a type map says.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// Bytes of data.
    pub(super) size: usize,
    pub(super) bounds: Bounds,
    pub(super) signature: Signature,
    /// The elements; `None` without any.
    pub(super) elements: Option<Placed>,
    /// The bytes, where they are not those of `elements`: with padding, or with several types, which merge to
    /// longer runs.
    bytes: Option<Placed>,
}

impl Layout {
    /// Without data.
    pub(super) fn empty() -> Self {
        let bounds = Bounds::default();
        Self { size: 0, bounds, signature: Signature::EMPTY, elements: None, bytes: None }
    }

    /// One element.
    pub(super) fn basic(leaf: Leaf) -> Self {
        let ty = leaf.element();
        let size = basic::size(ty);
        let end = basic::fields(ty).map(|(offset, len)| offset + len).max().unwrap_or(size);
        let data = Data { low: 0, high: end as i64, padded: size as i64, end: end as i64 };
        let dense = Node::Dense(Dense { len: size, ty: Some(leaf) });
        let field = |(offset, len): (usize, usize)| Placed {
            displacement: offset as i64,
            node: Node::Dense(Dense { len, ty: None }),
        };
        let bytes = basic::is_padded(ty).then(|| {
            let mut fields = Sequence::new(false);
            basic::fields(ty).map(field).for_each(|placed| fields.push(&placed, 0));
            fields.finish()
        });
        Self {
            size: basic::packed_size(ty),
            bounds: Bounds { data: Some(data), marks: None, alignment: basic::alignment(ty) },
            signature: Signature::basic(leaf),
            elements: Some(Placed { displacement: 0, node: dense }),
            bytes: bytes.flatten(),
        }
    }

    /// The bytes; `None` without any.
    pub(super) fn bytes(&self) -> Option<&Placed> {
        self.bytes.as_ref().or(self.elements.as_ref())
    }

    /// `count` copies, `stride` bytes apart; `None`: overflow.
    pub(super) fn repeated(&self, count: usize, stride: i64) -> Option<Self> {
        if count == 0 {
            return Some(Self::empty());
        }
        let repeat = |placed: &Placed| placed.repeated(count, stride);
        Some(Self {
            size: self.size.checked_mul(count).filter(|size| *size <= MOST)?,
            bounds: self.bounds.repeated(count, stride)?,
            signature: self.signature.repeated(count),
            elements: self.elements.as_ref().map(repeat),
            bytes: self.bytes.as_ref().map(repeat),
        })
    }

    /// With these bounds instead of the natural ones.
    pub(super) fn marked(mut self, low: i64, high: i64) -> Self {
        self.bounds.marks = Some((low, high));
        self
    }
}

/// A layout that grows.
#[derive(Debug)]
pub(super) struct Joint {
    size: usize,
    bounds: Bounds,
    signature: Signature,
    elements: Sequence,
    bytes: Option<Sequence>,
}

impl Joint {
    pub(super) fn new() -> Self {
        let Layout { size, bounds, signature, .. } = Layout::empty();
        Self { size, bounds, signature, elements: Sequence::new(true), bytes: None }
    }

    /// Appends `part`, moved by `displacement` bytes; `None`: overflow, and nothing is appended.
    pub(super) fn push(&mut self, part: &Layout, displacement: i64) -> Option<()> {
        let size = self.size.checked_add(part.size).filter(|size| *size <= MOST)?;
        self.bounds = self.bounds.joined(part.bounds, displacement)?;
        self.size = size;
        self.signature = self.signature.then(part.signature);
        if self.bytes.is_none() && (part.bytes.is_some() || self.signature.leaves == Parts::Mixed) {
            self.bytes = Some(self.elements.without_types());
        }
        if let (Some(sequence), Some(bytes)) = (&mut self.bytes, part.bytes()) {
            sequence.push(bytes, displacement);
        }
        if let Some(elements) = &part.elements {
            self.elements.push(elements, displacement);
        }
        Some(())
    }

    pub(super) fn finish(self) -> Layout {
        Layout {
            size: self.size,
            bounds: self.bounds,
            signature: self.signature,
            elements: self.elements.finish(),
            bytes: self.bytes.and_then(Sequence::finish),
        }
    }
}
