//! Packing (MPI-4.1 §5.2, §5.3).

use std::ffi::c_void;

use super::get;
use crate::abi::{Comm, Datatype, ERR_ARG};
use crate::buffer::{Triple, TypedBuffer, bytes, bytes_mut, count as checked};
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Text};
use crate::world;

/// A position in packed bytes.
fn at(position: Counts) -> Result<usize> {
    let position = position.at(0)?;
    usize::try_from(position).or_else(|_| fail(ERR_ARG, format!("position {position}")))
}

/// `MPI_Pack_size`.
pub fn pack_size(n: i64, ty: Datatype, comm: Comm, size: Counts) -> Result<()> {
    world::comm(comm)?;
    size.set(get(ty)?.datatype.pack_size(checked(n)?)? as i64)
}

/// `MPI_Pack`.
pub fn pack(from: Triple, to: *mut c_void, capacity: i64, position: Counts, comm: Comm) -> Result<()> {
    world::comm(comm)?;
    let object = get(from.ty)?;
    let typed = from.typed(&object)?;
    let source = bytes(typed.address, typed.len)?;
    let mut at = at(position)?;
    typed.datatype.pack_at(typed.count, source, 0, bytes_mut(to, checked(capacity)?)?, &mut at)?;
    position.set(at as i64)
}

/// Unpacks in one of the representations.
fn unpack_by(
    from: (*const c_void, i64),
    position: Counts,
    to: Triple,
    unpack: impl FnOnce(&TypedBuffer<'_>, &[u8], &mut usize, &mut [u8]) -> transom::Result<()>,
) -> Result<()> {
    let object = get(to.ty)?;
    let typed = to.typed(&object)?;
    let target = bytes_mut(typed.address, typed.len)?;
    let mut at = at(position)?;
    unpack(&typed, bytes(from.0, checked(from.1)?)?, &mut at, target)?;
    position.set(at as i64)
}

/// `MPI_Unpack`.
pub fn unpack(from: *const c_void, size: i64, position: Counts, to: Triple, comm: Comm) -> Result<()> {
    world::comm(comm)?;
    unpack_by((from, size), position, to, |typed, packed, at, target| {
        typed.datatype.unpack(typed.count, packed, at, target, 0)
    })
}

fn check_representation(name: Text) -> Result<()> {
    match &name.get()?[..] {
        "external32" => Ok(()),
        other => fail(ERR_ARG, format!("{other} is no representation: use external32")),
    }
}

/// `MPI_Pack_external_size`.
pub fn pack_external_size(name: Text, n: i64, ty: Datatype, size: Counts) -> Result<()> {
    check_representation(name)?;
    size.set(get(ty)?.datatype.pack_external_size(checked(n)?)? as i64)
}

/// `MPI_Pack_external`.
pub fn pack_external(
    name: Text,
    from: Triple,
    to: *mut c_void,
    capacity: i64,
    position: Counts,
) -> Result<()> {
    check_representation(name)?;
    let object = get(from.ty)?;
    let typed = from.typed(&object)?;
    let mut packed = Vec::new();
    typed.datatype.pack_external(typed.count, bytes(typed.address, typed.len)?, 0, &mut packed)?;
    let at = at(position)?;
    let end = at + packed.len();
    match bytes_mut(to, checked(capacity)?)?.get_mut(at..end) {
        Some(place) => place.copy_from_slice(&packed),
        None => return fail(ERR_ARG, format!("{} packed bytes at {at} of {capacity}", packed.len())),
    }
    position.set(end as i64)
}

/// `MPI_Unpack_external`.
pub fn unpack_external(
    name: Text,
    from: *const c_void,
    size: i64,
    position: Counts,
    to: Triple,
) -> Result<()> {
    check_representation(name)?;
    unpack_by((from, size), position, to, |typed, packed, at, target| {
        typed.datatype.unpack_external(typed.count, packed, at, target, 0)
    })
}
