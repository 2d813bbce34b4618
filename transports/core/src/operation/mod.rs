//! Names of element types and reduction operations, as they go over the wire, and which pairs the standard
//! allows.

mod data_type;

pub use data_type::DataType;

/// The predefined reduction operations (MPI-4.1 §6.9.2, §6.9.4; [`Replace`](Self::Replace) and
/// [`NoOp`](Self::NoOp) §12.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReduceOp {
    /// `target + origin`; integers wrap.
    Sum = 0,
    /// `target * origin`; integers wrap.
    Prod = 1,
    /// The smaller of the two.
    Min = 2,
    /// The larger of the two.
    Max = 3,
    /// 1 if both are non-zero, else 0.
    Land = 4,
    /// 1 if either is non-zero, else 0.
    Lor = 5,
    /// 1 if exactly one is non-zero, else 0.
    Lxor = 6,
    /// Bitwise and.
    Band = 7,
    /// Bitwise or.
    Bor = 8,
    /// Bitwise exclusive or.
    Bxor = 9,
    /// The origin's value: an atomic put.
    Replace = 10,
    /// The target's value stays: with a fetch, an atomic get.
    NoOp = 11,
    /// The smaller of two values with its index; of equal values the smaller index.
    MinLoc = 12,
    /// The larger of two values with its index; of equal values the smaller index.
    MaxLoc = 13,
}

impl ReduceOp {
    /// Every operation, in the order of the wire.
    pub const ALL: [Self; 14] = [
        Self::Sum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::Land,
        Self::Lor,
        Self::Lxor,
        Self::Band,
        Self::Bor,
        Self::Bxor,
        Self::Replace,
        Self::NoOp,
        Self::MinLoc,
        Self::MaxLoc,
    ];

    /// The operation that a byte on the wire names.
    pub fn from_wire(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Whether the standard defines `op` on elements of `ty` (MPI-4.1 §6.9.2, §6.9.4, §12.3.4).
///
/// Only x86-64 computes with `long double`: elsewhere its types can be replaced and read, no more.
pub const fn reduce_valid(op: ReduceOp, ty: DataType) -> bool {
    use ReduceOp::*;
    if ty.is_x87() && !cfg!(target_arch = "x86_64") {
        return matches!(op, Replace | NoOp);
    }
    match op {
        Replace | NoOp => true,
        Sum | Prod => ty.is_integer() || ty.is_float() || ty.is_complex(),
        Min | Max => ty.is_integer() || ty.is_float(),
        Land | Lor | Lxor => ty.is_integer() || matches!(ty, DataType::Bool),
        Band | Bor | Bxor => ty.is_integer() || matches!(ty, DataType::Byte),
        MinLoc | MaxLoc => ty.is_pair(),
    }
}

/// Whether compare-and-swap is defined on elements of `ty`: integers, logical and byte (MPI-4.1 §12.3.4),
/// and, beyond the standard, characters.
pub const fn swap_valid(ty: DataType) -> bool {
    use DataType::*;
    ty.is_integer() || matches!(ty, Bool | Byte | Char | WideChar)
}

#[cfg(test)]
mod tests;
