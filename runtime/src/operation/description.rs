//! What is asked of a target: one description for every kind of operation, for every interface.

use transom_transport::{Basic, DataType, ReduceOp};
use zerocopy::IntoBytes;

use super::Layout;
use super::request::Deferred;
use crate::Element;
use crate::memory::{OriginBuffer, ResultBuffer};

/// An operation on a target's part of a window (MPI-4.1 §12.3).
#[derive(Debug)]
pub(crate) struct Description<'a> {
    /// By its name in errors; explanations derive its kind from that.
    pub name: &'static str,
    pub target: usize,
    /// In the target's displacement units; in a dynamic window an address.
    pub displacement: usize,
    /// How its data lies at the target; one element behind the other if nothing is said.
    pub layout: Option<Layout<'a>>,
    pub action: Action<'a>,
}

/// What it does there.
#[derive(Debug)]
pub(crate) enum Action<'a> {
    /// Stores what lies in `origin` as `from` says, or all of it.
    Put { origin: OriginBuffer<'a>, from: Option<Layout<'a>> },
    /// Loads to where `to` says in `result`, or to all of it.
    Get { result: ResultBuffer<'a>, to: Option<Layout<'a>> },
    /// Updates elements; what was there goes to `fetched`, which is as long as the operands.
    Accumulate { what: Accumulate<'a>, fetched: Option<&'a mut [u8]> },
    /// Stores `value` in one element of `ty` if that has the bytes of `compare`; what was there goes to `old`.
    CompareSwap { ty: DataType, compare: &'a [u8], value: &'a [u8], old: &'a mut [u8] },
    /// Stores `bytes`, then counts a notification of `number`.
    Notify { bytes: &'a [u8], number: u64 },
}

/// What an accumulate does: the operation, the element type, the operands one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accumulate<'a> {
    pub op: ReduceOp,
    pub ty: DataType,
    pub operands: &'a [u8],
}

impl<'a> Accumulate<'a> {
    /// What an accumulate of elements does.
    #[inline(always)]
    pub fn of<T: Element + Basic>(op: ReduceOp, data: &'a [T]) -> Self {
        Self { op, ty: T::TYPE, operands: data.as_bytes() }
    }
}

/// When an operation is complete here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion<'a> {
    /// After a flush or the end of the epoch. What an accumulate fetches is there when the call returns.
    Flush,
    /// When the call returns.
    Call,
    /// When its request is: parts that end after the call are counted there.
    Request(&'a Deferred),
}

impl<'a> Completion<'a> {
    /// What counts its parts, if it has a request.
    pub fn deferred(self) -> Option<&'a Deferred> {
        match self {
            Self::Request(deferred) => Some(deferred),
            Self::Flush | Self::Call => None,
        }
    }
}

impl<'a> Description<'a> {
    /// `MPI_Put` of all of `origin`.
    pub fn put(target: usize, displacement: usize, origin: OriginBuffer<'a>) -> Self {
        Self { name: "put", target, displacement, layout: None, action: Action::Put { origin, from: None } }
    }

    /// `MPI_Get` to all of `result`.
    pub fn get(target: usize, displacement: usize, result: ResultBuffer<'a>) -> Self {
        Self { name: "get", target, displacement, layout: None, action: Action::Get { result, to: None } }
    }

    /// `MPI_Accumulate`, or with `fetched` `MPI_Get_accumulate`, of consecutive elements.
    pub fn accumulate(
        target: usize,
        displacement: usize,
        what: Accumulate<'a>,
        fetched: Option<&'a mut [u8]>,
    ) -> Self {
        let name = if fetched.is_some() { "get_accumulate" } else { "accumulate" };
        Self { name, target, displacement, layout: None, action: Action::Accumulate { what, fetched } }
    }

    /// `MPI_Fetch_and_op`: on one element.
    pub fn fetch_op(target: usize, displacement: usize, what: Accumulate<'a>, old: &'a mut [u8]) -> Self {
        Self { name: "fetch_and_op", ..Self::accumulate(target, displacement, what, Some(old)) }
    }

    /// `MPI_Compare_and_swap`.
    pub fn compare_swap(
        target: usize,
        displacement: usize,
        ty: DataType,
        (compare, value): (&'a [u8], &'a [u8]),
        old: &'a mut [u8],
    ) -> Self {
        let action = Action::CompareSwap { ty, compare, value, old };
        Self { name: "compare_and_swap", target, displacement, layout: None, action }
    }

    /// A put with notification.
    pub fn notify(target: usize, displacement: usize, bytes: &'a [u8], number: u64) -> Self {
        let action = Action::Notify { bytes, number };
        Self { name: "put_notify", target, displacement, layout: None, action }
    }

    /// The same by another name.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same with layouts here (of what is put or got) and at the target.
    pub fn with_layouts(mut self, here: Layout<'a>, there: Layout<'a>) -> Self {
        match &mut self.action {
            Action::Put { from, .. } => *from = Some(here),
            Action::Get { to, .. } => *to = Some(here),
            _ => {}
        }
        Self { layout: Some(there), ..self }
    }

    /// Bytes of its data, without layouts.
    pub fn bytes(&self) -> usize {
        match &self.action {
            Action::Put { origin, .. } => origin.bytes().len(),
            Action::Get { result, .. } => result.len(),
            Action::Accumulate { what, .. } => what.operands.len(),
            Action::CompareSwap { ty, .. } => ty.size(),
            Action::Notify { bytes, .. } => bytes.len(),
        }
    }

    /// Bytes that belong together: an element of an update, a byte of a transfer.
    pub fn element(&self) -> usize {
        match &self.action {
            Action::Accumulate { what, .. } => what.ty.size(),
            Action::CompareSwap { ty, .. } => ty.size(),
            Action::Put { .. } | Action::Get { .. } | Action::Notify { .. } => 1,
        }
    }

    /// Whether elements are updated by it.
    pub fn is_update(&self) -> bool {
        matches!(self.action, Action::Accumulate { .. } | Action::CompareSwap { .. })
    }

    /// Whether it brings something back.
    pub fn fetches(&self) -> bool {
        match &self.action {
            Action::Accumulate { fetched, .. } => fetched.is_some(),
            Action::CompareSwap { .. } | Action::Get { .. } => true,
            Action::Put { .. } | Action::Notify { .. } => false,
        }
    }
}
