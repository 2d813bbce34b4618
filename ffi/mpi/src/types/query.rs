//! What datatypes say of themselves (MPI-4.1 §5.1.5 to §5.1.11, §7.8), and of statuses.

use std::ffi::c_int;

use super::get;
use crate::abi::{
    self, Count, DATATYPE_NULL, Datatype, ERR_ARG, TYPECLASS_COMPLEX, TYPECLASS_INTEGER, TYPECLASS_REAL,
};
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer, Text};

/// `MPI_Type_size`.
pub fn type_size(ty: Datatype, size: Counts) -> Result<()> {
    size.set(get(ty)?.datatype.size() as i64)
}

/// `MPI_Type_size_x`.
pub fn type_size_x(ty: Datatype, size: Pointer<Count>) -> Result<()> {
    type_size(ty, Counts::Long(size))
}

macro_rules! extents {
    ($($(#[$doc:meta])* $name:ident, $large:ident: $lower_bound:ident, $extent:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(ty: Datatype, lower_bound: Counts, extent: Counts) -> Result<()> {
            let object = get(ty)?;
            lower_bound.set(object.datatype.$lower_bound())?;
            extent.set(object.datatype.$extent())
        }

        /// The same in counts.
        pub fn $large(ty: Datatype, lower_bound: Pointer<Count>, extent: Pointer<Count>) -> Result<()> {
            $name(ty, Counts::Long(lower_bound), Counts::Long(extent))
        }
    )*};
}

extents! {
    /// `MPI_Type_get_extent`.
    type_get_extent, type_get_extent_x: lower_bound, extent;
    /// `MPI_Type_get_true_extent`.
    type_get_true_extent, type_get_true_extent_x: true_lower_bound, true_extent;
}

/// `MPI_Type_set_name`.
pub fn type_set_name(ty: Datatype, name: Text) -> Result<()> {
    *get(ty)?.name.write() = name.get()?;
    Ok(())
}

/// `MPI_Type_get_name`.
pub fn type_get_name(ty: Datatype, name: Text, len: Pointer<c_int>) -> Result<()> {
    let text = if ty == DATATYPE_NULL { "MPI_DATATYPE_NULL".into() } else { get(ty)?.name.read().clone() };
    name.set_with_length(&text, abi::MAX_OBJECT_NAME, len)
}

/// `MPI_Type_match_size` (§19.1.9).
pub fn type_match_size(class: c_int, size: c_int, ty: Pointer<Datatype>) -> Result<()> {
    let found = match (class, size) {
        (TYPECLASS_INTEGER, 1) => abi::INTEGER1,
        (TYPECLASS_INTEGER, 2) => abi::INTEGER2,
        (TYPECLASS_INTEGER, 4) => abi::INTEGER4,
        (TYPECLASS_INTEGER, 8) => abi::INTEGER8,
        (TYPECLASS_INTEGER, 16) => abi::INTEGER16,
        (TYPECLASS_REAL, 16) => abi::REAL16,
        (TYPECLASS_COMPLEX, 32) => abi::COMPLEX32,
        (TYPECLASS_REAL, 2) => abi::REAL2,
        (TYPECLASS_REAL, 4) => abi::REAL4,
        (TYPECLASS_REAL, 8) => abi::REAL8,
        (TYPECLASS_COMPLEX, 4) => abi::COMPLEX4,
        (TYPECLASS_COMPLEX, 8) => abi::COMPLEX8,
        (TYPECLASS_COMPLEX, 16) => abi::COMPLEX16,
        _ => return fail(ERR_ARG, format!("no type of class {class} has {size} bytes")),
    };
    ty.set(found)
}

/// `MPI_Type_get_value_index` (MPI-4.1 §6.9.4): predefined pairs.
pub fn type_get_value_index(value: Datatype, index: Datatype, pair: Pointer<Datatype>) -> Result<()> {
    for ty in [value, index] {
        get(ty)?;
    }
    let found = match (value, index) {
        (abi::FLOAT, abi::INT) => abi::FLOAT_INT,
        (abi::DOUBLE, abi::INT) => abi::DOUBLE_INT,
        (abi::LONG, abi::INT) => abi::LONG_INT,
        (abi::INT, abi::INT) => abi::_2INT,
        (abi::SHORT, abi::INT) => abi::SHORT_INT,
        (abi::LONG_DOUBLE, abi::INT) => abi::LONG_DOUBLE_INT,
        (abi::REAL, abi::REAL) => abi::_2REAL,
        (abi::DOUBLE_PRECISION, abi::DOUBLE_PRECISION) => abi::_2DOUBLE_PRECISION,
        (abi::INTEGER, abi::INTEGER) => abi::_2INTEGER,
        _ => DATATYPE_NULL,
    };
    pair.set(found)
}
