//! Operations that came together in one message, as the agent carries them out.

use super::Exposure;
use crate::protocol::gathered::{Operation, each};

/// Whether the window holds what `count` operations access, and `most` bytes what they fetch.
pub(super) fn check(exposure: &Exposure, count: u64, operations: &[u8], most: usize) -> Option<()> {
    let mut fetched = 0usize;
    each(operations, count, |offset, operation| {
        exposure.with(usize::try_from(offset).ok()?, operation.bytes(), |_, _| ())?;
        fetched = fetched.checked_add(operation.fetched()).filter(|fetched| *fetched <= most)?;
        Some(())
    })
}

/// Carries them out, one after the other; what they fetch.
pub(super) fn carry_out(exposure: &Exposure, count: u64, operations: &[u8]) -> Option<Vec<u8>> {
    let mut fetched = Vec::new();
    each(operations, count, |offset, operation| {
        one(exposure, usize::try_from(offset).ok()?, operation, &mut fetched)
    })?;
    Some(fetched)
}

/// Checks and carries out operations that fetch nothing. None of them if one is wrong.
pub(super) fn apply(exposure: &Exposure, count: u64, operations: &[u8]) -> Option<()> {
    check(exposure, count, operations, 0)?;
    carry_out(exposure, count, operations).map(drop)
}

/// Carries out one operation; what it fetches is appended.
fn one(exposure: &Exposure, offset: usize, operation: Operation<'_>, fetched: &mut Vec<u8>) -> Option<()> {
    let start = fetched.len();
    fetched.resize(start + operation.fetched(), 0);
    let old = &mut fetched[start..];
    match operation {
        Operation::Put(data) => {
            exposure.with(offset, data.len(), |memory, at| memory.copy_in(at, data).ok())?
        }
        Operation::Get(bytes) => exposure.with(offset, bytes, |memory, at| memory.copy_out(at, old).ok())?,
        Operation::Accumulate(op, ty, operands) => exposure.accumulate(op, ty, offset, operands),
        Operation::GetAccumulate(op, ty, operands) => exposure.get_accumulate(op, ty, offset, operands, old),
        Operation::CompareSwap(ty, compare, value) => exposure.compare_swap(ty, offset, compare, value, old),
    }
}
