//! Symmetric memory: a window, and how addresses of it become displacements.

use crate::memory::RawBuffer;
use crate::shortcut::ShortCut;
use crate::window::Core;
use crate::{Assert, Communicator, Result, Window, WindowOptions};

/// Memory that every PE has one of: the symmetric heap, or static data of the program.
///
/// An object's address at this PE, less where the memory begins here, is its displacement at every PE, wherever it lies there.
#[derive(Debug)]
pub(super) struct Segment {
    window: Window<u8>,
    base: usize,
    len: usize,
    /// As much of it as the short cut is for: all, or nothing where each access is to be checked.
    open: usize,
}

impl Segment {
    /// Memory of `bytes` zeroed bytes. Collective.
    pub fn heap(comm: &Communicator, bytes: usize, checks: bool) -> Result<Self> {
        Self::new(comm.allocate_with(bytes, &WindowOptions::unit(1))?, checks)
    }

    /// Memory of the program's. Collective.
    pub fn statics(comm: &Communicator, memory: RawBuffer) -> Result<Self> {
        Self::new(comm.create_raw(memory, &WindowOptions::unit(1))?, false)
    }

    fn new(window: Window<u8>, checks: bool) -> Result<Self> {
        // Nobody ever asks for an exclusive lock: there is nothing that a shared one would wait for.
        window.core.lock_all(Assert::NOCHECK, crate::epoch::By::Calls)?;
        let (base, len) = (window.local().address(), window.bytes());
        Ok(Self { window, base, len, open: if checks { 0 } else { len } })
    }

    /// Says how many threads use it, before the first does.
    pub fn promise_threads(&self, multiple: bool) {
        self.window.promise_threads(!multiple);
    }

    pub fn base(&self) -> usize {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn window(&self) -> &Window<u8> {
        &self.window
    }

    pub fn core(&self) -> &Core {
        &self.window.core
    }

    /// The displacement of an address, and the short cut, if the address is in what that is for.
    #[inline(always)]
    pub fn find(&self, address: usize) -> Option<(&ShortCut, usize)> {
        let at = address.wrapping_sub(self.base);
        (at < self.open).then_some((&self.window.core.shortcut, at))
    }

    /// The displacement of so many bytes from an address on, if all are inside.
    pub fn displacement(&self, address: usize, bytes: usize) -> Option<usize> {
        let at = address.checked_sub(self.base)?;
        (at <= self.len && bytes <= self.len - at).then_some(at)
    }

    /// The address of a displacement in the part of a PE, where this process loads and stores it.
    pub fn mapped(&self, displacement: usize, pe: usize) -> Option<usize> {
        if pe == self.core().rank() {
            return Some(self.base + displacement);
        }
        Some(self.window.shared(pe).ok()?.address() + displacement)
    }

    /// Completes everything, and frees the window. Collective.
    pub fn free(self) -> Result<()> {
        self.core().unlock_all(crate::epoch::By::Calls)?;
        self.window.free()
    }
}
