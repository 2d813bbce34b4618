//! The words of atomic operations: datatypes, operations, kinds, limits.

use libfabric_sys as sys;

use crate::{Address, Remote};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $raw:ident { $($(#[$word_doc:meta])* $word:ident = $value:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$word),*];

            pub(crate) fn to_raw(self) -> sys::$raw {
                match self {
                    $($name::$word => sys::$value,)*
                }
            }
        }
    };
}

words! {
    /// Type of the elements of an atomic operation (fi_atomic(3)).
    Datatype: fi_datatype {
        /// Signed, 8 bits.
        Int8 = FI_INT8,
        /// Unsigned, 8 bits.
        Uint8 = FI_UINT8,
        /// Signed, 16 bits.
        Int16 = FI_INT16,
        /// Unsigned, 16 bits.
        Uint16 = FI_UINT16,
        /// Signed, 32 bits.
        Int32 = FI_INT32,
        /// Unsigned, 32 bits.
        Uint32 = FI_UINT32,
        /// Signed, 64 bits.
        Int64 = FI_INT64,
        /// Unsigned, 64 bits.
        Uint64 = FI_UINT64,
        /// C `float`.
        Float = FI_FLOAT,
        /// C `double`.
        Double = FI_DOUBLE,
        /// C `float complex`.
        FloatComplex = FI_FLOAT_COMPLEX,
        /// C `double complex`.
        DoubleComplex = FI_DOUBLE_COMPLEX,
        /// C `long double`.
        LongDouble = FI_LONG_DOUBLE,
        /// C `long double complex`.
        LongDoubleComplex = FI_LONG_DOUBLE_COMPLEX,
        /// Signed, 128 bits.
        Int128 = FI_INT128,
        /// Unsigned, 128 bits.
        Uint128 = FI_UINT128,
    }
}

impl Datatype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Datatype::Int8 | Datatype::Uint8 => 1,
            Datatype::Int16 | Datatype::Uint16 => 2,
            Datatype::Int32 | Datatype::Uint32 | Datatype::Float => 4,
            Datatype::Int64 | Datatype::Uint64 | Datatype::Double | Datatype::FloatComplex => 8,
            // The ABIs of x86-64 and aarch64 both give a long double 16 bytes.
            Datatype::DoubleComplex | Datatype::LongDouble | Datatype::Int128 | Datatype::Uint128 => 16,
            Datatype::LongDoubleComplex => 32,
        }
    }
}

words! {
    /// An atomic operation (fi_atomic(3)).
    AtomicOp: fi_op {
        /// The smaller.
        Min = FI_MIN,
        /// The larger.
        Max = FI_MAX,
        /// Sum.
        Sum = FI_SUM,
        /// Product.
        Prod = FI_PROD,
        /// Logical or.
        Lor = FI_LOR,
        /// Logical and.
        Land = FI_LAND,
        /// Bitwise or.
        Bor = FI_BOR,
        /// Bitwise and.
        Band = FI_BAND,
        /// Logical exclusive or.
        Lxor = FI_LXOR,
        /// Bitwise exclusive or.
        Bxor = FI_BXOR,
        /// Read; fetching only.
        Read = FI_ATOMIC_READ,
        /// Write; with fetching, an exchange.
        Write = FI_ATOMIC_WRITE,
        /// Write if the target equals the comparand.
        Cswap = FI_CSWAP,
        /// Write if the comparand is not equal to the target.
        CswapNe = FI_CSWAP_NE,
        /// Write if the comparand is at most the target.
        CswapLe = FI_CSWAP_LE,
        /// Write if the comparand is less than the target.
        CswapLt = FI_CSWAP_LT,
        /// Write if the comparand is at least the target.
        CswapGe = FI_CSWAP_GE,
        /// Write if the comparand is greater than the target.
        CswapGt = FI_CSWAP_GT,
        /// Write the bits that are set in the comparand.
        Mswap = FI_MSWAP,
    }
}

/// Which of the three families of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    /// Changes the target.
    Plain,
    /// Changes the target and returns what it was.
    Fetch,
    /// Changes the target depending on a comparand, and returns what it was.
    Compare,
}

impl AtomicKind {
    pub(crate) fn to_query_flags(self) -> u64 {
        match self {
            AtomicKind::Plain => 0,
            AtomicKind::Fetch => sys::FI_FETCH_ATOMIC,
            AtomicKind::Compare => sys::FI_COMPARE_ATOMIC,
        }
    }
}

/// What a provider can do of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicLimits {
    /// Most elements of one call.
    pub count: usize,
    /// Bytes of one element.
    pub size: usize,
}

/// What an atomic call does, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicCall {
    /// The peer.
    pub to: Address,
    /// The first element there.
    pub remote: Remote,
    /// Type of the elements.
    pub datatype: Datatype,
    /// The operation.
    pub op: AtomicOp,
    /// Number of elements, in the target and in every local buffer.
    pub count: usize,
    /// Bits of [`crate::flags`]: `COMPLETION`, `DELIVERY_COMPLETE`, `INJECT`, …
    pub flags: u64,
}
