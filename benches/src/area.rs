//! A window of one element type over memory of any kind, with the origin's buffers.

use std::ops::{Deref, DerefMut, Range};

use transom::{Assert, Communicator, Element, Epoch, Local, LockKind, Result, Window};

use crate::kind::Kind;
use crate::operation::Sync;
use crate::repeat::Repeat;

/// Bytes of a page.
const PAGE: usize = 4096;

/// A window, and the origin's own memory.
#[derive(Debug)]
pub struct Area<T> {
    /// The window.
    pub window: Window<T>,
    /// What puts send and gets fill.
    pub own: Buffer<T>,
    /// Where each rank's memory begins, in displacements; and where it is here, if it was attached.
    bases: Vec<usize>,
    attached: Option<usize>,
}

impl<T: Element> Area<T> {
    /// A window of `len` elements at each rank, and `own` in the origin's buffer, all of them `value`. Collective.
    ///
    /// # Errors
    /// As [`Communicator::allocate`] and the other ways to make a window.
    pub fn new(comm: &Communicator, kind: Kind, len: usize, own: usize, value: T) -> Result<Self> {
        let mut attached = None;
        let window = match kind {
            Kind::Allocated => comm.allocate(len)?,
            Kind::Created => comm.create(vec![value; len])?,
            Kind::Shared => comm.allocate_shared(len)?,
            Kind::Dynamic => {
                let window = comm.dynamic()?;
                attached = Some(window.attach(vec![value; len])?);
                window
            }
        };
        let bases = comm.allgather(&[attached.unwrap_or_default()])?.concat();
        let area = Self { window, own: Buffer::new(own, value), bases, attached };
        // Memory in use, as a program's is: its pages are there.
        area.local(|local| local.write(0, &vec![value; len]))?;
        Ok(area)
    }

    /// The displacement of a target's element.
    #[inline]
    pub fn at(&self, target: usize, index: usize) -> usize {
        let unit = if self.attached.is_some() { size_of::<T>() } else { 1 };
        self.bases[target] + index * unit
    }

    /// This rank's memory.
    ///
    /// # Errors
    /// Those of `view`.
    pub fn local<R>(&self, view: impl FnOnce(Local<'_, T>) -> Result<R>) -> Result<R> {
        match self.attached {
            Some(address) => self.window.with_attached(address, view),
            None => view(self.window.local()),
        }
    }

    /// This rank's first `len` elements.
    ///
    /// # Errors
    /// There are not so many.
    pub fn first(&self, len: usize) -> Result<Vec<T>> {
        let mut elements = vec![T::new_zeroed(); len];
        self.local(|local| local.read(0, &mut elements))?;
        Ok(elements)
    }

    /// Collective.
    ///
    /// # Errors
    /// As [`Window::free`].
    pub fn free(self) -> Result<()> {
        if let Some(address) = self.attached {
            self.window.communicator().barrier()?;
            self.window.detach(address)?;
        }
        self.window.free()
    }
}

/// Memory of the heap that begins on a page: its large blocks begin 16 bytes after one, which halves the speed of copies that fit the
/// first-level cache. Other programs that measure align theirs, too.
#[derive(Debug)]
pub struct Buffer<T> {
    elements: Vec<T>,
    place: Range<usize>,
}

impl<T: Copy> Buffer<T> {
    /// `len` elements, all of them `value`.
    pub fn new(len: usize, value: T) -> Self {
        let elements = vec![value; len + PAGE / size_of::<T>().max(1)];
        let start = elements.as_ptr().align_offset(PAGE).min(elements.len() - len);
        Self { elements, place: start..start + len }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements[self.place.clone()]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements[self.place.clone()]
    }
}

/// Repeats `one`, completed by `sync`; over flushes the epoch stays open.
///
/// # Errors
/// Those of the operations.
pub fn in_epochs<'env, T: Element>(
    window: &Window<T>,
    (target, sync): (usize, Sync),
    repeat: &mut impl Repeat,
    mut one: impl FnMut(&Epoch<'_, 'env, T>) -> Result<()>,
) -> Result<()> {
    match sync {
        Sync::Flush => window.lock_all(|epoch| {
            repeat.repeat(|| {
                one(epoch)?;
                epoch.flush(target)
            })
        }),
        _ => repeat.repeat(|| in_one_epoch(window, (target, sync), &mut one)),
    }
}

/// Runs `body` in an epoch of its own. One that stands for a flush takes no locks: a program would hold them all the while.
///
/// # Errors
/// Those of the operations.
pub fn in_one_epoch<'env, T: Element>(
    window: &Window<T>,
    (target, sync): (usize, Sync),
    body: impl FnOnce(&Epoch<'_, 'env, T>) -> Result<()>,
) -> Result<()> {
    match sync {
        Sync::Flush => window.lock_all_with(Assert::NOCHECK, body),
        Sync::Lock => window.lock(LockKind::Exclusive, target, body),
        Sync::Fence => window.fence(body),
        Sync::Pscw => window.start(&[target], body),
    }
}

/// The target's part of [`in_epochs`].
///
/// # Errors
/// Those of the calls.
pub fn take_part<T: Element>(
    window: &Window<T>,
    (origin, sync): (usize, Sync),
    repeat: &mut impl Repeat,
) -> Result<()> {
    match sync {
        Sync::Flush | Sync::Lock => Ok(()),
        Sync::Fence => repeat.repeat(|| window.fence(|_| Ok(()))),
        Sync::Pscw => repeat.repeat(|| window.expose(&[origin], |_| Ok(()))),
    }
}
