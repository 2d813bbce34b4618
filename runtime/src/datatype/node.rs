//! The normal form of a layout: a tree of loops over dense pieces.
//!
//! Every node begins with its first piece at displacement 0, no node is empty, and the neighbours in a loop
//! over dense pieces never touch (they would be one piece).

use std::sync::Arc;

use super::basic::{self, Leaf};

/// A layout without its displacement.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Consecutive bytes.
    Dense(Dense),
    /// The same at a regular stride.
    Repeat(Arc<Repeat>),
    /// One after the other, anywhere.
    List(Arc<List>),
}

/// Consecutive bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dense {
    /// Bytes in memory.
    pub(super) len: usize,
    /// The elements that they are; `None`: mere bytes.
    pub(super) ty: Option<Leaf>,
}

/// A loop.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) count: usize,
    pub(super) stride: i64,
    pub(super) inner: Node,
    bytes: usize,
    elements: usize,
}

/// A sequence.
#[derive(Debug)]
pub(super) struct List {
    pub(super) entries: Box<[Entry]>,
    bytes: usize,
    elements: usize,
}

/// A part of a sequence.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) displacement: i64,
    /// Bytes of data in the entries before.
    pub(super) start: usize,
    pub(super) node: Node,
}

/// A layout at its displacement.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) displacement: i64,
    pub(super) node: Node,
}

impl Dense {
    fn elements(self) -> usize {
        let elements = |ty| self.len / basic::size(ty) * basic::parts(ty);
        self.ty.map_or(0, |ty| elements(ty.element()))
    }

    /// Bytes of data.
    fn bytes(self) -> usize {
        match self.ty.map(Leaf::element) {
            Some(ty) if basic::is_padded(ty) => self.len / basic::size(ty) * basic::packed_size(ty),
            _ => self.len,
        }
    }
}

impl Node {
    /// Bytes of data.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.bytes(),
            Self::Repeat(repeat) => repeat.bytes,
            Self::List(list) => list.bytes,
        }
    }

    /// Elements, if all pieces have a type; a pair is two.
    pub(super) fn elements(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.elements(),
            Self::Repeat(repeat) => repeat.elements,
            Self::List(list) => list.elements,
        }
    }

    /// The number of elements in the first `bytes` bytes of data; `None` if an element is cut. All pieces
    /// must have a type.
    pub(super) fn elements_in(&self, bytes: usize) -> Option<usize> {
        let mut node = self;
        let mut rest = bytes;
        let mut found = 0;
        while rest > 0 {
            match node {
                Self::Dense(dense) => {
                    let ty = dense.ty?.element();
                    let (whole, cut) = (rest / basic::packed_size(ty), rest % basic::packed_size(ty));
                    let cut = match basic::first_part(ty) {
                        _ if cut == 0 => 0,
                        Some(first) if cut == first => 1,
                        _ => return None,
                    };
                    return Some(found + whole * basic::parts(ty) + cut);
                }
                Self::Repeat(repeat) => {
                    found += rest / repeat.inner.bytes() * repeat.inner.elements();
                    rest %= repeat.inner.bytes();
                    node = &repeat.inner;
                }
                Self::List(list) => {
                    let at = list.find(rest);
                    found += list.entries[..at].iter().map(|entry| entry.node.elements()).sum::<usize>();
                    rest -= list.entries[at].start;
                    node = &list.entries[at].node;
                }
            }
        }
        Some(found)
    }

    /// Whether the layouts are known to be the same without a long look.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dense(a), Self::Dense(b)) => a == b,
            (Self::Repeat(a), Self::Repeat(b)) => {
                Arc::ptr_eq(a, b) || a.count == b.count && a.stride == b.stride && a.inner.same(&b.inner)
            }
            (Self::List(a), Self::List(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl List {
    /// The entry that has byte `position` of the data; the last one if it is behind the end.
    pub(super) fn find(&self, position: usize) -> usize {
        self.entries.partition_point(|entry| entry.start <= position).saturating_sub(1)
    }
}

impl Placed {
    /// `count` > 0 copies, `stride` bytes apart. The caller knows that sizes and displacements do not
    /// overflow.
    pub(super) fn repeated(&self, count: usize, stride: i64) -> Self {
        let Self { displacement, node } = self;
        let displacement = *displacement;
        if count == 1 {
            return self.clone();
        }
        match node {
            Node::Dense(Dense { len, ty }) if *len as i128 == i128::from(stride) => {
                Self { displacement, node: Node::Dense(Dense { len: len * count, ty: *ty }) }
            }
            Node::Repeat(inner) if inner.count as i128 * i128::from(inner.stride) == i128::from(stride) => {
                let inner_node = Self { displacement, node: inner.inner.clone() };
                inner_node.looped(inner.count * count, inner.stride)
            }
            _ => self.looped(count, stride),
        }
    }

    fn looped(&self, count: usize, stride: i64) -> Self {
        let (bytes, elements) = (self.node.bytes() * count, self.node.elements() * count);
        let repeat = Repeat { count, stride, inner: self.node.clone(), bytes, elements };
        Self { displacement: self.displacement, node: Node::Repeat(Arc::new(repeat)) }
    }

    /// Takes in what follows without a gap.
    fn absorb(&mut self, next: &Self, types_matter: bool) -> bool {
        let (Node::Dense(a), Node::Dense(b)) = (&mut self.node, &next.node) else { return false };
        let touching = i128::from(self.displacement) + a.len as i128 == i128::from(next.displacement);
        if !touching || types_matter && a.ty != b.ty {
            return false;
        }
        a.len += b.len;
        a.ty = a.ty.filter(|_| a.ty == b.ty);
        true
    }

    pub(super) fn list(entries: Vec<Self>) -> Option<Self> {
        let origin = entries.first()?.displacement;
        let (mut bytes, mut elements) = (0, 0);
        let place = |Self { displacement, node }: Self| {
            let entry = Entry { displacement: displacement - origin, start: bytes, node };
            bytes += entry.node.bytes();
            elements += entry.node.elements();
            entry
        };
        let entries: Box<[Entry]> = entries.into_iter().map(place).collect();
        Some(Self { displacement: origin, node: Node::List(Arc::new(List { entries, bytes, elements })) })
    }

    /// Whether `next` is the same layout elsewhere.
    pub(super) fn resembles(&self, next: &Self) -> bool {
        self.node.same(&next.node)
    }

    /// Appends to `entries`, merging where nothing is between.
    pub(super) fn append_to(self, entries: &mut Vec<Self>, types_matter: bool) {
        if !entries.last_mut().is_some_and(|last| last.absorb(&self, types_matter)) {
            entries.push(self);
        }
    }
}
