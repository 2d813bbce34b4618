//! From a list of placed layouts to the normal form.

use super::node::{Node, Placed};

/// From this number of equal layouts at a regular stride on, a loop is better than the list.
const LOOP: usize = 4;

/// Lists up to this length are copied into the list that they are in.
const FLAT: usize = 16;

/// No list grows beyond this length by copies.
const FLATTENED: usize = 1024;

/// Layouts in the order of the type map.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    entries: Vec<Placed>,
    types_matter: bool,
}

impl Sequence {
    /// None yet. If types matter, only elements of one type become one piece.
    pub(super) fn new(types_matter: bool) -> Self {
        Self { entries: Vec::new(), types_matter }
    }

    /// The same, for bytes.
    pub(super) fn without_types(&self) -> Self {
        Self { types_matter: false, ..self.clone() }
    }

    /// Appends `placed`, moved by `displacement` bytes.
    pub(super) fn push(&mut self, placed: &Placed, displacement: i64) {
        let displacement = placed.displacement + displacement;
        let placed = Placed { displacement, node: placed.node.clone() };
        placed.append_to(&mut self.entries, self.types_matter);
    }

    /// The normal form; `None` if empty.
    pub(super) fn finish(self) -> Option<Placed> {
        let mut entries = loops(self.entries);
        if entries.len() < 2 {
            return entries.pop();
        }
        let flat = |entry: &Placed| match &entry.node {
            Node::List(list) if list.entries.len() <= FLAT => list.entries.len(),
            _ => 1,
        };
        let length: usize = entries.iter().map(flat).sum();
        if length > entries.len() && length <= FLATTENED {
            entries = flattened(&entries, self.types_matter);
        }
        if entries.len() < 2 { entries.pop() } else { Placed::list(entries) }
    }
}

/// Makes loops of equal layouts at a regular stride.
fn loops(entries: Vec<Placed>) -> Vec<Placed> {
    let mut result = Vec::with_capacity(entries.len());
    let mut rest = entries.as_slice();
    while let [first, others @ ..] = rest {
        let stride = others.first().map_or(0, |second| second.displacement - first.displacement);
        let regular = |pair: &[Placed]| {
            pair[1].displacement - pair[0].displacement == stride && pair[0].resembles(&pair[1])
        };
        let count = 1 + rest.windows(2).take_while(|pair| regular(pair)).count();
        let taken = if count >= LOOP || count == entries.len() { count } else { 1 };
        result.push(first.repeated(taken, stride));
        rest = &rest[taken..];
    }
    result
}

/// Copies the entries of short lists into the list that they are in.
fn flattened(entries: &[Placed], types_matter: bool) -> Vec<Placed> {
    let mut result = Vec::new();
    for entry in entries {
        match &entry.node {
            Node::List(list) if list.entries.len() <= FLAT => {
                for inner in &list.entries {
                    let displacement = entry.displacement + inner.displacement;
                    Placed { displacement, node: inner.node.clone() }.append_to(&mut result, types_matter);
                }
            }
            _ => entry.clone().append_to(&mut result, types_matter),
        }
    }
    result
}
