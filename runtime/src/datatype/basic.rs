//! What a layout asks about a predefined type: the only place that knows.
//!
//! Layouts rely on it that the fields have `packed_size` bytes together, and that they are one field from 0
//! to `size` where that is the same.

use transom_transport::DataType;

use super::scalar::Scalar;

/// A predefined type, of which C has several for the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// One that external32 has as its element says.
    Of(DataType),
    /// C's `long`.
    Long,
    /// C's `unsigned long`.
    UnsignedLong,
}

impl Leaf {
    /// What it is in memory.
    pub(super) const fn element(self) -> DataType {
        match self {
            Self::Of(ty) => ty,
            Self::Long => DataType::I64,
            Self::UnsignedLong => DataType::U64,
        }
    }

    /// The scalars that external32 has one after the other, in order, each with its offset in memory. Together they are the
    /// fields.
    pub(super) const fn scalars(self) -> &'static [(usize, Scalar)] {
        use Scalar::*;
        match self {
            Self::Long => &[(0, Long)],
            Self::UnsignedLong => &[(0, UnsignedLong)],
            Self::Of(ty) => match ty {
                DataType::WideChar => &[(0, WideChar)],
                DataType::F80 => &[(0, LongDouble)],
                DataType::C80 => &[(0, LongDouble), (16, LongDouble)],
                DataType::F80I32 => &[(0, LongDouble), (16, Same(4))],
                DataType::C32 | DataType::F32I32 | DataType::I32I32 => &[(0, Same(4)), (4, Same(4))],
                DataType::C64 => &[(0, Same(8)), (8, Same(8))],
                DataType::F64I32 => &[(0, Same(8)), (8, Same(4))],
                DataType::I64I32 => &[(0, Long), (8, Same(4))],
                DataType::I16I32 => &[(0, Same(2)), (4, Same(4))],
                DataType::I8 | DataType::U8 | DataType::Bool | DataType::Byte | DataType::Char => {
                    &[(0, Same(1))]
                }
                DataType::I16 | DataType::U16 => &[(0, Same(2))],
                DataType::I32 | DataType::U32 | DataType::F32 => &[(0, Same(4))],
                DataType::I64 | DataType::U64 | DataType::F64 => &[(0, Same(8))],
            },
        }
    }

    /// Bytes in external32.
    pub(super) fn external_size(self) -> usize {
        self.scalars().iter().map(|(_, scalar)| scalar.external_size()).sum()
    }

    /// The name that descriptions print: `f64`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Of(ty) => format!("{ty:?}").to_lowercase(),
            Self::Long => "long".into(),
            Self::UnsignedLong => "unsigned long".into(),
        }
    }
}

/// Bytes that an element occupies, padding included: its extent.
pub(super) const fn size(ty: DataType) -> usize {
    ty.size()
}

/// Bytes of data in an element (`MPI_Type_size`): the sum of its fields.
pub(super) const fn packed_size(ty: DataType) -> usize {
    ty.packed_size()
}

/// Alignment of an element in memory, as the C compiler has it.
pub(super) const fn alignment(ty: DataType) -> usize {
    ty.alignment()
}

/// Offset and length of the bytes that are data, in order; one field of `size` bytes without padding.
pub(super) fn fields(ty: DataType) -> impl Iterator<Item = (usize, usize)> {
    ty.fields().iter().copied()
}

/// What `MPI_Get_elements` counts in an element.
pub(super) const fn parts(ty: DataType) -> usize {
    if ty.is_pair() { 2 } else { 1 }
}

/// Bytes of data of a pair's first part.
pub(super) const fn first_part(ty: DataType) -> Option<usize> {
    if ty.is_pair() { Some(packed_size(ty) - size_of::<i32>()) } else { None }
}

/// Whether bytes of an element are padding.
pub(super) const fn is_padded(ty: DataType) -> bool {
    packed_size(ty) != size(ty)
}
