//! Walking through a tree of loops, piece by piece, without unrolling it.

use super::basic::Leaf;
use super::node::{Dense, List, Node, Placed};

/// Where a walk is. What it has to do next is the innermost loop; the loops around it are on the stack.
/// Displacements wrap where a loop steps behind its end; those that are used have been checked.
#[derive(Debug, Clone)]
pub(super) struct Walk<'a> {
    /// The next piece of the innermost loop.
    pub(super) inner: Loop,
    /// Bytes of that piece that are done.
    pub(super) head: usize,
    stack: Vec<Frame<'a>>,
    root: Root<'a>,
}

/// A loop over dense pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop {
    pub(super) offset: i64,
    pub(super) len: usize,
    pub(super) stride: i64,
    pub(super) left: usize,
    pub(super) ty: Option<Leaf>,
}

#[derive(Debug, Clone)]
enum Frame<'a> {
    Repeat { left: usize, next: i64, stride: i64, inner: &'a Node },
    List { next: usize, base: i64, list: &'a List },
}

/// What is walked through: a single loop, or `count` instances of a tree.
#[derive(Debug, Clone, Copy)]
enum Root<'a> {
    Loop(Loop),
    Tree { placed: &'a Placed, count: usize, extent: i64 },
}

impl Loop {
    const DONE: Self = Self { offset: 0, len: 0, stride: 0, left: 0, ty: None };

    fn of(offset: i64, Dense { len, ty }: Dense, stride: i64, left: usize) -> Self {
        Self { offset, len, stride, left, ty }
    }

    /// Leaves out `count` pieces.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.left -= count;
        self.offset = self.offset.wrapping_add(self.stride.wrapping_mul(count as i64));
    }
}

impl<'a> Root<'a> {
    fn new(placed: &'a Placed, count: usize, extent: i64) -> Self {
        let Placed { displacement, node } = placed;
        match node {
            Node::Dense(dense) if count == 1 || dense.len as i128 == i128::from(extent) => {
                Self::Loop(Loop::of(*displacement, Dense { len: dense.len * count, ..*dense }, 0, 1))
            }
            Node::Dense(dense) => Self::Loop(Loop::of(*displacement, *dense, extent, count)),
            Node::Repeat(repeat) => match repeat.inner {
                Node::Dense(dense)
                    if count == 1
                        || repeat.count as i128 * i128::from(repeat.stride) == i128::from(extent) =>
                {
                    Self::Loop(Loop::of(*displacement, dense, repeat.stride, repeat.count * count))
                }
                _ => Self::Tree { placed, count, extent },
            },
            Node::List(_) => Self::Tree { placed, count, extent },
        }
    }
}

impl<'a> Walk<'a> {
    /// At the begin of `count` instances, `extent` bytes apart. The caller knows that nothing overflows.
    pub(super) fn new(placed: Option<&'a Placed>, count: usize, extent: i64) -> Self {
        let root = match placed {
            Some(placed) if count > 0 => Root::new(placed, count, extent),
            _ => Root::Loop(Loop::DONE),
        };
        let mut walk = Self { inner: Loop::DONE, head: 0, stack: Vec::new(), root };
        match root {
            Root::Loop(inner) => walk.inner = inner,
            Root::Tree { .. } => walk.seek(0),
        }
        walk
    }

    /// Goes to byte `position` of the data, which must be less than all of it.
    pub(super) fn seek(&mut self, position: usize) {
        self.stack.clear();
        match self.root {
            Root::Loop(inner) => {
                self.inner = inner;
                self.inner.advance(position / inner.len.max(1));
                self.head = position % inner.len.max(1);
            }
            Root::Tree { placed: Placed { displacement, node }, count, extent } => {
                let (whole, rest) = (position / node.bytes(), position % node.bytes());
                let base = displacement.wrapping_add(extent.wrapping_mul(whole as i64));
                if count > 1 {
                    let next = base.wrapping_add(extent);
                    self.stack.push(Frame::Repeat {
                        left: count - whole - 1,
                        next,
                        stride: extent,
                        inner: node,
                    });
                }
                self.descend(node, base, rest);
            }
        }
    }

    /// Into the innermost loop that has byte `position` of `node`'s data.
    fn descend(&mut self, mut node: &'a Node, mut base: i64, mut position: usize) {
        loop {
            match node {
                Node::Dense(dense) => {
                    self.inner = Loop::of(base, *dense, 0, 1);
                    self.head = position;
                    return;
                }
                Node::Repeat(repeat) => {
                    let (count, stride) = (repeat.count, repeat.stride);
                    let (whole, rest) = match position {
                        0 => (0, 0),
                        _ => (position / repeat.inner.bytes(), position % repeat.inner.bytes()),
                    };
                    base = base.wrapping_add(stride.wrapping_mul(whole as i64));
                    if let Node::Dense(dense) = repeat.inner {
                        self.inner = Loop::of(base, dense, stride, count - whole);
                        self.head = rest;
                        return;
                    }
                    let next = base.wrapping_add(stride);
                    self.stack.push(Frame::Repeat {
                        left: count - whole - 1,
                        next,
                        stride,
                        inner: &repeat.inner,
                    });
                    (node, position) = (&repeat.inner, rest);
                }
                Node::List(list) => {
                    let at = if position == 0 { 0 } else { list.find(position) };
                    let entry = &list.entries[at];
                    self.stack.push(Frame::List { next: at + 1, base, list });
                    base = base.wrapping_add(entry.displacement);
                    (node, position) = (&entry.node, position - entry.start);
                }
            }
        }
    }

    /// Makes sure that the innermost loop has a piece left; false at the end.
    #[inline]
    pub(super) fn ready(&mut self) -> bool {
        self.inner.left > 0 || self.refill()
    }

    /// To the next innermost loop. The last piece of the one before is done, so `head` is 0.
    fn refill(&mut self) -> bool {
        while let Some(frame) = self.stack.last_mut() {
            let (node, base) = match frame {
                Frame::Repeat { left: 0, .. } => {
                    self.stack.pop();
                    continue;
                }
                Frame::Repeat { left, next, stride, inner } => {
                    let base = *next;
                    *left -= 1;
                    *next = next.wrapping_add(*stride);
                    (*inner, base)
                }
                Frame::List { next, base, list } => {
                    let Some(entry) = list.entries.get(*next) else {
                        self.stack.pop();
                        continue;
                    };
                    *next += 1;
                    (&entry.node, base.wrapping_add(entry.displacement))
                }
            };
            if let Node::Dense(dense) = node {
                self.inner = Loop::of(base, *dense, 0, 1);
            } else {
                self.descend(node, base, 0);
            }
            return true;
        }
        false
    }

    /// The next piece, or what is left of it.
    #[inline]
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        if !self.ready() {
            return None;
        }
        let Loop { offset, len, ty, .. } = self.inner;
        let head = std::mem::take(&mut self.head);
        self.inner.advance(1);
        Some(Piece { offset: offset.wrapping_add(head as i64), len: len - head, ty })
    }
}

/// Consecutive bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) offset: i64,
    pub(super) len: usize,
    pub(super) ty: Option<Leaf>,
}
