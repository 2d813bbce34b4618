//! Symmetric memory: a window, and how addresses of it become displacements.

use transom_transport::memory::Parts;
use transom_transport::{Basic, ReduceOp, Swappable};

use crate::memory::RawBuffer;
use crate::window::{Core, Domain};
use crate::{Assert, Communicator, Result, Window, WindowOptions};

/// As many as there can be.
pub(super) const SEGMENTS: usize = 2;

/// Memory that every PE has one of: the symmetric heap, or static data of the program.
///
/// An object's address at this PE, less where the memory begins here, is its displacement at every PE, wherever it lies there.
#[derive(Debug)]
pub(super) struct Segment {
    window: Window<u8>,
    base: usize,
    len: usize,
    /// The parts that this process maps, as far as they have been accessed: in an epoch that never ends, so that all may be accessed
    /// again.
    parts: Parts,
    /// Its place among the segments.
    slot: usize,
    /// Several threads make calls at once.
    multiple: bool,
    /// Whether each access is to be checked.
    checks: bool,
    /// Whether elements may be updated by the CPU at once: nobody updates them by locks, since nobody makes accumulates of several.
    atomics: bool,
}

impl Segment {
    /// Memory of `bytes` zeroed bytes. Collective.
    pub fn heap(comm: &Communicator, bytes: usize, multiple: bool, checks: bool) -> Result<Self> {
        Self::new(comm.allocate_with(bytes, &WindowOptions::unit(1))?, 0, multiple, checks)
    }

    /// Memory of the program's. Collective.
    pub fn statics(comm: &Communicator, memory: RawBuffer, multiple: bool) -> Result<Self> {
        Self::new(comm.create_raw(memory, &WindowOptions::unit(1))?, 1, multiple, false)
    }

    fn new(window: Window<u8>, slot: usize, multiple: bool, checks: bool) -> Result<Self> {
        window.promise_threads(!multiple);
        // Nobody ever asks for an exclusive lock: there is nothing that a shared one would wait for.
        window.core.lock_all(Assert::NOCHECK, crate::epoch::By::Calls)?;
        let (base, len) = (window.local().address(), window.bytes());
        let atomics = window.core.domain == Domain::Cpu && !window.core.private;
        let parts = Parts::new(window.communicator().size(), len);
        Ok(Self { window, base, len, parts, slot, multiple, checks, atomics })
    }

    /// Its place among the segments.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Whether several threads make calls at once.
    pub fn is_multiple(&self) -> bool {
        self.multiple
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

    /// Copies to an address's place in the part of a PE. False, and nothing is done, if that is not mapped; likewise below.
    #[inline(always)]
    pub fn put_now(&self, address: usize, data: RawBuffer, pe: usize) -> bool {
        data.put_to_part(&self.parts, pe, address.wrapping_sub(self.base))
    }

    /// Copies from there.
    #[inline(always)]
    pub fn get_now(&self, address: usize, data: RawBuffer, pe: usize) -> bool {
        data.get_from_part(&self.parts, pe, address.wrapping_sub(self.base))
    }

    /// Updates an element there; returns what was there.
    #[inline(always)]
    pub fn update_now<T: Basic>(&self, address: usize, op: ReduceOp, operand: T, pe: usize) -> Option<T> {
        if !self.atomics {
            return None;
        }
        self.parts.update_one(pe, address.wrapping_sub(self.base), op, operand)
    }

    /// Compares and swaps an element there; returns what was there.
    #[inline(always)]
    pub fn swap_now<T: Swappable>(&self, address: usize, values: (T, T), pe: usize) -> Option<T> {
        if !self.atomics {
            return None;
        }
        self.parts.compare_swap_one(pe, address.wrapping_sub(self.base), values)
    }

    /// A PE has been accessed: if its part is mapped, it is found from now on.
    pub fn remember(&self, core: &Core, pe: usize) {
        if self.checks || !self.parts.lacks(pe) {
            return;
        }
        let peer = core.peers.made(pe);
        if let Some(memory) = peer.and_then(|peer| peer.remote.get()?.direct.clone()) {
            self.parts.fill(pe, memory);
        }
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
