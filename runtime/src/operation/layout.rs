//! What datatypes say of an operation: which bytes or elements of the origin meet which of the target (MPI-4.1 §12.3).

use std::borrow::Cow;

use transom_transport::{DataType, ReduceOp, reduce_valid};

use crate::datatype::{Datatype, ElementRun};
use crate::window::Core;
use crate::{Class, Error, Result};

/// So many instances of a datatype.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// Instances.
    pub count: usize,
    /// Of which type.
    pub datatype: &'a Datatype,
}

impl<'a> Layout<'a> {
    /// `count` instances of `datatype`.
    pub fn new(count: usize, datatype: &'a Datatype) -> Self {
        Self { count, datatype }
    }

    /// Where the data lies, from the first byte to behind the last, relative to the buffer's address; padding behind the
    /// last element included.
    pub(crate) fn span(&self) -> Result<(i64, i64)> {
        Ok(self.datatype.element_span(self.count)?.unwrap_or((0, 0)))
    }

    /// Basic elements.
    fn elements(&self) -> Option<usize> {
        self.count.checked_mul(self.datatype.basic_count())
    }
}

/// Memory of the caller's that a layout lies over; the layout's address is that of the first byte.
pub(crate) fn check_local(
    core: &Core,
    operation: &'static str,
    bytes: usize,
    layout: &Layout<'_>,
) -> Result<()> {
    let (low, high) = layout.span().map_err(|e| rename(core, operation, &e))?;
    if low >= 0 && usize::try_from(high).is_ok_and(|high| high <= bytes) {
        return Ok(());
    }
    let message = format!(
        "{} of {} reach from byte {low} to {high} of a buffer of {bytes} bytes: give a longer buffer, or fewer",
        layout.count, layout.datatype
    );
    Err(core.error(Class::Count, operation, message))
}

pub(crate) fn rename(core: &Core, operation: &'static str, error: &Error) -> Error {
    core.error(error.class(), operation, error.message())
}

/// The two sides of a transfer must have the same types in the same order.
pub(crate) fn check_signatures(
    core: &Core,
    operation: &'static str,
    origin: &Layout<'_>,
    target: &Layout<'_>,
) -> Result<()> {
    if Datatype::matches(origin.count, origin.datatype, target.count, target.datatype) {
        return Ok(());
    }
    let message = format!(
        "{} of {} at the origin do not match {} of {} at the target: both sides have the same basic types in the same order",
        origin.count, origin.datatype, target.count, target.datatype
    );
    Err(core.error(Class::Type, operation, message))
}

/// The one basic type that an accumulate is of, if `op` is defined on it and both sides have as many of it.
fn check_accumulate(
    core: &Core,
    operation: &'static str,
    op: ReduceOp,
    local: &Layout<'_>,
    target: &Layout<'_>,
) -> Result<DataType> {
    let fail = |class, message| Err(core.error(class, operation, message));
    let nothing = |layout: &Layout<'_>| layout.count == 0 || layout.datatype.basic_count() == 0;
    let Some(ty) = target.datatype.element() else {
        if nothing(target) && nothing(local) {
            return Ok(DataType::Byte);
        }
        let message = format!("{} is not made of one predefined type, as accumulates need", target.datatype);
        return fail(Class::Type, message);
    };
    if !nothing(local) && local.datatype.element() != Some(ty) {
        let message = format!("{} at the origin, but {ty:?} at the target", local.datatype);
        return fail(Class::Type, message);
    }
    if local.elements() != target.elements() || local.elements().is_none() {
        let message = format!(
            "{} of {} at the origin do not make {} of {} at the target",
            local.count, local.datatype, target.count, target.datatype
        );
        return fail(Class::Count, message);
    }
    if !reduce_valid(op, ty) {
        return fail(Class::Op, format!("{op:?} is not defined on {ty:?} (MPI-4.1 §6.9.2)"));
    }
    Ok(ty)
}

