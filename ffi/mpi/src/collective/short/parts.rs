//! Parts with lengths and places of their own.

use std::ffi::{c_int, c_void};

use transom::raw;

use super::{Few, now, of_one_group};
use crate::abi::{Comm, Datatype};
use crate::buffer::{Triple, bytes, bytes_mut};
use crate::collective;
use crate::pointer::Counts;

/// Where a buffer's parts are, and of how many bytes each is: of so many instances of a predefined datatype, at displacements.
fn listed(
    all: Triple,
    (counts, at_each): (Counts, Counts),
    size: usize,
) -> Option<Few<(*mut c_void, usize)>> {
    let unit = Triple { n: 1, ..all }.plain_len()?;
    let part = |rank| {
        let len = usize::try_from(counts.at(rank).ok()?).ok()?.checked_mul(unit)?;
        let at = isize::try_from(at_each.at(rank).ok()?).ok()?.checked_mul(unit.cast_signed())?;
        Some((all.address.wrapping_byte_offset(at), len))
    };
    let parts = (0..size).map(part).collect::<Option<Few<_>>>()?;
    raw::short::parts_fit(parts.iter().map(|(_, len)| *len)).then_some(parts)
}

/// The first address, and the one behind the last, of parts that are one behind the other; none if they are not.
fn span(parts: &[(*mut c_void, usize)]) -> Option<(usize, usize)> {
    let end_of = |at: &*mut c_void, len: &usize| at.addr().saturating_add(*len);
    let mut filled = parts.iter().filter(|(_, len)| *len > 0).map(|(at, len)| (at.addr(), end_of(at, len)));
    let first = filled.next().unwrap_or((0, 0));
    let last = filled.try_fold(first, |before, part| (before.1 <= part.0).then_some(part))?;
    Some((first.0, last.1))
}

/// The bytes of parts, which have none in common.
fn places<'a>(parts: &[(*mut c_void, usize)]) -> Option<Few<&'a mut [u8]>> {
    parts.iter().map(|(at, len)| bytes_mut(*at, *len).ok()).collect()
}

/// `MPI_Allgatherv`.
pub fn allgatherv(
    from: Triple,
    to: *mut c_void,
    counts: Counts,
    at_each: Counts,
    to_ty: Datatype,
    comm: Comm,
) -> Option<c_int> {
    let object = of_one_group(comm)?;
    let parts = listed(Triple::new(to, 0, to_ty), (counts, at_each), object.comm.size())?;
    let (start, end) = span(&parts)?;
    let mut places = places(&parts)?;
    if !collective::in_place(from.address) {
        let (own, at) = (&mut places[object.comm.rank()], from.address.addr());
        let len = from.plain_len().filter(|len| *len == own.len())?;
        if at < end && start < at.saturating_add(len) {
            return None;
        }
        own.copy_from_slice(bytes(from.address, len).ok()?);
    }
    now("MPI_Allgatherv", comm, || raw::short::allgather_parts(&object.comm, &mut places))
}

/// `MPI_Alltoallv`.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn alltoallv(
    from: *const c_void,
    counts: Counts,
    at_each: Counts,
    ty: Datatype,
    to: *mut c_void,
    to_counts: Counts,
    to_each: Counts,
    to_ty: Datatype,
    comm: Comm,
) -> Option<c_int> {
    let object = of_one_group(comm).filter(|_| !collective::in_place(from))?;
    let (rank, size) = (object.comm.rank(), object.comm.size());
    let given = listed(Triple::new(from, 0, ty), (counts, at_each), size)?;
    let taken = listed(Triple::new(to, 0, to_ty), (to_counts, to_each), size)?;
    let (start, end) = span(&taken)?;
    let is_apart =
        |(at, len): &(*mut c_void, usize)| at.addr().saturating_add(*len) <= start || end <= at.addr();
    if given[rank].1 != taken[rank].1 || !given.iter().all(is_apart) {
        return None;
    }
    let given = given.iter().map(|(at, len)| bytes(*at, *len).ok()).collect::<Option<Few<_>>>()?;
    let mut taken = places(&taken)?;
    now("MPI_Alltoallv", comm, || raw::alltoall_into(&object.comm, &given, &mut taken))
}
