//! Operations on mapped memory, by this thread: loads and stores, CPU atomics, and the locks of elements that have none.

use transom_transport::{DataType, Reduction, Span, TransportResult};

use super::Layout;
use super::description::Accumulate;
use super::place::Place;
use crate::datatype::zip_runs;
use crate::window::{Core, Domain};
use crate::{Class, Result};

/// The layouts of a transfer: here, and at the target.
pub(super) type Layouts<'a> = (Layout<'a>, Layout<'a>);

/// Stores bytes.
pub(super) fn put(core: &Core, place: &Place<'_>, memory: &Span, bytes: &[u8]) -> Result<()> {
    let copied = memory.copy_in(place.offset, bytes);
    copied.map_err(|e| core.failed(place.operation, place.target, &e))
}

/// Loads bytes.
pub(super) fn get(core: &Core, place: &Place<'_>, memory: &Span, bytes: &mut [u8]) -> Result<()> {
    let copied = memory.copy_out(place.offset, bytes);
    copied.map_err(|e| core.failed(place.operation, place.target, &e))
}

/// Stores, run by run.
pub(super) fn put_layout(
    core: &Core,
    place: &Place<'_>,
    memory: &Span,
    data: &[u8],
    layouts: Layouts<'_>,
) -> Result<()> {
    each_run(core, place, layouts, |offset, here| Some(memory.copy_in(offset, data.get(here)?)))
}

/// Loads, run by run.
pub(super) fn get_layout(
    core: &Core,
    place: &Place<'_>,
    memory: &Span,
    data: &mut [u8],
    layouts: Layouts<'_>,
) -> Result<()> {
    each_run(core, place, layouts, |offset, here| Some(memory.copy_out(offset, data.get_mut(here)?)))
}

/// Calls `copy` with each run: where in the target's memory, and where in the local buffer. `None`: there is no such part.
fn each_run(
    core: &Core,
    place: &Place<'_>,
    (here, there): Layouts<'_>,
    mut copy: impl FnMut(usize, std::ops::Range<usize>) -> Option<TransportResult<()>>,
) -> Result<()> {
    for (at, to, bytes) in zip_runs(here.count, here.datatype, there.count, there.datatype)? {
        let copied = copy(place.offset + place.ahead(to), range(at, bytes));
        copied
            .ok_or_else(|| leaves(core, place))?
            .map_err(|e| core.failed(place.operation, place.target, &e))?;
    }
    Ok(())
}

/// The bytes of a run in a local buffer.
pub(super) fn range(at: i64, bytes: usize) -> std::ops::Range<usize> {
    let start = index(at);
    start..start.saturating_add(bytes)
}

/// An offset in a local buffer.
pub(super) fn index(offset: i64) -> usize {
    // Layouts of local buffers start at 0 or later (layout::check_local).
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cold]
pub(super) fn leaves(core: &Core, place: &Place<'_>) -> crate::Error {
    core.error(Class::Count, place.operation, "a layout leaves its buffer")
}

/// Whether others may map the target's memory, so that all update it by the same rules (`Updates`). The device keeps to none.
fn is_shared(core: &Core, place: &Place<'_>) -> bool {
    let others = place.target != core.rank() || !core.private;
    others && core.domain == Domain::Cpu
}

/// Updates elements from `ahead` bytes behind the place on. Where only this rank and its agent do, the agent's large updates are
/// kept away.
pub(super) fn update(
    core: &Core,
    place: &Place<'_>,
    memory: &Span,
    ahead: usize,
    what: Accumulate<'_>,
    fetched: Option<&mut [u8]>,
) -> Result<()> {
    let (number, offset) = (place.agent_offset() + ahead as u64, place.offset + ahead);
    let Accumulate { op, ty, operands } = what;
    let updated = if is_shared(core, place) {
        let updates = core.updates(place.operation, place.target, place.peer)?;
        if updates.should_switch(operands.len()) {
            updates.switch_to_locks(|| core.no_update_under_way());
        }
        let what = Reduction { op, ty, operands };
        updates.many(&core.member.control.sections, memory, number, offset, what, fetched)
    } else {
        let stripes = core.stripes(place.operation, place.target, place.peer)?;
        let _updating = core.private.then(|| core.exposure.update_lock.read());
        memory.update(stripes, number, op, ty, offset, operands, fetched)
    };
    updated.map_err(|e| core.failed(place.operation, place.target, &e))
}

/// Replaces one element if it has the bytes of `compare`.
pub(super) fn compare_swap(
    core: &Core,
    place: &Place<'_>,
    memory: &Span,
    ty: DataType,
    (compare, value): (&[u8], &[u8]),
    old: &mut [u8],
) -> Result<()> {
    let number = place.agent_offset();
    let stripes = core.stripes(place.operation, place.target, place.peer)?;
    let mut swap = || memory.compare_swap_bytes(stripes, number, ty, place.offset, compare, value, old);
    let swapped: TransportResult<()> = if is_shared(core, place) {
        let updates = core.updates(place.operation, place.target, place.peer)?;
        updates.one(&core.member.control.sections, number, &mut swap)
    } else {
        let _updating = core.private.then(|| core.exposure.update_lock.read());
        swap()
    };
    swapped.map_err(|e| core.failed(place.operation, place.target, &e))
}
