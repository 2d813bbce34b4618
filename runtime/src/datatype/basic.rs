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
    ty.size()
}

/// Alignment of an element in memory, as the C compiler has it.
pub(super) const fn alignment(ty: DataType) -> usize {
    ty.size()
}

/// Offset and length of the bytes that are data, in order; one field of `size` bytes without padding.
pub(super) fn fields(ty: DataType) -> impl Iterator<Item = (usize, usize)> {
    std::iter::once((0, ty.size()))
}

/// Offset and length of the scalars whose bytes external32 reverses, in order; `None` for a type that
/// external32 has in another size. Together they are the fields.
pub(super) fn scalars(ty: DataType) -> Option<impl Iterator<Item = (usize, usize)>> {
    Some(fields(ty))
}

/// Whether bytes of an element are padding.
pub(super) const fn is_padded(ty: DataType) -> bool {
    packed_size(ty) != size(ty)
}

/// The name that descriptions print: `f64`.
pub(super) fn name(ty: DataType) -> String {
    format!("{ty:?}").to_lowercase()
}
