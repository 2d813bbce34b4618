//! A rank's own part of a window: whole elements in and out, never a slice, since others may write at any time.

use std::marker::PhantomData;

use transom_transport::Span;
use zerocopy::IntoBytes;

use crate::{Class, Element, Error, Result};

/// The elements that this rank exposes.
///
/// Elements of 1, 2, 4 and 8 bytes are read and written whole. Longer ones, and ranges, are copied byte by byte as far as
/// concurrent updates can see.
#[derive(Debug, Clone, Copy)]
pub struct Local<'w, T> {
    memory: &'w Span,
    _elements: PhantomData<T>,
}

impl<'w, T: Element> Local<'w, T> {
    pub(super) fn new(memory: &'w Span) -> Self {
        Self { memory, _elements: PhantomData }
    }

    /// The memory of elements `range`.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Result<Span> {
        let count = range.end.saturating_sub(range.start);
        let offset = self.offset("overlapping", range.start, count)?;
        self.memory.part(offset, count * size_of::<T>()).map_err(|e| Error::transport("overlapping", &e))
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.memory.len() / size_of::<T>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Address of the first element in this process.
    pub fn address(&self) -> usize {
        self.memory.address()
    }

    fn offset(&self, operation: &'static str, index: usize, count: usize) -> Result<usize> {
        if index > self.len() || count > self.len() - index {
            let message = format!("{count} elements from {index} on are outside this rank's {}", self.len());
            return Err(Error::new(Class::RmaRange, operation, message));
        }
        Ok(index * size_of::<T>())
    }

    /// The element at `index`.
    ///
    /// # Errors
    /// `index` is out of range.
    pub fn get(&self, index: usize) -> Result<T> {
        let mut element = T::new_zeroed();
        let offset = self.offset("local get", index, 1)?;
        self.memory
            .copy_out(offset, element.as_mut_bytes())
            .map_err(|e| Error::transport("local get", &e))?;
        Ok(element)
    }

    /// Stores an element at `index`.
    ///
    /// # Errors
    /// `index` is out of range.
    pub fn set(&self, index: usize, element: T) -> Result<()> {
        let offset = self.offset("local set", index, 1)?;
        self.memory.copy_in(offset, element.as_bytes()).map_err(|e| Error::transport("local set", &e))
    }

    /// Copies elements from `index` on to `elements`.
    ///
    /// # Errors
    /// The range is outside.
    pub fn read(&self, index: usize, elements: &mut [T]) -> Result<()> {
        let offset = self.offset("local read", index, elements.len())?;
        self.memory.copy_out(offset, elements.as_mut_bytes()).map_err(|e| Error::transport("local read", &e))
    }

    /// Copies `elements` to `index` and on.
    ///
    /// # Errors
    /// The range is outside.
    pub fn write(&self, index: usize, elements: &[T]) -> Result<()> {
        let offset = self.offset("local write", index, elements.len())?;
        self.memory.copy_in(offset, elements.as_bytes()).map_err(|e| Error::transport("local write", &e))
    }

    /// A copy of all elements.
    ///
    /// # Errors
    /// None today.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::new_zeroed(); self.len()];
        self.read(0, &mut elements)?;
        Ok(elements)
    }
}
