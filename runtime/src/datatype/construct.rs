//! Constructors (MPI-4.1 §5.1.2 and §5.1.7).

use std::sync::Arc;

use transom_transport::{Basic, DataType};

use super::basic::Leaf;
use super::layout::{Joint, Layout};
use super::{Contents, Datatype, Inner};
use crate::{Class, Error, Result};

/// Constructors around each other. Types are compared, printed and dropped by recursion.
const DEEPEST: usize = 256;

/// The constructors' common words.
#[cold]
pub(super) fn refuse(class: Class, operation: &'static str, message: impl Into<String>) -> Error {
    Error::new(class, operation, message)
}

impl Datatype {
    /// A predefined type.
    pub fn basic(ty: DataType) -> Self {
        Self::leaf(Leaf::Of(ty), Contents::Basic(ty))
    }

    /// C's `long` of 8 bytes: [`DataType::I64`], but that external32 has it in 4 bytes (`MPI_LONG`, §14.5.2).
    pub fn long() -> Self {
        Self::leaf(Leaf::Long, Contents::Long)
    }

    /// C's `unsigned long` of 8 bytes: [`DataType::U64`], but that external32 has it in 4 bytes
    /// (`MPI_UNSIGNED_LONG`, §14.5.2).
    pub fn unsigned_long() -> Self {
        Self::leaf(Leaf::UnsignedLong, Contents::UnsignedLong)
    }

    fn leaf(leaf: Leaf, contents: Contents) -> Self {
        let mut layout = Layout::basic(leaf);
        let (lower_bound, extent) = layout.bounds.extent().unwrap_or_default();
        layout.bounds = layout.bounds.closed(lower_bound, extent);
        Self(Arc::new(Inner { contents, layout, lower_bound, extent, depth: 0 }))
    }

    /// The predefined type of Rust's `T`.
    pub fn of<T: Basic>() -> Self {
        Self::basic(T::TYPE)
    }

    /// The type that `contents` describes, of this layout (`None`: overflow).
    pub(super) fn make(operation: &'static str, contents: Contents, layout: Option<Layout>) -> Result<Self> {
        let depth = 1 + contents.types().map(|inner| inner.0.depth).max().unwrap_or(0);
        if depth > DEEPEST {
            let message =
                format!("more than {DEEPEST} types within each other; describe the layout with fewer");
            return Err(refuse(Class::Type, operation, message));
        }
        let bounded = layout.and_then(|layout| layout.bounds.extent().map(|extent| (layout, extent)));
        let Some((mut layout, (lower_bound, extent))) = bounded else {
            let message = "sizes or displacements go beyond 64 bits; use smaller counts or strides";
            return Err(refuse(Class::Count, operation, message));
        };
        layout.bounds = layout.bounds.closed(lower_bound, extent);
        Ok(Self(Arc::new(Inner { contents, layout, lower_bound, extent, depth })))
    }

    /// `count` instances, each an extent behind the one before (`MPI_Type_contiguous`).
    ///
    /// # Errors
    /// `Class::Count` if sizes or displacements go beyond 64 bits, as for all constructors; `Class::Type` if
    /// more than 256 types are within each other.
    pub fn contiguous(count: usize, ty: &Self) -> Result<Self> {
        let layout = ty.block(count);
        Self::make("datatype contiguous", Contents::Contiguous { count, inner: ty.clone() }, layout)
    }

