//! Names of element types and reduction operations, as they go over the wire, and which pairs the standard allows.

/// The predefined element types (MPI-4.1 §6.9.2, the integer and floating groups).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum DataType {
    I8 = 0,
    I16 = 1,
    I32 = 2,
    I64 = 3,
    U8 = 4,
    U16 = 5,
    U32 = 6,
    U64 = 7,
    F32 = 8,
    F64 = 9,
}

impl DataType {
    /// Every type, in the order of the wire.
    pub const ALL: [Self; 10] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// The type that a byte on the wire names.
    pub fn from_wire(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Size of an element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether this is a floating type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// The predefined reduction operations (MPI-4.1 §6.9.2 and, for the last two, §12.3.4).
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
}

impl ReduceOp {
    /// Every operation, in the order of the wire.
    pub const ALL: [Self; 12] = [
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
    ];

    /// The operation that a byte on the wire names.
    pub fn from_wire(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Whether the standard defines `op` on elements of `ty`: logical and bitwise operations are for integers only
/// (MPI-4.1 §6.9.2).
pub const fn reduce_valid(op: ReduceOp, ty: DataType) -> bool {
    use ReduceOp::*;
    match op {
        Sum | Prod | Min | Max | Replace | NoOp => true,
        Land | Lor | Lxor | Band | Bor | Bxor => !ty.is_float(),
    }
}