/// The elements of a layout one behind the other, padding of each included.
fn gather<'a>(data: &'a [u8], layout: &Layout<'_>, ty: DataType) -> Result<Cow<'a, [u8]>> {
    let mut runs = layout.datatype.elements(layout.count)?.map(|run| range(&run, ty));
    let (Some(first), second) = (runs.next(), runs.next()) else { return Ok(Cow::Borrowed(&[])) };
    let Some(second) = second else { return Ok(Cow::Borrowed(data.get(first).unwrap_or_default())) };
    let mut stream = Vec::with_capacity(layout.elements().unwrap_or(0).saturating_mul(ty.size()));
    for run in [first, second].into_iter().chain(runs) {
        stream.extend_from_slice(data.get(run).unwrap_or_default());
    }
    Ok(Cow::Owned(stream))
}

/// Where all elements of a layout are, if they lie one behind the other and have no padding: then a buffer is a stream.
pub(crate) fn dense(layout: &Layout<'_>, ty: DataType) -> Result<Option<std::ops::Range<usize>>> {
    let mut runs = layout.datatype.elements(layout.count)?;
    Ok(match (runs.next(), runs.next()) {
        (Some(run), None) if is_packed(ty) => Some(range(&run, ty)),
        _ => None,
    })
}

/// Whether elements have no padding.
fn is_packed(ty: DataType) -> bool {
    matches!(ty.fields(), [(0, data)] if *data == ty.size())
}

/// Puts a stream of elements where a layout has them. Padding is left alone.
pub(crate) fn scatter(stream: &[u8], data: &mut [u8], layout: &Layout<'_>, ty: DataType) -> Result<()> {
    let mut at = 0;
    for run in layout.datatype.elements(layout.count)? {
        let range = range(&run, ty);
        let len = range.len();
        let (Some(to), Some(from)) = (data.get_mut(range), stream.get(at..at + len)) else { break };
        at += len;
        if is_packed(ty) {
            to.copy_from_slice(from);
            continue;
        }
        for (to, from) in to.chunks_exact_mut(ty.size()).zip(from.chunks_exact(ty.size())) {
            for (start, len) in ty.fields() {
                to[*start..start + len].copy_from_slice(&from[*start..start + len]);
            }
        }
    }
    Ok(())
}

/// The bytes of a run in a buffer that [`check_local`] has found long enough.
fn range(run: &ElementRun, ty: DataType) -> std::ops::Range<usize> {
    let start = usize::try_from(run.offset).unwrap_or(usize::MAX / 2);
    start..start + run.count * ty.size()
}

/// Operands one behind the other, as `from` has them in `data`, for an accumulate to `to`; and their type. An operation that changes
/// nothing has none (§12.3.4): zeros stand for them.
pub(crate) fn operands<'a>(
    core: &Core,
    name: &'static str,
    op: ReduceOp,
    (data, from): (&'a [u8], &Layout<'_>),
    to: &Layout<'_>,
) -> Result<(DataType, Cow<'a, [u8]>)> {
    if op != ReduceOp::NoOp {
        let ty = check_accumulate(core, name, op, from, to)?;
        check_local(core, name, data.len(), from)?;
        return Ok((ty, gather(data, from, ty).map_err(|e| rename(core, name, &e))?));
    }
    let ty = check_accumulate(core, name, op, to, to)?;
    let bytes = to.elements().and_then(|elements| elements.checked_mul(ty.size()));
    match bytes.filter(|bytes| isize::try_from(*bytes).is_ok()) {
        Some(bytes) => Ok((ty, Cow::Owned(vec![0; bytes]))),
        None => Err(core.error(Class::Count, name, "more elements than an address space holds")),
    }
}

/// Whether what an accumulate on `to` fetches fits `layout` in a buffer of `bytes` bytes.
pub(crate) fn check_result(
    core: &Core,
    name: &'static str,
    op: ReduceOp,
    (bytes, layout): (usize, &Layout<'_>),
    to: &Layout<'_>,
) -> Result<()> {
    check_accumulate(core, name, op, layout, to)?;
    check_local(core, name, bytes, layout)
}
