//! Which operations need a flush before them: puts and gets are ordered with nothing, accumulates of one type with each
//! other (MPI-4.1 §12.7.2).

use transom::DataType;

use super::program::{Operation, Program, Verb};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Put,
    Get,
    /// Of elements that are all so many bytes off a multiple of their size, if they are.
    Accumulate(DataType, Option<usize>),
}

/// What one rank has under way.
#[derive(Debug)]
pub struct Order {
    /// Whether accumulates are ordered.
    ordered: bool,
    /// Target, region, first byte, end.
    pending: Vec<(usize, usize, usize, usize, Class)>,
}

impl Order {
    pub fn new(program: &Program) -> Self {
        Self { ordered: !program.hints.contains(&("accumulate_ordering", "none")), pending: Vec::new() }
    }

    /// Whether the operation's target must be flushed before it.
    pub fn conflicts(&self, operation: &Operation) -> bool {
        let Some((target, region, start, end, class)) = describe(operation) else { return false };
        self.pending.iter().any(|(to, of, first, last, other)| {
            let apart = *to != target || *of != region || *last <= start || end <= *first;
            let harmless = match (class, *other) {
                (Class::Get, Class::Get) => true,
                (Class::Accumulate(_, Some(_)), Class::Accumulate(..)) => self.ordered && class == *other,
                _ => false,
            };
            !apart && !harmless
        })
    }

    /// The operation is done, after a flush if it needs one.
    pub fn add(&mut self, operation: &Operation) {
        match operation.verb {
            Verb::FlushAll | Verb::FlushLocalAll => self.pending.clear(),
            Verb::Flush | Verb::FlushLocal => self.flushed(operation.target),
            _ => {
                if self.conflicts(operation) {
                    self.flushed(operation.target);
                }
                if operation.verb.is_pending() {
                    self.pending.extend(describe(operation));
                }
            }
        }
    }

    fn flushed(&mut self, target: Option<usize>) {
        self.pending.retain(|pending| Some(pending.0) != target);
    }
}

fn describe(operation: &Operation) -> Option<(usize, usize, usize, usize, Class)> {
    let target = operation.target?;
    if operation.verb.is_flush() || operation.verb.is_local() {
        return None;
    }
    let (low, high) = operation.there.span();
    let class = match operation.verb {
        verb if verb.is_put() => Class::Put,
        verb if verb.is_get() => Class::Get,
        _ => {
            let mut places = operation.places();
            let (first, ty) = places.next()?;
            let phase = first % ty.size();
            let regular = places.all(|(at, _)| at % ty.size() == phase);
            Class::Accumulate(ty, regular.then_some(phase))
        }
    };
    Some((target, operation.region, operation.at + low, operation.at + high, class))
}
