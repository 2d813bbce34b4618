//! Constructors of datatypes (MPI-4.1 §5.1.2, §5.1.7, §5.1.9).

use std::sync::atomic::Ordering;

use transom::Datatype as Layout;

use super::{Envelope, TYPES, TypeRef, add, get, part, predefined};
use crate::abi::{self, DATATYPE_NULL, Datatype, ERR_TYPE};
use crate::buffer::count as checked;
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer};

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

/// Blocks: each with length and displacement, and what the envelope has of them.
struct Blocks {
    all: Vec<(usize, i64)>,
    ints: Vec<i64>,
    displacements: Vec<i64>,
}

fn blocks(n: i64, array: Counts, displacements: Counts) -> Result<Blocks> {
    let count = checked(n)?;
    let (lengths, displacements) = (lengths(count, array)?, displacements.list(count)?);
    let all = lengths.into_iter().zip(displacements.iter().copied()).collect();
    Ok(Blocks { all, ints: [vec![n], array.list(count)?].concat(), displacements })
}

/// Constructors: of the arguments a layout, and the combiner with its integers, addresses and datatypes.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $made:block)*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: $ty,)* new: Pointer<Datatype>) -> Result<()> {
            let (layout, (combiner, ints, addresses, types)): (Layout, _) = $made;
            new.set(add(layout, envelope(combiner, ints, addresses, types))?)
        }
    )*};
}

constructors! {
    /// `MPI_Type_contiguous`.
    type_contiguous(n: i64, oldtype: Datatype) {
        let (layout, ty) = old(oldtype)?;
        let made = Layout::contiguous(checked(n)?, &layout)?;
        (made, (abi::COMBINER_CONTIGUOUS, vec![n], Vec::new(), vec![ty]))
    }

    /// `MPI_Type_vector`.
    type_vector(n: i64, length: i64, stride: i64, oldtype: Datatype) {
        let (layout, ty) = old(oldtype)?;
        let made = Layout::vector(checked(n)?, checked(length)?, stride, &layout)?;
        (made, (abi::COMBINER_VECTOR, vec![n, length, stride], Vec::new(), vec![ty]))
    }

    /// `MPI_Type_create_hvector`.
    type_create_hvector(n: i64, length: i64, stride: i64, oldtype: Datatype) {
        let (layout, ty) = old(oldtype)?;
        let made = Layout::hvector(checked(n)?, checked(length)?, stride, &layout)?;
        (made, (abi::COMBINER_HVECTOR, vec![n, length], vec![stride], vec![ty]))
    }

    /// `MPI_Type_indexed`.
    type_indexed(n: i64, array: Counts, displacements: Counts, oldtype: Datatype) {
        let ((layout, ty), blocks) = (old(oldtype)?, blocks(n, array, displacements)?);
        let made = Layout::indexed(&blocks.all, &layout)?;
        (made, (abi::COMBINER_INDEXED, [blocks.ints, blocks.displacements].concat(), Vec::new(), vec![ty]))
    }

    /// `MPI_Type_create_hindexed`.
    type_create_hindexed(n: i64, array: Counts, displacements: Counts, oldtype: Datatype) {
        let ((layout, ty), blocks) = (old(oldtype)?, blocks(n, array, displacements)?);
        let made = Layout::hindexed(&blocks.all, &layout)?;
        (made, (abi::COMBINER_HINDEXED, blocks.ints, blocks.displacements, vec![ty]))
    }

    /// `MPI_Type_create_indexed_block`.
    type_create_indexed_block(n: i64, length: i64, displacements: Counts, oldtype: Datatype) {
        let ((layout, ty), at) = (old(oldtype)?, displacements.list(checked(n)?)?);
        let made = Layout::indexed_block(checked(length)?, &at, &layout)?;
        (made, (abi::COMBINER_INDEXED_BLOCK, [vec![n, length], at].concat(), Vec::new(), vec![ty]))
    }

    /// `MPI_Type_create_hindexed_block`.
    type_create_hindexed_block(n: i64, length: i64, displacements: Counts, oldtype: Datatype) {
        let ((layout, ty), at) = (old(oldtype)?, displacements.list(checked(n)?)?);
        let made = Layout::hindexed_block(checked(length)?, &at, &layout)?;
        (made, (abi::COMBINER_HINDEXED_BLOCK, vec![n, length], at, vec![ty]))
    }

    /// `MPI_Type_create_struct`.
    type_create_struct(n: i64, array: Counts, displacements: Counts, types: Pointer<Datatype>) {
        let blocks = blocks(n, array, displacements)?;
        let olds: Vec<_> = types.list(blocks.all.len())?.into_iter().map(old).collect::<Result<_>>()?;
        let fields: Vec<_> =
            blocks.all.iter().zip(&olds).map(|(block, old)| (block.0, block.1, old.0.clone())).collect();
        let types = olds.into_iter().map(|(_, ty)| ty).collect();
        (Layout::structure(&fields)?, (abi::COMBINER_STRUCT, blocks.ints, blocks.displacements, types))
    }

    /// `MPI_Type_create_resized`.
    type_create_resized(oldtype: Datatype, lower_bound: i64, extent: i64) {
        let (layout, ty) = old(oldtype)?;
        let made = layout.resized(lower_bound, extent)?;
        (made, (abi::COMBINER_RESIZED, Vec::new(), vec![lower_bound, extent], vec![ty]))
    }
}

/// `MPI_Type_dup`.
pub fn type_dup(oldtype: Datatype, new: Pointer<Datatype>) -> Result<()> {
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
pub fn type_commit(ty: Pointer<Datatype>) -> Result<()> {
    get(ty.get()?)?.committed.store(true, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Type_free`: what is under way with it, and types made of it, keep what they need (§5.1.9).
pub fn type_free(ty: Pointer<Datatype>) -> Result<()> {
    let handle = ty.get()?;
    if predefined::object(handle).is_some() {
        return fail(ERR_TYPE, "a predefined datatype cannot be freed");
    }
    get(handle)?.attributes.delete_all(handle.0)?;
    TYPES.remove(handle.0)?;
    ty.set(DATATYPE_NULL)
}
