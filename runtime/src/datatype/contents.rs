//! How a datatype was made (MPI-4.1 §5.1.13).

use std::slice;

use transom_transport::DataType;

use super::Datatype;

/// Which index of an array changes fastest in memory (§5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last one, as in C and Rust (`MPI_ORDER_C`).
    C,
    /// The first one (`MPI_ORDER_FORTRAN`).
    Fortran,
}

/// How one dimension of an array is dealt out to processes (§5.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Not at all (`MPI_DISTRIBUTE_NONE`): the process grid must be 1 wide here.
    None,
    /// A block to each process (`MPI_DISTRIBUTE_BLOCK`) of so many elements; without an argument, as few as
    /// suffice.
    Block(Option<usize>),
    /// Blocks of so many elements, else 1, in turn (`MPI_DISTRIBUTE_CYCLIC`).
    Cyclic(Option<usize>),
}

/// The constructor that made a datatype, with its arguments.
///
/// [`combiner`](Self::combiner) and [`types`](Self::types) are what `MPI_Type_get_envelope` and
/// `MPI_Type_get_contents` ask for.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the arguments of the constructor of the same name")]
pub enum Contents {
    /// [`Datatype::basic`].
    Basic(DataType),
    /// [`Datatype::long`].
    Long,
    /// [`Datatype::unsigned_long`].
    UnsignedLong,
    /// [`Datatype::dup`].
    Dup(Datatype),
    /// [`Datatype::contiguous`].
    Contiguous { count: usize, inner: Datatype },
    /// [`Datatype::vector`].
    Vector { count: usize, blocklength: usize, stride: i64, inner: Datatype },
    /// [`Datatype::hvector`].
    Hvector { count: usize, blocklength: usize, stride: i64, inner: Datatype },
    /// [`Datatype::indexed`].
    Indexed { blocks: Box<[(usize, i64)]>, inner: Datatype },
    /// [`Datatype::hindexed`].
    Hindexed { blocks: Box<[(usize, i64)]>, inner: Datatype },
    /// [`Datatype::indexed_block`].
    IndexedBlock { blocklength: usize, displacements: Box<[i64]>, inner: Datatype },
    /// [`Datatype::hindexed_block`].
    HindexedBlock { blocklength: usize, displacements: Box<[i64]>, inner: Datatype },
    /// [`Datatype::structure`].
    Structure { fields: Box<[(usize, i64, Datatype)]> },
    /// [`Datatype::subarray`].
    Subarray {
        sizes: Box<[usize]>,
        subsizes: Box<[usize]>,
        starts: Box<[usize]>,
        order: Order,
        inner: Datatype,
    },
    /// [`Datatype::darray`].
    Darray {
        size: usize,
        rank: usize,
        gsizes: Box<[usize]>,
        distributions: Box<[Distribution]>,
        psizes: Box<[usize]>,
        order: Order,
        inner: Datatype,
    },
    /// [`Datatype::resized`].
    Resized { lower_bound: i64, extent: i64, inner: Datatype },
}

impl Contents {
    /// The standard's name: `MPI_COMBINER_VECTOR`.
    pub fn combiner(&self) -> &'static str {
        match self {
            Self::Basic(_) | Self::Long | Self::UnsignedLong => "MPI_COMBINER_NAMED",
            Self::Dup(_) => "MPI_COMBINER_DUP",
            Self::Contiguous { .. } => "MPI_COMBINER_CONTIGUOUS",
            Self::Vector { .. } => "MPI_COMBINER_VECTOR",
            Self::Hvector { .. } => "MPI_COMBINER_HVECTOR",
            Self::Indexed { .. } => "MPI_COMBINER_INDEXED",
            Self::Hindexed { .. } => "MPI_COMBINER_HINDEXED",
            Self::IndexedBlock { .. } => "MPI_COMBINER_INDEXED_BLOCK",
            Self::HindexedBlock { .. } => "MPI_COMBINER_HINDEXED_BLOCK",
            Self::Structure { .. } => "MPI_COMBINER_STRUCT",
            Self::Subarray { .. } => "MPI_COMBINER_SUBARRAY",
            Self::Darray { .. } => "MPI_COMBINER_DARRAY",
            Self::Resized { .. } => "MPI_COMBINER_RESIZED",
        }
    }

    /// The types that it was made of, in the order of the arguments.
    pub fn types(&self) -> impl Iterator<Item = &Datatype> {
        let (one, fields) = match self {
            Self::Basic(_) | Self::Long | Self::UnsignedLong => (None, slice::Iter::default()),
            Self::Structure { fields } => (None, fields.iter()),
            Self::Dup(inner)
            | Self::Contiguous { inner, .. }
            | Self::Vector { inner, .. }
            | Self::Hvector { inner, .. }
            | Self::Indexed { inner, .. }
            | Self::Hindexed { inner, .. }
            | Self::IndexedBlock { inner, .. }
            | Self::HindexedBlock { inner, .. }
            | Self::Subarray { inner, .. }
            | Self::Darray { inner, .. }
            | Self::Resized { inner, .. } => (Some(inner), slice::Iter::default()),
        };
        one.into_iter().chain(fields.map(|(_, _, ty)| ty))
    }
}
