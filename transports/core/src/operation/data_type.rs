/// The predefined element types (MPI-4.1 §6.9.2, §6.9.4). Each stands for all of the standard's types with
/// the same bits: [`DataType::I64`] is `MPI_LONG`, `MPI_INT64_T`, `MPI_AINT` and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataType {
    /// Signed integer of 1 byte.
    I8 = 0,
    /// Signed integer of 2 bytes.
    I16 = 1,
    /// Signed integer of 4 bytes.
    I32 = 2,
    /// Signed integer of 8 bytes.
    I64 = 3,
    /// Unsigned integer of 1 byte.
    U8 = 4,
    /// Unsigned integer of 2 bytes.
    U16 = 5,
    /// Unsigned integer of 4 bytes.
    U32 = 6,
    /// Unsigned integer of 8 bytes.
    U64 = 7,
    /// `float`.
    F32 = 8,
    /// `double`.
    F64 = 9,
    /// C's `_Bool`: `MPI_C_BOOL`.
    Bool = 10,
    /// Bits without a meaning: `MPI_BYTE`.
    Byte = 11,
    /// A printable character: `MPI_CHAR`.
    Char = 12,
    /// A wide printable character of 4 bytes: `MPI_WCHAR`.
    WideChar = 13,
    /// `long double`: the x87's 80 bits, in 16 bytes.
    F80 = 14,
    /// `float _Complex`.
    C32 = 15,
    /// `double _Complex`.
    C64 = 16,
    /// `long double _Complex`.
    C80 = 17,
    /// `struct { float; int }`: `MPI_FLOAT_INT`.
    F32I32 = 18,
    /// `struct { double; int }`: `MPI_DOUBLE_INT`.
    F64I32 = 19,
    /// `struct { long; int }`: `MPI_LONG_INT`.
    I64I32 = 20,
    /// `struct { int; int }`: `MPI_2INT`.
    I32I32 = 21,
    /// `struct { short; int }`: `MPI_SHORT_INT`.
    I16I32 = 22,
    /// `struct { long double; int }`: `MPI_LONG_DOUBLE_INT`.
    F80I32 = 23,
}

impl DataType {
    /// Every type, in the order of the wire.
    pub const ALL: [Self; 24] = [
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
        Self::Bool,
        Self::Byte,
        Self::Char,
        Self::WideChar,
        Self::F80,
        Self::C32,
        Self::C64,
        Self::C80,
        Self::F32I32,
        Self::F64I32,
        Self::I64I32,
        Self::I32I32,
        Self::I16I32,
        Self::F80I32,
    ];

    /// The type that a byte on the wire names.
    pub fn from_wire(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Bytes from one element to the next in memory, padding included (the standard's extent). Streams of
    /// operands and of results hold whole elements, too.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::Byte | Self::Char => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::WideChar => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::C32 | Self::F32I32 | Self::I32I32 | Self::I16I32 => 8,
            Self::F80 | Self::C64 | Self::F64I32 | Self::I64I32 => 16,
            Self::C80 | Self::F80I32 => 32,
        }
    }

    /// The standard's `MPI_Type_size`: bytes of data, without the padding of pairs. The six bytes behind the
    /// 80 bits of a `long double` count as data, as they do in `sizeof`.
    pub const fn packed_size(self) -> usize {
        let (mut bytes, mut i) = (0, 0);
        while i < self.fields().len() {
            bytes += self.fields()[i].1;
            i += 1;
        }
        bytes
    }

    /// Where the data is in an element: offset and length of each stretch, ascending; padding is between and
    /// behind.
    pub const fn fields(self) -> &'static [(usize, usize)] {
        match self {
            Self::I16I32 => &[(0, 2), (4, 4)],
            Self::F64I32 | Self::I64I32 => &[(0, 12)],
            Self::F80I32 => &[(0, 20)],
            _ => match self.size() {
                1 => &[(0, 1)],
                2 => &[(0, 2)],
                4 => &[(0, 4)],
                8 => &[(0, 8)],
                16 => &[(0, 16)],
                _ => &[(0, 32)],
            },
        }
    }

    /// Whether so many bytes are whole elements.
    #[inline]
    pub const fn divides(self, bytes: usize) -> bool {
        let size = self.size();
        // A division takes as long as some additions of vectors.
        if size.is_power_of_two() { bytes & (size - 1) == 0 } else { bytes.is_multiple_of(size) }
    }

    /// The alignment that C gives the type. Elements may lie at any address all the same.
    pub const fn alignment(self) -> usize {
        match self {
            Self::C32 | Self::F32I32 | Self::I32I32 | Self::I16I32 => 4,
            Self::C64 | Self::F64I32 | Self::I64I32 => 8,
            Self::C80 | Self::F80I32 => 16,
            _ => self.size(),
        }
    }

    /// Whether an element is no larger than the CPU's atomics, 8 bytes: updated by them where it is aligned
    /// to its size.
    pub const fn is_narrow(self) -> bool {
        self.size() <= 8
    }

    /// Whether this is one of the ten types that [`Number`](crate::Number) names: integers, `float` and
    /// `double`.
    pub const fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Self::F32 | Self::F64)
    }

    /// Whether this is an integer.
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U8 | Self::U16 | Self::U32 | Self::U64
        )
    }

    /// Whether this is a real floating type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F80)
    }

    /// Whether this is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64 | Self::C80)
    }

    /// Whether this is a value with an index, for [`ReduceOp::MinLoc`](crate::ReduceOp::MinLoc).
    pub const fn is_pair(self) -> bool {
        matches!(
            self,
            Self::F32I32 | Self::F64I32 | Self::I64I32 | Self::I32I32 | Self::I16I32 | Self::F80I32
        )
    }

    /// Whether elements hold a `long double`, with which only x86-64 computes.
    pub(super) const fn is_x87(self) -> bool {
        matches!(self, Self::F80 | Self::C80 | Self::F80I32)
    }
}
