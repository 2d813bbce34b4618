//! An allocator that keeps blocks for the next time. Large ones the C library gives back to the kernel, and to have each page anew takes
//! longer than a copy of the data; of small ones it keeps few without a lock ([`small_blocks`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{null_mut, write_bytes};
use std::sync::Mutex;

use super::small_blocks::{self, Size};

/// Blocks of more bytes are kept, since a few of them are what the C library gives back; and those of no more than the second.
const LEAST: usize = 32 << 10;
const MOST: usize = 32 << 20;
/// Bytes that are kept at most.
const KEPT: usize = 64 << 20;
/// Sizes between a power of two and the next; a block may be longer by one part of so many than was asked for.
const STEPS: usize = 4;
const CLASSES: usize = STEPS * (MOST.ilog2() - LEAST.ilog2()) as usize;
/// Blocks of one size.
const SLOTS: usize = 8;
/// What the C library gives without being asked.
pub(super) const ALIGNMENT: usize = 16;

/// [`System`], but that large blocks which are freed are kept for the next of their size, at most 64 MiB, and some small ones by each
/// thread.
///
/// For `#[global_allocator]`.
#[derive(Debug)]
pub struct Recycled(Mutex<Blocks>);

#[derive(Debug)]
struct Blocks {
    bytes: usize,
    slots: [[*mut u8; SLOTS]; CLASSES],
}

// SAFETY: the addresses are those of free blocks, which nobody else has.
unsafe impl Send for Blocks {}

impl Blocks {
    fn take(&mut self, class: Class) -> Option<*mut u8> {
        let slot = self.slots[class.index].iter_mut().find(|slot| !slot.is_null())?;
        self.bytes -= class.bytes;
        Some(std::mem::replace(slot, null_mut()))
    }

    fn keep(&mut self, class: Class, block: *mut u8) -> bool {
        let empty = self.slots[class.index].iter_mut().find(|slot| slot.is_null());
        let Some(slot) = empty.filter(|_| self.bytes + class.bytes <= KEPT) else { return false };
        *slot = block;
        self.bytes += class.bytes;
        true
    }
}

/// Blocks that can stand for one another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Class {
    index: usize,
    /// Of each block.
    bytes: usize,
}

impl Class {
    #[inline]
    fn of(layout: Layout) -> Option<Self> {
        let size = layout.size();
        if size <= LEAST || size > MOST || layout.align() > ALIGNMENT {
            return None;
        }
        let power = 1 << (size - 1).ilog2();
        let steps = (size - power).div_ceil(power / STEPS);
        let index = STEPS * (power / LEAST).ilog2() as usize + steps - 1;
        Some(Self { index, bytes: power + steps * (power / STEPS) })
    }

    fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and no class has more than MOST bytes.
        unsafe { Layout::from_size_align_unchecked(self.bytes, ALIGNMENT) }
    }
}

impl Default for Recycled {
    fn default() -> Self {
        Self::new()
    }
}

impl Recycled {
    /// One that keeps nothing yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Blocks { bytes: 0, slots: [[null_mut(); SLOTS]; CLASSES] }))
    }

    /// A block that was kept. Nobody waits: the child of a fork may find the lock taken for ever.
    fn kept(&self, class: Class) -> Option<*mut u8> {
        self.0.try_lock().ok()?.take(class)
    }
}

/// Whose block it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small(Size),
    Large(Class),
    System,
}

impl Kind {
    #[inline(always)]
    fn of(layout: Layout) -> Self {
        match Size::of(layout) {
            Some(size) => Self::Small(size),
            None => Class::of(layout).map_or(Self::System, Self::Large),
        }
    }
}

// SAFETY: blocks are System's, of a layout that follows from the one asked for alone; each is with the caller, in one slot, which
// is emptied when it is given out, or in one thread's list. It does not unwind, and calls no allocator but System.
unsafe impl GlobalAlloc for Recycled {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract, or a layout of more than 0 bytes.
        unsafe {
            match Kind::of(layout) {
                Kind::Small(size) => small_blocks::take(size).unwrap_or_else(|| System.alloc(size.layout())),
                Kind::Large(class) => self.kept(class).unwrap_or_else(|| System.alloc(class.layout())),
                Kind::System => System.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (kept, whole) = match Kind::of(layout) {
            Kind::Small(size) => (small_blocks::take(size), size.layout()),
            Kind::Large(class) => (self.kept(class), class.layout()),
            Kind::System => (None, layout),
        };
        // SAFETY: as in `alloc`; a block that was kept has at least as many bytes as the layout.
        unsafe {
            match kept {
                None => System.alloc_zeroed(whole),
                Some(block) => {
                    write_bytes(block, 0, layout.size());
                    block
                }
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (kept, whole) = match Kind::of(layout) {
            Kind::Small(size) => (small_blocks::keep(size, block), size.layout()),
            Kind::Large(class) => {
                (self.0.try_lock().is_ok_and(|mut blocks| blocks.keep(class, block)), class.layout())
            }
            Kind::System => (false, layout),
        };
        if !kept {
            // SAFETY: the block was allocated with this layout, so it has that of its kind.
            unsafe { System.dealloc(block, whole) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new layout is one.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the block has the layout of its kind; where old and new sizes are of different kinds it is copied.
        unsafe {
            match (Kind::of(layout), Kind::of(wanted)) {
                (Kind::System, Kind::System) => System.realloc(block, layout, size),
                (old, new) if old == new => block,
                (Kind::Large(old), Kind::Large(new)) => System.realloc(block, old.layout(), new.bytes),
                _ => {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        block.copy_to_nonoverlapping(moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "recycled_tests.rs"]
mod tests;
