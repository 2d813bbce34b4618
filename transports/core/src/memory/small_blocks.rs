//! Small free blocks that a thread keeps for itself: more of each size than the C library does, for a program that has many messages
//! under way has as many blocks of one size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use super::recycled::ALIGNMENT;

/// Bytes of the largest, and between one size and the next.
const MOST: usize = 512;
const STEP: usize = ALIGNMENT;
const SIZES: usize = MOST / STEP;
/// Of each size.
const KEPT: usize = 64;

/// Blocks of one size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    #[inline(always)]
    pub fn of(layout: Layout) -> Option<Self> {
        let index = layout.size().wrapping_sub(1) / STEP;
        (index < SIZES && layout.align() <= ALIGNMENT).then_some(Self(index))
    }

    #[inline(always)]
    pub fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and no size is more than MOST.
        unsafe { Layout::from_size_align_unchecked((self.0 + 1) * STEP, ALIGNMENT) }
    }
}

/// Free blocks of one size, each of which has the address of the next.
#[derive(Clone, Copy)]
struct List {
    first: *mut *mut u8,
    len: usize,
}

struct Lists([Cell<List>; SIZES]);

thread_local! {
    static LISTS: Lists = const { Lists([const { Cell::new(List { first: null_mut(), len: 0 }) }; SIZES]) };
}

impl Drop for Lists {
    fn drop(&mut self) {
        for index in 0..SIZES {
            while let Some(block) = self.take(Size(index)) {
                // SAFETY: a block of this layout, and nobody else's.
                unsafe { System.dealloc(block, Size(index).layout()) };
            }
        }
    }
}

impl Lists {
    #[inline(always)]
    fn take(&self, size: Size) -> Option<*mut u8> {
        let list = self.0[size.0].get();
        if list.first.is_null() {
            return None;
        }
        // SAFETY: a free block of the list's, in which `keep` has stored the next.
        let next = unsafe { *list.first };
        self.0[size.0].set(List { first: next.cast(), len: list.len - 1 });
        Some(list.first.cast())
    }

    #[inline(always)]
    fn keep(&self, size: Size, block: *mut u8) -> bool {
        let list = self.0[size.0].get();
        if list.len == KEPT {
            return false;
        }
        let first: *mut *mut u8 = block.cast();
        // SAFETY: a free block that nobody else has, of no less than an address, and aligned for that.
        unsafe { *first = list.first.cast() };
        self.0[size.0].set(List { first, len: list.len + 1 });
        true
    }
}

/// A block that was kept. None for a thread that ends.
#[inline(always)]
pub(super) fn take(size: Size) -> Option<*mut u8> {
    LISTS.try_with(|lists| lists.take(size)).ok().flatten()
}

/// Keeps a block that was allocated by the layout of its size, and is free; false if there are enough.
#[inline(always)]
pub(super) fn keep(size: Size, block: *mut u8) -> bool {
    LISTS.try_with(|lists| lists.keep(size, block)).unwrap_or(false)
}

#[cfg(test)]
#[path = "small_blocks_tests.rs"]
mod tests;
