//! Operations on dynamic windows that one attached region does not hold: MPI-4.1 §12.2.4 asks that all memory of an access is
//! attached, not that it was attached by one call. They are taken apart at the ends of regions.

use super::description::{Accumulate, Action, Completion, Description};
use super::rename;
use crate::datatype::zip_runs;
use crate::memory::OriginBuffer;
use crate::window::Core;
use crate::{Class, Error, Layout, Result};

/// A run of bytes: where in the origin's data, at which address there, how many.
type Run = (usize, usize, usize);

/// Carries out an operation that was refused by `error` in parts, if regions hold all of it; nothing otherwise.
pub(super) fn perform(
    core: &Core,
    mut operation: Description<'_>,
    completion: Completion<'_>,
    error: Error,
) -> Result<()> {
    if error.class() != Class::RmaRange || core.exposure.regions().is_none() {
        return Err(error);
    }
    if let (Action::Accumulate { what, fetched: None }, Some(deferred)) =
        (&operation.action, completion.deferred())
    {
        let mut old = vec![0; what.operands.len()];
        let action = Action::Accumulate { what: *what, fetched: Some(&mut old) };
        perform(core, Description { action, ..operation }, Completion::Flush, error)?;
        deferred.write(0, &old);
        return Ok(());
    }
    let mut parts = Vec::new();
    for run in runs(core, &operation)? {
        split(core, &operation, run, &error, &mut parts)?;
    }
    // What a request stands for is over when the call returns: what is put has been copied, what is got is there.
    let completion = match (&mut operation.action, completion) {
        (Action::Put { origin, .. }, Completion::Request(_)) => {
            *origin = OriginBuffer::owned(origin.bytes());
            Completion::Flush
        }
        (_, Completion::Request(_)) => Completion::Call,
        (_, completion) => completion,
    };
    for (start, address, bytes) in parts {
        let Some(part) = part(&mut operation, start, address, bytes) else { return Err(error) };
        super::perform(core, part, completion)?;
    }
    Ok(())
}

/// Whether `target` has `bytes` bytes at a displacement: before memory is allocated for them.
pub(crate) fn check_range(
    core: &Core,
    name: &'static str,
    target: usize,
    displacement: usize,
    bytes: usize,
) -> Result<()> {
    let Some(peer) = core.target(name, target)? else { return Ok(()) };
    if core.exposure.regions().is_none() {
        return core.locate(name, target, peer, displacement, bytes).map(drop);
    }
    let Err(error) = core.resolve(name, target, peer, displacement, bytes) else { return Ok(()) };
    let nothing = Description::put(target, displacement, OriginBuffer::borrowed(&[])).named(name);
    split(core, &nothing, (0, displacement, bytes), &error, &mut Vec::new())
}

/// The runs of an operation's data.
fn runs(core: &Core, operation: &Description<'_>) -> Result<Vec<Run>> {
    let Description { name, displacement: address, ref action, .. } = *operation;
    let Some(there) = operation.layout else { return Ok(vec![(0, address, operation.bytes())]) };
    let named = |e| rename(core, name, &e);
    let at = |offset: i64| address.wrapping_add_signed(offset as isize);
    match action {
        Action::Put { from: Some(Layout { count, datatype }), .. }
        | Action::Get { to: Some(Layout { count, datatype }), .. } => {
            let runs = zip_runs(*count, datatype, there.count, there.datatype).map_err(named)?;
            // Layouts of local buffers start at 0 or later (layout::check_local).
            let local = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
            Ok(runs.map(|(here, there, bytes)| (local(here), at(there), bytes)).collect())
        }
        _ => {
            let size = operation.element();
            let mut done = 0;
            let runs = there.datatype.elements(there.count).map_err(named)?;
            Ok(runs
                .map(|run| {
                    let start = done;
                    done += run.count * size;
                    (start, at(run.offset), run.count * size)
                })
                .collect())
        }
    }
}

/// Cuts a run at the ends of regions, between elements; the error if there is a gap, or an element in two regions.
fn split(
    core: &Core,
    operation: &Description<'_>,
    (start, address, bytes): Run,
    error: &Error,
    parts: &mut Vec<Run>,
) -> Result<()> {
    let refused = || error.clone();
    let (name, target, element) = (operation.name, operation.target, operation.element());
    let peer = core.target(name, target)?.ok_or_else(refused)?;
    let mut done = 0;
    while done < bytes {
        let at = address.checked_add(done).ok_or_else(refused)?;
        let (region, offset) = core.resolve(name, target, peer, at, element).map_err(|_| refused())?;
        let len = (region.len - offset).min(bytes - done);
        let len = len - len % element;
        if len == 0 {
            return Err(refused());
        }
        parts.push((start + done, at, len));
        done += len;
    }
    Ok(())
}

/// The operation on some bytes of its data.
fn part<'a>(
    operation: &'a mut Description<'_>,
    start: usize,
    displacement: usize,
    bytes: usize,
) -> Option<Description<'a>> {
    let range = start..start.checked_add(bytes)?;
    let action = match &mut operation.action {
        Action::Put { origin, .. } => Action::Put { origin: origin.part(range)?, from: None },
        Action::Get { result, .. } => Action::Get { result: result.part(range)?, to: None },
        Action::Accumulate { what, fetched } => Action::Accumulate {
            what: Accumulate { operands: what.operands.get(range.clone())?, ..*what },
            fetched: match fetched {
                Some(fetched) => Some(fetched.get_mut(range)?),
                None => None,
            },
        },
        // One element, which is in one region or in none.
        Action::CompareSwap { .. } | Action::Notify { .. } => return None,
    };
    Some(Description { name: operation.name, target: operation.target, displacement, layout: None, action })
}
