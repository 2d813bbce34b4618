//! Small operations of a lock epoch in one message, with the request for the lock: of each a head, then its data.
//!
//! A receiver checks every number; what is here is well-formed, whether it lies in the window is up to the receiver.

use transom_transport::{DataType, ReduceOp, reduce_valid, swap_valid};
use zerocopy::native_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An operation on contiguous memory at a byte offset of the target's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Store the bytes.
    Put(&'a [u8]),
    /// Fetch so many bytes.
    Get(usize),
    /// Update elements by these operands.
    Accumulate(ReduceOp, DataType, &'a [u8]),
    /// The same, and fetch what was there.
    GetAccumulate(ReduceOp, DataType, &'a [u8]),
    /// Store the second element if the first is there, and fetch what was there.
    CompareSwap(DataType, &'a [u8], &'a [u8]),
}

const PUT: u8 = 0;
const GET: u8 = 1;
const ACCUMULATE: u8 = 2;
const GET_ACCUMULATE: u8 = 3;
const COMPARE_SWAP: u8 = 4;

/// The head of an operation.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    kind: u8,
    op: u8,
    ty: u8,
    _zero: u8,
    /// Of its data; of a get, of what it fetches.
    bytes: U32,
    offset: U64,
}

/// Bytes of the head of an operation.
pub const HEAD_BYTES: usize = size_of::<Head>();

impl<'a> Operation<'a> {
    /// Bytes of the window that it accesses.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put(data) => data.len(),
            Self::Get(bytes) => *bytes,
            Self::Accumulate(_, _, operands) | Self::GetAccumulate(_, _, operands) => operands.len(),
            Self::CompareSwap(_, compare, _) => compare.len(),
        }
    }

    /// Bytes that it brings back.
    pub fn fetched(&self) -> usize {
        match self {
            Self::Put(_) | Self::Accumulate(..) => 0,
            Self::Get(_) | Self::GetAccumulate(..) | Self::CompareSwap(..) => self.bytes(),
        }
    }

    /// Its data, in two parts.
    fn data(&self) -> [&'a [u8]; 2] {
        match *self {
            Self::Put(data) | Self::Accumulate(_, _, data) | Self::GetAccumulate(_, _, data) => [data, &[]],
            Self::Get(_) => [&[], &[]],
            Self::CompareSwap(_, compare, value) => [compare, value],
        }
    }

    fn head(&self, offset: u64) -> Option<Head> {
        let head = |kind, op, ty| (kind, op, ty);
        let (kind, op, ty) = match *self {
            Self::Put(_) => head(PUT, 0, 0),
            Self::Get(_) => head(GET, 0, 0),
            Self::Accumulate(op, ty, _) => head(ACCUMULATE, op as u8, ty as u8),
            Self::GetAccumulate(op, ty, _) => head(GET_ACCUMULATE, op as u8, ty as u8),
            Self::CompareSwap(ty, ..) => head(COMPARE_SWAP, 0, ty as u8),
        };
        let [first, second] = self.data();
        let bytes = if kind == GET { self.bytes() } else { first.len() + second.len() };
        let bytes = u32::try_from(bytes).ok()?;
        Some(Head { kind, op, ty, _zero: 0, bytes: bytes.into(), offset: offset.into() })
    }

    /// The operation of a head, of data that begins with its own.
    fn of(head: &Head, data: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let bytes = usize::try_from(head.bytes.get()).ok()?;
        if head.kind == GET {
            return Some((Self::Get(bytes), data));
        }
        let (own, rest) = data.split_at_checked(bytes)?;
        let ty = || DataType::from_wire(head.ty);
        let elements = || {
            let (op, ty) = (ReduceOp::from_wire(head.op)?, ty()?);
            (reduce_valid(op, ty) && own.len().is_multiple_of(ty.size())).then_some((op, ty, own))
        };
        let operation = match head.kind {
            PUT => Self::Put(own),
            ACCUMULATE => elements().map(|(op, ty, operands)| Self::Accumulate(op, ty, operands))?,
            GET_ACCUMULATE => elements().map(|(op, ty, operands)| Self::GetAccumulate(op, ty, operands))?,
            COMPARE_SWAP => {
                let ty = ty().filter(|ty| swap_valid(*ty) && own.len() == 2 * ty.size())?;
                let (compare, value) = own.split_at(ty.size());
                Self::CompareSwap(ty, compare, value)
            }
            _ => return None,
        };
        Some((operation, rest))
    }
}

/// Operations that are gathered until a message is full.
#[derive(Debug, Default)]
pub struct Gathered {
    payload: Vec<u8>,
    count: u64,
}

impl Gathered {
    /// Adds one, if it fits in a message of `room` bytes, and what it brings back in a reply of as many.
    pub fn push(&mut self, offset: u64, operation: &Operation<'_>, room: usize) -> bool {
        let Some(head) = operation.head(offset) else { return false };
        let [first, second] = operation.data();
        let free = room.saturating_sub(self.payload.len());
        if HEAD_BYTES + first.len() + second.len() > free || operation.fetched() > room {
            return false;
        }
        self.payload.extend_from_slice(head.as_bytes());
        self.payload.extend_from_slice(first);
        self.payload.extend_from_slice(second);
        self.count += 1;
        true
    }

