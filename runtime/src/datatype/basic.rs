//! What a layout asks about a predefined type: the only place that knows.
//!
//! Layouts rely on it that the fields have `packed_size` bytes together, and that they are one field from 0
//! to `size` where that is the same.

use transom_transport::DataType;

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

/// Offset and length of the scalars whose bytes external32 reverses, in order; `None` for a type that
/// external32 has in another size. Together they are the fields.
pub(super) fn scalars(ty: DataType) -> Option<impl Iterator<Item = (usize, usize)>> {
    let scalars: &[(usize, usize)] = match ty {
        DataType::F80 | DataType::C80 | DataType::F80I32 | DataType::WideChar => return None,
        DataType::C32 | DataType::F32I32 | DataType::I32I32 => &[(0, 4), (4, 4)],
        DataType::C64 => &[(0, 8), (8, 8)],
        DataType::F64I32 | DataType::I64I32 => &[(0, 8), (8, 4)],
        _ => ty.fields(),
    };
    Some(scalars.iter().copied())
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

/// The name that descriptions print: `f64`.
pub(super) fn name(ty: DataType) -> String {
    format!("{ty:?}").to_lowercase()
}
