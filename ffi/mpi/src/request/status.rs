//! Statuses (MPI-4.1 §3.2.5, §5.1.11, MPI-5.0 §3.2.6).

use std::ffi::c_int;

use crate::abi::{Count, Datatype, Status, UNDEFINED};
use crate::buffer::count as checked;
use crate::failure::Result;
use crate::pointer::{Counts, Pointer, flag};
use crate::types;

/// A number of instances or elements, or `MPI_UNDEFINED`.
fn give(n: Option<usize>, place: Counts) -> Result<()> {
    place.set(n.and_then(|n| i64::try_from(n).ok()).unwrap_or(UNDEFINED.into()))
}

/// `MPI_Get_count`.
pub fn get_count(status: Pointer<Status>, ty: Datatype, n: Counts) -> Result<()> {
    give(types::get(ty)?.datatype.get_count(status.get()?.bytes() as usize), n)
}

/// `MPI_Get_elements`.
pub fn get_elements(status: Pointer<Status>, ty: Datatype, n: Counts) -> Result<()> {
    give(types::get(ty)?.datatype.get_elements(status.get()?.bytes() as usize), n)
}

/// `MPI_Get_elements_x`.
pub fn get_elements_x(status: Pointer<Status>, ty: Datatype, n: Pointer<Count>) -> Result<()> {
    get_elements(status, ty, Counts::Long(n))
}

/// Changes a status.
fn change(status: Pointer<Status>, change: impl FnOnce(&mut Status)) -> Result<()> {
    let mut changed = status.get()?;
    change(&mut changed);
    status.set(changed)
}

/// `MPI_Status_set_elements`: basic elements; as many whole instances as they make, and the rest.
pub fn status_set_elements(status: Pointer<Status>, ty: Datatype, n: i64) -> Result<()> {
    let (object, n) = (types::get(ty)?, checked(n)?);
    let each = object.datatype.get_elements(object.datatype.size()).unwrap_or_default().max(1);
    let mut rest = n % each;
    let mut bytes = (n / each).saturating_mul(object.datatype.size());
    for run in object.datatype.elements(1)? {
        let (parts, size) = (if run.ty.is_pair() { 2 } else { 1 }, run.ty.packed_size());
        let some = rest.min(run.count.saturating_mul(parts));
        bytes += some / parts * size;
        if some % parts != 0 {
            // The value of a pair, without its index.
            bytes += size - size_of::<c_int>();
        }
        rest -= some;
    }
    change(status, |status| status.set_bytes(bytes as u64))
}

/// `MPI_Status_set_elements_x`.
pub fn status_set_elements_x(status: Pointer<Status>, ty: Datatype, n: Count) -> Result<()> {
    status_set_elements(status, ty, n)
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled(status: Pointer<Status>, cancelled: Pointer<c_int>) -> Result<()> {
    cancelled.set(flag(status.get()?.is_cancelled()))
}

/// `MPI_Status_set_cancelled`.
pub fn status_set_cancelled(status: Pointer<Status>, cancelled: c_int) -> Result<()> {
    change(status, |status| status.set_cancelled(cancelled != 0))
}

/// `MPI_Status_get_source`.
pub fn status_get_source(status: Pointer<Status>, source: Pointer<c_int>) -> Result<()> {
    source.set(status.get()?.source)
}

/// `MPI_Status_set_source`.
pub fn status_set_source(status: Pointer<Status>, source: c_int) -> Result<()> {
    change(status, |status| status.source = source)
}

/// `MPI_Status_get_tag`.
pub fn status_get_tag(status: Pointer<Status>, tag: Pointer<c_int>) -> Result<()> {
    tag.set(status.get()?.tag)
}

/// `MPI_Status_set_tag`.
pub fn status_set_tag(status: Pointer<Status>, tag: c_int) -> Result<()> {
    change(status, |status| status.tag = tag)
}

/// `MPI_Status_get_error`.
pub fn status_get_error(status: Pointer<Status>, error: Pointer<c_int>) -> Result<()> {
    error.set(status.get()?.error)
}

/// `MPI_Status_set_error`.
pub fn status_set_error(status: Pointer<Status>, error: c_int) -> Result<()> {
    change(status, |status| status.error = error)
}