    /// What a message that names no window carries of them: the target's number of it comes first.
    pub fn in_window(&self, window: u32) -> Vec<u8> {
        let mut payload = Vec::with_capacity(WINDOW_BYTES + self.payload.len());
        payload.extend_from_slice(&window.to_ne_bytes());
        // As many as fit in a message can be counted so.
        payload.extend_from_slice(&(self.count as u32).to_ne_bytes());
        payload.extend_from_slice(&self.payload);
        payload
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What a message of them carries.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Leaves none.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.count = 0;
    }
}

/// Bytes of what names the window, and the number of operations.
pub const WINDOW_BYTES: usize = 8;

/// The window, the number of operations, and these, of what [`Gathered::in_window`] has made.
pub fn split_window(payload: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (window, rest) = payload.split_first_chunk()?;
    let (count, operations) = rest.split_first_chunk()?;
    Some((u32::from_ne_bytes(*window), u32::from_ne_bytes(*count).into(), operations))
}

/// Calls `each` with the offset of each of `count` operations, and the operation, as long as it gives something. `None` if it
/// does not, or if the payload is malformed.
pub fn each<'a>(
    mut payload: &'a [u8],
    count: u64,
    mut each: impl FnMut(u64, Operation<'a>) -> Option<()>,
) -> Option<()> {
    for _ in 0..count {
        let (head, data) = Head::ref_from_prefix(payload).ok()?;
        let (operation, rest) = Operation::of(head, data)?;
        each(head.offset.get(), operation)?;
        payload = rest;
    }
    payload.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An operation of these bytes, of some kind.
    fn operation(kind: u8, data: &[u8]) -> Operation<'_> {
        let words = &data[..data.len() / 8 * 8];
        match kind {
            PUT => Operation::Put(data),
            GET => Operation::Get(data.len()),
            ACCUMULATE => Operation::Accumulate(ReduceOp::Sum, DataType::I64, words),
            GET_ACCUMULATE => Operation::GetAccumulate(ReduceOp::Max, DataType::F64, words),
            _ => Operation::CompareSwap(DataType::U64, &[1; 8], &[2; 8]),
        }
    }

    proptest! {
        #[test]
        fn what_is_gathered_comes_apart_again(
            made in proptest::collection::vec((0u8..5, any::<u64>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
            room in 0usize..600,
        ) {
            let mut gathered = Gathered::default();
            let mut kept = Vec::new();
            for (kind, offset, data) in &made {
                let operation = operation(*kind, data);
                if gathered.push(*offset, &operation, room) {
                    kept.push((*offset, operation));
                }
                prop_assert!(gathered.payload().len() <= room);
            }
            prop_assert_eq!(gathered.count(), kept.len() as u64);
            let mut found = Vec::new();
            let whole = each(gathered.payload(), gathered.count(), |offset, operation| {
                found.push((offset, operation));
                Some(())
            });
            prop_assert!(whole.is_some());
            prop_assert_eq!(found, kept);
            let named = gathered.in_window(7);
            prop_assert_eq!(split_window(&named), Some((7, gathered.count(), gathered.payload())));
            prop_assert!(split_window(&named[..WINDOW_BYTES - 1]).is_none());
            // Neither another number of operations nor a part of the payload is taken.
            prop_assert!(each(gathered.payload(), gathered.count() + 1, |_, _| Some(())).is_none());
            if let Some(short) = gathered.payload().len().checked_sub(1) {
                prop_assert!(each(&gathered.payload()[..short], gathered.count(), |_, _| Some(())).is_none());
                prop_assert!(each(gathered.payload(), gathered.count() - 1, |_, _| Some(())).is_none());
            }
        }

        #[test]
        fn a_strangers_bytes_are_refused_or_well_formed(
            bytes in proptest::collection::vec(prop_oneof![0u8..9, any::<u8>()], 0..120),
            count in prop_oneof![0u64..4, any::<u64>()],
        ) {
            let mut data = 0;
            let _ = each(&bytes, count, |_, operation| {
                let (compare, value) = match operation {
                    Operation::Accumulate(op, ty, operands) | Operation::GetAccumulate(op, ty, operands) => {
                        assert!(reduce_valid(op, ty) && operands.len() % ty.size() == 0);
                        (operands, &[][..])
                    }
                    Operation::CompareSwap(ty, compare, value) => {
                        assert!(swap_valid(ty) && compare.len() == ty.size() && value.len() == ty.size());
                        (compare, value)
                    }
                    Operation::Put(data) => (data, &[][..]),
                    Operation::Get(_) => (&[][..], &[][..]),
                };
                data += HEAD_BYTES + compare.len() + value.len();
                Some(())
            });
            prop_assert!(data <= bytes.len());
        }
    }
}
