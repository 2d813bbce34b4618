//! The predefined datatypes: which element of the runtime's each one is.

use std::sync::{Arc, OnceLock};

use transom::DataType;

use super::TypeObject;
use crate::abi::{self, DATATYPES, Datatype, PLACES};

/// The element of each predefined datatype.
static BASICS: [Option<DataType>; PLACES] = {
    let mut all = [None; PLACES];
    let mut place = 0;
    while place < PLACES {
        all[place] = element(abi::datatype_at(place));
        place += 1;
    }
    all
};

/// Bytes of each predefined datatype that has no padding; 0 of others.
static SIZES: [u8; PLACES] = {
    let mut all = [0; PLACES];
    let mut place = 0;
    while place < PLACES {
        if let Some(ty) = element(abi::datatype_at(place))
            && ty.size() == ty.packed_size()
        {
            all[place] = ty.size() as u8;
        }
        place += 1;
    }
    all
};

/// The element that a predefined datatype is.
#[inline]
pub fn basic(handle: Datatype) -> Option<DataType> {
    BASICS[abi::place(handle)?]
}

/// Whether each predefined datatype is an integer of 8 bytes.
static WORDS: [bool; PLACES] = {
    let mut all = [false; PLACES];
    let mut place = 0;
    while place < PLACES {
        all[place] = matches!(BASICS[place], Some(DataType::I64 | DataType::U64));
        place += 1;
    }
    all
};

/// Whether a predefined datatype is an integer of 8 bytes, with a sign or without.
#[inline(always)]
pub fn is_word(handle: Datatype) -> bool {
    abi::short_place(handle).is_some_and(|place| WORDS[place])
}

/// [`plain_size`], or 0 of a number among which the predefined datatypes are.
#[inline(always)]
pub fn size_or_zero(handle: Datatype) -> Option<u8> {
    abi::short_size(handle, &SIZES)
}

/// Bytes of a predefined datatype without padding, which is most of them.
#[inline]
pub fn plain_size(handle: Datatype) -> Option<usize> {
    match SIZES[abi::place(handle)?] {
        0 => None,
        size => Some(usize::from(size)),
    }
}

/// The element that a predefined datatype is, as this platform's C and Fortran compilers have it (MPI-4.1 §3.2.2).
const fn element(handle: Datatype) -> Option<DataType> {
    use DataType::*;
    Some(match handle {
        abi::CHARACTER => Char,
        // Reductions of MPI_CHAR are not in §6.9.2's list, but programs make them, and libraries let them.
        abi::CHAR | abi::SIGNED_CHAR | abi::INT8_T | abi::INTEGER1 | abi::LOGICAL1 => I8,
        abi::UNSIGNED_CHAR | abi::UINT8_T => U8,
        abi::BYTE | abi::PACKED => Byte,
        abi::SHORT | abi::INT16_T | abi::INTEGER2 | abi::LOGICAL2 => I16,
        abi::UNSIGNED_SHORT | abi::UINT16_T => U16,
        abi::INT | abi::INT32_T | abi::INTEGER | abi::INTEGER4 | abi::LOGICAL | abi::LOGICAL4 => I32,
        abi::UNSIGNED | abi::UINT32_T => U32,
        abi::LONG | abi::LONG_LONG | abi::INT64_T | abi::INTEGER8 | abi::LOGICAL8 => I64,
        abi::AINT | abi::COUNT | abi::OFFSET => I64,
        abi::UNSIGNED_LONG | abi::UNSIGNED_LONG_LONG | abi::UINT64_T => U64,
        abi::FLOAT | abi::REAL | abi::REAL4 => F32,
        abi::DOUBLE | abi::DOUBLE_PRECISION | abi::REAL8 => F64,
        abi::LONG_DOUBLE => F80,
        abi::C_BOOL | abi::CXX_BOOL => Bool,
        abi::WCHAR => WideChar,
        abi::C_COMPLEX | abi::CXX_FLOAT_COMPLEX | abi::COMPLEX | abi::COMPLEX8 => C32,
        abi::C_DOUBLE_COMPLEX | abi::CXX_DOUBLE_COMPLEX | abi::DOUBLE_COMPLEX | abi::COMPLEX16 => C64,
        abi::C_LONG_DOUBLE_COMPLEX | abi::CXX_LONG_DOUBLE_COMPLEX => C80,
        abi::FLOAT_INT => F32I32,
        abi::DOUBLE_INT => F64I32,
        abi::LONG_INT => I64I32,
        abi::_2INT | abi::_2INTEGER => I32I32,
        abi::SHORT_INT => I16I32,
        abi::LONG_DOUBLE_INT => F80I32,
        _ => return None,
    })
}

/// The layout that a predefined datatype is. Only packing in external32 tells C's `long` from other integers of 8 bytes.
fn layout(handle: Datatype) -> Option<transom::Datatype> {
    match handle {
        abi::LONG => Some(transom::Datatype::long()),
        abi::UNSIGNED_LONG => Some(transom::Datatype::unsigned_long()),
        _ => basic(handle).map(transom::Datatype::basic).or_else(|| opaque(handle)),
    }
}

/// Those that no element is: pairs for Fortran's MAXLOC, and widths that this platform's C has no type for. They can be
/// moved, and not be computed with.
fn opaque(handle: Datatype) -> Option<transom::Datatype> {
    let of = |count, ty| transom::Datatype::contiguous(count, &transom::Datatype::basic(ty)).ok();
    match handle {
        abi::_2REAL => of(2, DataType::F32),
        abi::_2DOUBLE_PRECISION => of(2, DataType::F64),
        abi::REAL2 => of(2, DataType::Byte),
        abi::COMPLEX4 => of(4, DataType::Byte),
        abi::LOGICAL16 | abi::INTEGER16 | abi::REAL16 => of(16, DataType::Byte),
        abi::COMPLEX32 => of(32, DataType::Byte),
        #[cfg(mpich)]
        abi::LB | abi::UB => of(0, DataType::Byte),
        #[cfg(mpich)]
        // With the alignment in structures that such numbers have.
        abi::MPIX_C_FLOAT16 | abi::MPIX_BFLOAT16 => of(1, DataType::I16),
        _ => None,
    }
}

/// The object of a predefined datatype.
pub fn object(handle: Datatype) -> Option<&'static Arc<TypeObject>> {
    static OBJECTS: [OnceLock<Option<Arc<TypeObject>>>; PLACES] = [const { OnceLock::new() }; PLACES];
    let place = abi::place(handle)?;
    let make = || {
        let datatype = layout(handle)?;
        let name = DATATYPES.iter().find(|(known, _)| *known == handle).map_or("", |(_, name)| *name);
        Some(Arc::new(TypeObject::new(datatype, None, name)))
    };
    OBJECTS.get(place)?.get_or_init(make).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predefined_datatype_but_the_null_one_is_there() {
        for (handle, name) in DATATYPES {
            assert_eq!(object(*handle).is_some(), *name != "MPI_DATATYPE_NULL", "{name}");
        }
        for (handle, name) in
            DATATYPES.iter().filter(|(handle, _)| size_or_zero(*handle).is_some_and(|size| size > 0))
        {
            let datatype = &object(*handle).unwrap().datatype;
            assert_eq!(size_or_zero(*handle).map(usize::from), Some(datatype.size()), "{name}");
            assert_eq!(datatype.extent(), datatype.size() as i64, "{name}");
        }
        assert_eq!(plain_size(abi::LONG), Some(8));
        assert_eq!((plain_size(abi::DOUBLE_INT), plain_size(abi::DATATYPE_NULL)), (None, None));
    }
}