    /// `count` blocks of `blocklength` instances; `stride` extents from one block's begin to the next one's
    /// (`MPI_Type_vector`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn vector(count: usize, blocklength: usize, stride: i64, ty: &Self) -> Result<Self> {
        let layout = if count < 2 { Some(0) } else { stride.checked_mul(ty.extent()) }
            .and_then(|bytes| ty.block(blocklength)?.repeated(count, bytes));
        let contents = Contents::Vector { count, blocklength, stride, inner: ty.clone() };
        Self::make("datatype vector", contents, layout)
    }

    /// As [`vector`](Self::vector), with the stride in bytes (`MPI_Type_create_hvector`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn hvector(count: usize, blocklength: usize, stride: i64, ty: &Self) -> Result<Self> {
        let layout = ty.block(blocklength).and_then(|block| block.repeated(count, stride));
        let contents = Contents::Hvector { count, blocklength, stride, inner: ty.clone() };
        Self::make("datatype hvector", contents, layout)
    }

    /// Blocks of so many instances at displacements of so many extents (`MPI_Type_indexed`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn indexed(blocks: &[(usize, i64)], ty: &Self) -> Result<Self> {
        let layout = ty.blocks(blocks.iter().copied(), ty.extent());
        let contents = Contents::Indexed { blocks: blocks.into(), inner: ty.clone() };
        Self::make("datatype indexed", contents, layout)
    }

    /// As [`indexed`](Self::indexed), with displacements in bytes (`MPI_Type_create_hindexed`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn hindexed(blocks: &[(usize, i64)], ty: &Self) -> Result<Self> {
        let layout = ty.blocks(blocks.iter().copied(), 1);
        let contents = Contents::Hindexed { blocks: blocks.into(), inner: ty.clone() };
        Self::make("datatype hindexed", contents, layout)
    }

    /// Blocks of `blocklength` instances at displacements of so many extents
    /// (`MPI_Type_create_indexed_block`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn indexed_block(blocklength: usize, displacements: &[i64], ty: &Self) -> Result<Self> {
        let layout = ty.blocks(displacements.iter().map(|at| (blocklength, *at)), ty.extent());
        let displacements = displacements.into();
        let contents = Contents::IndexedBlock { blocklength, displacements, inner: ty.clone() };
        Self::make("datatype indexed_block", contents, layout)
    }

    /// As [`indexed_block`](Self::indexed_block), with displacements in bytes
    /// (`MPI_Type_create_hindexed_block`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn hindexed_block(blocklength: usize, displacements: &[i64], ty: &Self) -> Result<Self> {
        let layout = ty.blocks(displacements.iter().map(|at| (blocklength, *at)), 1);
        let displacements = displacements.into();
        let contents = Contents::HindexedBlock { blocklength, displacements, inner: ty.clone() };
        Self::make("datatype hindexed_block", contents, layout)
    }

    /// Blocks of so many instances at displacements in bytes, each of its own type
    /// (`MPI_Type_create_struct`). The extent is rounded up to the strictest alignment of the basic types, as
    /// a C compiler does (§5.1.6).
    ///
    /// ```
    /// use transom::Datatype;
    /// let pair = Datatype::structure(&[(1, 0, Datatype::of::<f64>()), (1, 8, Datatype::of::<i8>())])?;
    /// assert_eq!((pair.size(), pair.extent()), (9, 16));
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn structure(fields: &[(usize, i64, Self)]) -> Result<Self> {
        let mut joint = Joint::new();
        let layout = fields
            .iter()
            .filter(|field| field.0 > 0)
            .try_for_each(|(blocklength, at, ty)| joint.push(&ty.block(*blocklength)?, *at))
            .map(|()| joint.finish());
        Self::make("datatype structure", Contents::Structure { fields: fields.into() }, layout)
    }

    /// The same layout, which begins at `lower_bound` and ends `extent` bytes behind, wherever its data is
    /// (`MPI_Type_create_resized`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn resized(&self, lower_bound: i64, extent: i64) -> Result<Self> {
        let layout =
            lower_bound.checked_add(extent).map(|end| self.0.layout.clone().marked(lower_bound, end));
        let contents = Contents::Resized { lower_bound, extent, inner: self.clone() };
        Self::make("datatype resized", contents, layout)
    }

    /// The same type, whose contents say that it is a copy (`MPI_Type_dup`).
    ///
    /// # Errors
    /// As for [`contiguous`](Self::contiguous).
    pub fn dup(&self) -> Result<Self> {
        Self::make("datatype dup", Contents::Dup(self.clone()), Some(self.0.layout.clone()))
    }

    /// `count` instances, an extent apart.
    fn block(&self, count: usize) -> Option<Layout> {
        self.0.layout.repeated(count, self.0.extent)
    }

    /// Blocks at displacements of so many `unit` bytes.
    fn blocks(&self, blocks: impl Iterator<Item = (usize, i64)>, unit: i64) -> Option<Layout> {
        let mut joint = Joint::new();
        // Blocks tend to be as long as the one before.
        let mut block = (0, Layout::empty());
        for (length, at) in blocks.filter(|(length, _)| *length > 0) {
            if block.0 != length {
                block = (length, self.block(length)?);
            }
            joint.push(&block.1, at.checked_mul(unit)?)?;
        }
        Some(joint.finish())
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }
}
