//! The ways to make a window (MPI-4.1 §12.2).

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::create::Memory;
use super::plan::bytes_of;
use super::{Core, Flavour, Window, WindowOptions};
use crate::memory::{ExposedVec, RawBuffer};
use crate::{Class, Communicator, Element, Result};

impl Communicator {
    /// A window of `len` zeroed elements at this rank, in memory that ranks of one node map (`MPI_Win_allocate`,
    /// MPI-4.1 §12.2.2). Collective; `len` may differ by rank.
    ///
    /// # Errors
    /// The same on all ranks: element types differ, no memory for it on some host, or registration fails somewhere.
    pub fn allocate<T: Element>(&self, len: usize) -> Result<Window<T>> {
        self.allocate_with(len, &WindowOptions::default())
    }

    /// [`Communicator::allocate`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate`]; options that make no sense, or differ where they must not.
    pub fn allocate_with<T: Element>(&self, len: usize, options: &WindowOptions) -> Result<Window<T>> {
        let core = Core::create::<T>(self, "allocate", Memory::Allocate(bytes_of::<T>(len)), options)?;
        Ok(Window { core, memory: None, _elements: PhantomData })
    }

    /// A window in memory that all ranks map as one range, for loads and stores as well (`MPI_Win_allocate_shared`,
    /// §12.2.3): [`Window::shared`] gives any rank's part. The parts lie one behind the other, in the order of ranks,
    /// unless the hint `alloc_shared_noncontig` says otherwise. Collective.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let window = job.allocate_shared::<u32>(1)?;
    ///     window.shared(1 - job.rank())?.set(0, 7)?;
    ///     job.barrier()?;
    ///     assert_eq!(window.local().get(0)?, 7);
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Communicator::allocate`]; ranks of several hosts ([`Class::RmaShared`]).
    pub fn allocate_shared<T: Element>(&self, len: usize) -> Result<Window<T>> {
        self.allocate_shared_with(len, &WindowOptions::default())
    }

    /// [`Communicator::allocate_shared`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate_shared`] and [`Communicator::allocate_with`].
    pub fn allocate_shared_with<T: Element>(&self, len: usize, options: &WindowOptions) -> Result<Window<T>> {
        let memory = Memory::Shared(bytes_of::<T>(len));
        let core = Core::create::<T>(self, "allocate_shared", memory, options)?;
        Ok(Window { core, memory: None, _elements: PhantomData })
    }

    /// A window without memory, to which each rank attaches memory when it likes (`MPI_Win_create_dynamic`, §12.2.4):
    /// [`Window::attach`]. Displacements are addresses at the target. Collective.
    ///
    /// # Errors
    /// As [`Communicator::allocate`].
    pub fn dynamic<T: Element>(&self) -> Result<Window<T>> {
        self.dynamic_with(&WindowOptions::default())
    }

    /// [`Communicator::dynamic`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate_with`].
    pub fn dynamic_with<T: Element>(&self, options: &WindowOptions) -> Result<Window<T>> {
        let core = Core::create::<T>(self, "dynamic", Memory::Dynamic, options)?;
        Ok(Window { core, memory: None, _elements: PhantomData })
    }

    /// A window over memory of the caller's (`MPI_Win_create`, MPI-4.1 §12.2.1). Collective; lengths may differ by rank.
    /// [`Window::reclaim`] gives the memory back.
    ///
    /// # Errors
    /// As [`Communicator::allocate`].
    pub fn create<T: Element>(&self, memory: Vec<T>) -> Result<Window<T>> {
        self.create_with(memory, &WindowOptions::default())
    }

    /// [`Communicator::create`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate_with`].
    pub fn create_with<T: Element>(&self, memory: Vec<T>, options: &WindowOptions) -> Result<Window<T>> {
        let (memory, span) = ExposedVec::new(memory);
        let core = Core::create::<T>(self, "create", Memory::User(span), options)?;
        Ok(Window { core, memory: Some(Arc::new(memory)), _elements: PhantomData })
    }

    /// A window over memory of a program in another language (`MPI_Win_create`, §12.2.1). Collective.
    ///
    /// # Errors
    /// As [`Communicator::create_with`].
    pub fn create_raw(&self, memory: RawBuffer, options: &WindowOptions) -> Result<Window<u8>> {
        let core = Core::create::<u8>(self, "create", Memory::User(memory.span()), options)?;
        Ok(Window { core, memory: None, _elements: PhantomData })
    }

    /// A window over memory that is borrowed for as long as `body` runs (`MPI_Win_create`, §12.2.1). Collective, at the
    /// end, too, if `body` succeeds.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let mut grid = [0.0f32; 4];
    ///     job.create_scoped(&mut grid, |window| {
    ///         window.fence(|epoch| epoch.put_value(1 - job.rank(), 3, 2.5))
    ///     })?;
    ///     assert_eq!(grid, [0.0, 0.0, 0.0, 2.5]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Communicator::allocate`] and [`Window::free`], and those of `body`.
    pub fn create_scoped<T: Element, R>(
        &self,
        memory: &mut [T],
        body: impl FnOnce(&Window<T>) -> Result<R>,
    ) -> Result<R> {
        let memory = Memory::User(crate::memory::expose(memory));
        let core = Core::create::<T>(self, "create", memory, &WindowOptions::default())?;
        // It cannot outlive this call: its drop ends all access, after a panic, too.
        let window = Window { core, memory: None, _elements: PhantomData };
        let result = body(&window)?;
        window.free().map(|()| result)
    }
}

impl<T: Element> Window<T> {
    /// Another window over elements `range` of this rank's part: two windows that overlap (MPI-4.1 §12.7). In the separate
    /// memory model each has a public copy of its own, and both the same private one. Collective; ranges may differ by
    /// rank.
    ///
    /// # Errors
    /// The range is outside; the memory is borrowed ([`Communicator::create_scoped`]) or attached; and as [`Communicator::allocate_with`].
    pub fn overlapping(&self, range: Range<usize>, options: &WindowOptions) -> Result<Self> {
        let core = &self.core;
        let lent = core.flavour == Flavour::Create && self.memory.is_none();
        let part = if lent || core.flavour == Flavour::Dynamic {
            let message = "only windows that own their memory, or were allocated, can be overlapped";
            Err(core.error(Class::Window, "overlapping", message))
        } else {
            self.local().part(range)
        };
        // Collective all the same, so that all ranks learn of it.
        let memory = match &part {
            Ok(part) => Memory::Part(part.clone(), core.block.clone()),
            Err(_) => Memory::Allocate(Err("this rank's range cannot be overlapped".into())),
        };
        let made = Core::create::<T>(&core.comm, "overlapping", memory, options);
        part?;
        Ok(Self { core: made?, memory: self.memory.clone(), _elements: PhantomData })
    }
}
