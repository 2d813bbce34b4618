//! Constructors of datatypes (MPI-4.1 §5.1.2, §5.1.7, §5.1.9).

use std::sync::atomic::Ordering;

use transom::Datatype as Layout;

use super::{Envelope, TYPES, TypeRef, add, get, part, predefined};
use crate::abi::{self, DATATYPE_NULL, Datatype, ERR_TYPE};
use crate::buffer::count as checked;
use crate::failure::{Result, fail};
use crate::place::{Counts, Place};

/// A datatype to make another of: its layout, and what it is called in the envelope.
fn old(handle: Datatype) -> Result<(Layout, TypeRef)> {
    Ok((get(handle)?.datatype.clone(), part(handle)?))
}

fn envelope(combiner: std::ffi::c_int, ints: Vec<i64>, addresses: Vec<i64>, types: Vec<TypeRef>) -> Envelope {
    Envelope { combiner, ints, addresses, types, ..Envelope::default() }.in_counts_if_large()
}

fn lengths(n: usize, lengths: Counts) -> Result<Vec<usize>> {
    lengths.list(n)?.into_iter().map(checked).collect()
}

/// `MPI_Type_contiguous`.
pub fn type_contiguous(n: i64, oldtype: Datatype, new: Place<Datatype>) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let made = Layout::contiguous(checked(n)?, &layout)?;
    new.set(add(made, envelope(abi::COMBINER_CONTIGUOUS, vec![n], Vec::new(), vec![ty]))?)
}

/// `MPI_Type_vector`.
pub fn type_vector(n: i64, length: i64, stride: i64, oldtype: Datatype, new: Place<Datatype>) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let made = Layout::vector(checked(n)?, checked(length)?, stride, &layout)?;
    let ints = vec![n, length, stride];
    new.set(add(made, envelope(abi::COMBINER_VECTOR, ints, Vec::new(), vec![ty]))?)
}

/// `MPI_Type_create_hvector`.
pub fn type_create_hvector(
    n: i64,
    length: i64,
    stride: i64,
    oldtype: Datatype,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let made = Layout::hvector(checked(n)?, checked(length)?, stride, &layout)?;
    new.set(add(made, envelope(abi::COMBINER_HVECTOR, vec![n, length], vec![stride], vec![ty]))?)
}

/// `MPI_Type_indexed`.
pub fn type_indexed(
    n: i64,
    array: Counts,
    displacements: Counts,
    oldtype: Datatype,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let count = checked(n)?;
    let (lengths, at) = (lengths(count, array)?, displacements.list(count)?);
    let blocks: Vec<_> = lengths.into_iter().zip(at.iter().copied()).collect();
    let made = Layout::indexed(&blocks, &layout)?;
    let ints = [vec![n], array.list(count)?, at].concat();
    new.set(add(made, envelope(abi::COMBINER_INDEXED, ints, Vec::new(), vec![ty]))?)
}

/// `MPI_Type_create_hindexed`.
pub fn type_create_hindexed(
    n: i64,
    array: Counts,
    displacements: Counts,
    oldtype: Datatype,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let count = checked(n)?;
    let (lengths, at) = (lengths(count, array)?, displacements.list(count)?);
    let blocks: Vec<_> = lengths.into_iter().zip(at.iter().copied()).collect();
    let made = Layout::hindexed(&blocks, &layout)?;
    let ints = [vec![n], array.list(count)?].concat();
    new.set(add(made, envelope(abi::COMBINER_HINDEXED, ints, at, vec![ty]))?)
}

/// `MPI_Type_create_indexed_block`.
pub fn type_create_indexed_block(
    n: i64,
    length: i64,
    displacements: Counts,
    oldtype: Datatype,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let at = displacements.list(checked(n)?)?;
    let made = Layout::indexed_block(checked(length)?, &at, &layout)?;
    let ints = [vec![n, length], at].concat();
    new.set(add(made, envelope(abi::COMBINER_INDEXED_BLOCK, ints, Vec::new(), vec![ty]))?)
}

/// `MPI_Type_create_hindexed_block`.
pub fn type_create_hindexed_block(
    n: i64,
    length: i64,
    displacements: Counts,
    oldtype: Datatype,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let at = displacements.list(checked(n)?)?;
    let made = Layout::hindexed_block(checked(length)?, &at, &layout)?;
    new.set(add(made, envelope(abi::COMBINER_HINDEXED_BLOCK, vec![n, length], at, vec![ty]))?)
}

/// `MPI_Type_create_struct`.
pub fn type_create_struct(
    n: i64,
    array: Counts,
    displacements: Counts,
    types: Place<Datatype>,
    new: Place<Datatype>,
) -> Result<()> {
    let count = checked(n)?;
    let (lengths, at) = (lengths(count, array)?, displacements.list(count)?);
    let olds: Vec<_> = types.list(count)?.into_iter().map(old).collect::<Result<_>>()?;
    let fields: Vec<_> = (0..count).map(|field| (lengths[field], at[field], olds[field].0.clone())).collect();
    let made = Layout::structure(&fields)?;
    let ints = [vec![n], array.list(count)?].concat();
    let types = olds.into_iter().map(|(_, ty)| ty).collect();
    new.set(add(made, envelope(abi::COMBINER_STRUCT, ints, at, types))?)
}

/// `MPI_Type_create_resized`.
pub fn type_create_resized(
    oldtype: Datatype,
    lower_bound: i64,
    extent: i64,
    new: Place<Datatype>,
) -> Result<()> {
    let (layout, ty) = old(oldtype)?;
    let made = layout.resized(lower_bound, extent)?;
    let addresses = vec![lower_bound, extent];
    new.set(add(made, envelope(abi::COMBINER_RESIZED, Vec::new(), addresses, vec![ty]))?)
}

/// `MPI_Type_dup`.
pub fn type_dup(oldtype: Datatype, new: Place<Datatype>) -> Result<()> {
    let object = get(oldtype)?;
    new.set(DATATYPE_NULL)?;
    let made = object.datatype.dup()?;
    let mut copy = super::TypeObject::new(
        made,
        Some(envelope(abi::COMBINER_DUP, Vec::new(), Vec::new(), vec![part(oldtype)?])),
        "",
    );
    copy.attributes = object.attributes.copied(oldtype.0)?;
    copy.committed.store(object.committed.load(Ordering::Relaxed), Ordering::Relaxed);
    new.set(TYPES.insert(copy.into()).map(Datatype)?)
}

/// `MPI_Type_commit`.
pub fn type_commit(ty: Place<Datatype>) -> Result<()> {
    get(ty.get()?)?.committed.store(true, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Type_free`: what is under way with it, and types made of it, keep what they need (§5.1.9).
pub fn type_free(ty: Place<Datatype>) -> Result<()> {
    let handle = ty.get()?;
    if predefined::object(handle).is_some() {
        return fail(ERR_TYPE, "a predefined datatype cannot be freed");
    }
    get(handle)?.attributes.delete_all(handle.0)?;
    TYPES.remove(handle.0)?;
    ty.set(DATATYPE_NULL)
}
