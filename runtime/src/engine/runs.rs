//! Non-contiguous accesses, as the agent carries them out. `None` for a malformed message.

use transom_transport::{DataType, ReduceOp};

use super::Exposure;
use super::agent::Answer;
use crate::protocol::runs::{WireRun, split};

/// Calls `each` with offset and bytes of every run.
fn each<'a>(
    runs: &[WireRun],
    mut data: &'a [u8],
    mut each: impl FnMut(usize, &'a [u8]) -> Option<()>,
) -> Option<()> {
    for run in runs {
        let (offset, bytes) = run.parts()?;
        let (part, rest) = data.split_at_checked(bytes)?;
        each(offset, part)?;
        data = rest;
    }
    data.is_empty().then_some(())
}

pub(super) fn put(exposure: &Exposure, count: u64, payload: &[u8]) -> Option<Answer> {
    let (runs, data) = split(payload, count)?;
    each(runs, data, |offset, part| {
        exposure.with(offset, part.len(), |memory, at| memory.copy_in(at, part).ok())?
    })?;
    Some(Answer::Value(0))
}

pub(super) fn get(exposure: &Exposure, count: u64, payload: &[u8], most: usize) -> Option<Answer> {
    let (runs, _) = split(payload, count)?;
    let mut data = Vec::new();
    for run in runs {
        let (offset, bytes) = run.parts()?;
        let start = data.len();
        if bytes > most - start {
            return None;
        }
        data.resize(start + bytes, 0);
        exposure.with(offset, bytes, |memory, at| memory.copy_out(at, &mut data[start..]).ok())??;
    }
    Some(Answer::Data(data))
}

pub(super) fn accumulate(
    exposure: &Exposure,
    (op, ty): (ReduceOp, DataType),
    count: u64,
    payload: &[u8],
) -> Option<Answer> {
    let (runs, data) = split(payload, count)?;
    each(runs, data, |offset, part| exposure.accumulate(op, ty, offset, part))?;
    Some(Answer::Value(0))
}

pub(super) fn get_accumulate(
    exposure: &Exposure,
    (op, ty): (ReduceOp, DataType),
    count: u64,
    payload: &[u8],
) -> Option<Answer> {
    let (runs, data) = split(payload, count)?;
    let mut old = vec![0; data.len()];
    let mut done = 0;
    each(runs, data, |offset, part| {
        let result = old.get_mut(done..done + part.len())?;
        done += part.len();
        exposure.get_accumulate(op, ty, offset, part, result)
    })?;
    Some(Answer::Data(old))
}
