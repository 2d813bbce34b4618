//! Which blocks of the symmetric heap are in use: offsets and lengths only. Every PE keeps its own account; since all make the same calls
//! in the same order, all accounts are the same.

use std::collections::BTreeMap;

use crate::heap::FreeList;

/// Blocks begin and end at multiples of this: a cache line, so that no two share one.
const GRAIN: usize = 64;

/// The blocks of a heap.
#[derive(Debug)]
pub(super) struct Blocks {
    free: FreeList,
    /// Offset of each block, what was asked for, and the bytes that it takes.
    used: BTreeMap<usize, (usize, usize)>,
}

impl Blocks {
    pub fn new(capacity: usize) -> Self {
        Self { free: FreeList::new(capacity), used: BTreeMap::new() }
    }

    /// A block of `bytes` bytes, more than none, at a multiple of `alignment`, a power of two, from `origin` on: where the heap
    /// begins, as far as that matters. `None` if there is no room.
    pub fn allocate(&mut self, bytes: usize, alignment: usize, origin: usize) -> Option<usize> {
        let taken = bytes.checked_next_multiple_of(GRAIN)?;
        let alignment = alignment.max(GRAIN);
        // Where the worst hole has the place.
        let longest = if origin.is_multiple_of(GRAIN) && alignment == GRAIN {
            taken
        } else {
            taken.checked_add(alignment - GRAIN)?
        };
        let start = self.free.first_fit(longest)?;
        let start = (origin + start).checked_next_multiple_of(alignment)? - origin;
        self.free.reserve(start, taken).then(|| {
            self.used.insert(start, (bytes, taken));
            start
        })
    }

    /// Frees the block at an offset. False if there is none.
    pub fn release(&mut self, start: usize) -> bool {
        match self.used.remove(&start) {
            Some((_, taken)) => {
                self.free.release(start, taken);
                true
            }
            None => false,
        }
    }

    /// Bytes asked for of the block at an offset.
    pub fn bytes(&self, start: usize) -> Option<usize> {
        self.used.get(&start).map(|(bytes, _)| *bytes)
    }

    /// Whether a range lies in one block.
    pub fn holds(&self, start: usize, bytes: usize) -> bool {
        let block = self.used.range(..=start).next_back();
        block.is_some_and(|(at, (len, _))| start - at <= *len && bytes <= len - (start - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_aligned_and_do_not_meet() {
        let mut blocks = Blocks::new(1 << 16);
        let first = blocks.allocate(1, 1, 0).unwrap();
        let second = blocks.allocate(100, 4096, 0).unwrap();
        let third = blocks.allocate(65, 8, 0).unwrap();
        assert_eq!((first, second, third), (0, 4096, 64));
        assert_eq!((blocks.bytes(second), blocks.bytes(65)), (Some(100), None));
        assert!(blocks.holds(4100, 96) && !blocks.holds(4100, 97) && !blocks.holds(40, 40));
        assert!(blocks.release(second) && !blocks.release(second));
        assert_eq!(blocks.allocate(1 << 16, 64, 0), None);
        assert_eq!(blocks.allocate(usize::MAX, 64, 0), None);
        assert!(blocks.release(first) && blocks.release(third));
        assert_eq!(blocks.allocate(1 << 16, 64, 0), Some(0));
    }

    #[test]
    fn alignment_counts_from_where_the_heap_begins() {
        let mut blocks = Blocks::new(1 << 16);
        let start = blocks.allocate(64, 1 << 14, 0x7000).unwrap();
        assert!((0x7000 + start).is_multiple_of(1 << 14));
    }

    proptest! {
        #[test]
        fn what_is_used_is_used_once(steps in proptest::collection::vec((1..4000usize, 0..12u32, any::<bool>()), 1..200)) {
            let mut blocks = Blocks::new(1 << 17);
            let mut live: Vec<(usize, usize)> = Vec::new();
            for (bytes, alignment, frees) in steps {
                if frees && !live.is_empty() {
                    let (start, _) = live.swap_remove(bytes % live.len());
                    prop_assert!(blocks.release(start));
                } else if let Some(start) = blocks.allocate(bytes, 1 << alignment, 0) {
                    prop_assert!(start.is_multiple_of(1 << alignment) && start + bytes <= 1 << 17);
                    prop_assert!(live.iter().all(|(at, len)| start + bytes <= *at || at + len <= start));
                    live.push((start, bytes));
                }
            }
            for (start, _) in live {
                prop_assert!(blocks.release(start));
            }
            prop_assert_eq!(blocks.allocate(1 << 17, 1, 0), Some(0));
        }
    }
}
