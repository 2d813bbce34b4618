//! A program's operations as calls of the library.

use transom::*;

use super::any::{Operand, fetch, swap, with_operation};
use super::program::{Operation, Verb};
use super::window::Cell;

macro_rules! with_integer_operation {
    ($op:expr, $body:expr) => {
        with_operation!($op => $body; Sum Prod Min Max Land Lor Lxor Band Bor Bxor Replace NoOp)
    };
}

/// Buffers of one operation, which live longer than its epoch.
#[derive(Debug)]
pub struct Buffers<T> {
    pub words: Vec<T>,
    pub fetched_words: Vec<T>,
    pub fetched: Vec<u8>,
    pub from: Datatype,
    pub to: Datatype,
    pub there: Datatype,
}

/// Where an operation goes.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub target: usize,
    pub displacement: usize,
}

/// Buffers of one operation, borrowed for an epoch.
pub struct Lent<'env, T> {
    operation: &'env Operation,
    words: &'env [T],
    fetched_words: &'env mut [T],
    fetched: &'env mut [u8],
    from: Layout<'env>,
    to: Layout<'env>,
    there: Layout<'env>,
}

impl<T> Buffers<T> {
    pub fn lend<'env>(&'env mut self, operation: &'env Operation) -> Lent<'env, T> {
        Lent {
            operation,
            words: &self.words,
            fetched_words: &mut self.fetched_words,
            fetched: &mut self.fetched,
            from: Layout::new(operation.from.count, &self.from),
            to: Layout::new(operation.to.count, &self.to),
            there: Layout::new(operation.there.count, &self.there),
        }
    }
}

impl<'env, T> Lent<'env, T> {
    /// Where elements of the window's go that are fetched.
    pub fn fetched(self) -> &'env mut [T] {
        self.fetched_words
    }
}

/// An epoch of either kind.
pub trait Calls<'env, T: Cell> {
    fn call(&self, lent: Lent<'env, T>, goal: Goal) -> Result<()>;
    fn flush(&self, target: usize, verb: Verb) -> Result<()>;
}

macro_rules! flushes {
    ($kind:ident, $rma:expr, $target:expr, $verb:expr) => {
        match $verb {
            Verb::FlushLocal => $rma.flush_local($target),
            Verb::FlushAll => $rma.flush_all(),
            Verb::FlushLocalAll => $rma.flush_local_all(),
            _ => $kind::flush($rma, $target),
        }
    };
}

/// The calls that both kinds of epochs have under the same name.
macro_rules! common {
    ($rma:expr, $lent:expr, $goal:expr) => {{
        let (Lent { operation, words, fetched_words, fetched, from, to, there }, rma) = ($lent, $rma);
        let (Goal { target, displacement }, data) = ($goal, &operation.data[..]);
        match (operation.verb, operation.typed) {
            (Verb::Put | Verb::PutCopy | Verb::PutNotify(_), true) => rma.put(target, displacement, words),
            (Verb::Put | Verb::PutCopy | Verb::PutNotify(_), false) => {
                rma.put_as(target, displacement, data, from, there)
            }
            (Verb::Get | Verb::Read, true) => rma.get(target, displacement, fetched_words),
            (Verb::Get | Verb::Read, false) => rma.get_as(target, displacement, fetched, to, there),
            (Verb::Accumulate(op), true) => {
                with_integer_operation!(op, |op| rma.accumulate(target, displacement, op, words))
            }
            (Verb::Accumulate(op), false) => rma.accumulate_as(target, displacement, op, data, from, there),
            (Verb::GetAccumulate(op), true) => {
                with_integer_operation!(op, |op| rma.get_accumulate(
                    target,
                    displacement,
                    op,
                    words,
                    fetched_words
                ))
            }
            (Verb::GetAccumulate(op), false) => {
                rma.get_accumulate_as(target, displacement, op, data, from, fetched, to, there)
            }
            (Verb::FetchOp(op), true) => {
                let value = words[0];
                fetched_words[0] =
                    with_integer_operation!(op, |op| rma.fetch_op(target, displacement, op, value))?;
                Ok(())
            }
            (Verb::CompareSwap, true) => {
                let compare = T::read_from_bytes(&operation.compare[..]).unwrap();
                fetched_words[0] = rma.compare_and_swap(target, displacement, compare, words[0])?;
                Ok(())
            }
            (verb, _) => panic!("{verb:?} is no call of an epoch"),
        }
    }};
}

impl<'env, T: Cell> Calls<'env, T> for &Epoch<'_, 'env, T> {
    fn call(&self, lent: Lent<'env, T>, goal: Goal) -> Result<()> {
        let Goal { target, displacement } = goal;
        let operation = lent.operation;
        match (operation.verb, operation.typed) {
            (Verb::PutCopy, true) if lent.words.len() == 1 => {
                self.put_value(target, displacement, lent.words[0])
            }
            (Verb::PutCopy, true) => self.put_copy(target, displacement, lent.words),
            (Verb::PutNotify(number), _) => self.put_notify(target, displacement, lent.words, number),
            (Verb::Read, true) if lent.fetched_words.len() == 1 => {
                let value = self.get_value(target, displacement)?;
                if target != NULL_RANK {
                    lent.fetched_words[0] = value;
                }
                Ok(())
            }
            (Verb::Read, true) => self.read(target, displacement, lent.fetched_words),
            (Verb::Read, false) => {
                self.get_as(target, displacement, lent.fetched, lent.to, lent.there)?;
                Epoch::flush(self, target)
            }
            (Verb::FetchOp(op), false) => {
                let ty = operation.there.elements()[0].1;
                fetch(self, goal, op, Operand { ty, data: &operation.data }, lent.fetched)
            }
            (Verb::CompareSwap, false) => {
                let ty = operation.there.elements()[0].1;
                let operand = Operand { ty, data: &operation.data };
                swap(self, goal, &operation.compare, operand, lent.fetched)
            }
            _ => common!(self, lent, goal),
        }
    }

    fn flush(&self, target: usize, verb: Verb) -> Result<()> {
        flushes!(Epoch, self, target, verb)
    }
}

impl<'env, T: Cell> Calls<'env, T> for &Explicit<'_, T> {
    fn call(&self, mut lent: Lent<'env, T>, goal: Goal) -> Result<()> {
        let Goal { target, displacement } = goal;
        let operation = lent.operation;
        match (operation.verb, operation.typed) {
            // Of other types than the window's there is no such call here: one element of the general one.
            (Verb::FetchOp(op), false) => {
                let data = &operation.data[..];
                let (from, to, there) = (lent.from, lent.to, lent.there);
                if target == NULL_RANK {
                    let ty = operation.there.elements()[0].1;
                    super::reduce::copy(ty, lent.fetched, &vec![0; ty.size()]);
                }
                let fetched = std::mem::take(&mut lent.fetched);
                self.get_accumulate_as(target, displacement, op, data, from, fetched, to, there)
            }
            _ => common!(self, lent, goal),
        }
    }

    fn flush(&self, target: usize, verb: Verb) -> Result<()> {
        flushes!(Explicit, self, target, verb)
    }
}
