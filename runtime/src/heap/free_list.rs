//! The free list of a heap, first fit: lengths and offsets only, no memory.

use std::collections::BTreeMap;

/// The free blocks of `capacity` bytes.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// Free blocks below `high_water`, by start, with their lengths. No two touch, and none ends at `high_water`.
    free: BTreeMap<usize, usize>,
    /// The high-water mark: end of the last block in use.
    high_water: usize,
    capacity: usize,
}

impl FreeList {
    pub fn new(capacity: usize) -> Self {
        Self { free: BTreeMap::new(), high_water: 0, capacity }
    }

    /// The high-water mark: end of the last block in use.
    pub fn high_water(&self) -> usize {
        self.high_water
    }

    /// The lowest offset at which `len` bytes are free.
    pub fn first_fit(&self, len: usize) -> Option<usize> {
        let hole = self.free.iter().find(|(_, free)| **free >= len).map(|(start, _)| *start);
        hole.or_else(|| (len <= self.capacity - self.high_water).then_some(self.high_water))
    }

    /// Reserves `len` bytes from `start` on, if they are free.
    pub fn reserve(&mut self, start: usize, len: usize) -> bool {
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.capacity) else { return false };
        if start >= self.high_water {
            if start > self.high_water {
                self.free.insert(self.high_water, start - self.high_water);
            }
            self.high_water = end;
            return true;
        }
        let Some((&hole, &free)) = self.free.range(..=start).next_back() else { return false };
        if end > hole + free {
            return false;
        }
        self.free.remove(&hole);
        if start > hole {
            self.free.insert(hole, start - hole);
        }
        if hole + free > end {
            self.free.insert(end, hole + free - end);
        }
        true
    }

    /// Frees a block, and merges it with its neighbours.
    pub fn release(&mut self, mut start: usize, len: usize) {
        let mut end = start + len;
        if let Some((&before, &free)) = self.free.range(..start).next_back()
            && before + free == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(free) = self.free.remove(&end) {
            end += free;
        }
        if end == self.high_water {
            self.high_water = start;
        } else {
            self.free.insert(start, end - start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_that_touch_are_merged() {
        let mut free_list = FreeList::new(100);
        for start in [0, 10, 20, 30] {
            assert_eq!(free_list.first_fit(10), Some(start));
            assert!(free_list.reserve(start, 10));
        }
        free_list.release(0, 10);
        free_list.release(20, 10);
        assert_eq!((free_list.first_fit(10), free_list.first_fit(11)), (Some(0), Some(40)));
        free_list.release(10, 10);
        assert_eq!(free_list.first_fit(30), Some(0));
        free_list.release(30, 10);
        assert_eq!((free_list.high_water(), free_list.first_fit(100)), (0, Some(0)));
        assert!(free_list.free.is_empty());
    }

    #[test]
    fn a_place_behind_everything_leaves_a_hole() {
        let mut free_list = FreeList::new(100);
        assert!(free_list.reserve(40, 10) && !free_list.reserve(45, 10) && !free_list.reserve(39, 2));
        assert_eq!(
            (free_list.first_fit(40), free_list.first_fit(41), free_list.first_fit(51)),
            (Some(0), Some(50), None)
        );
        assert!(free_list.reserve(5, 10) && !free_list.reserve(95, 6) && !free_list.reserve(usize::MAX, 2));
        assert_eq!((free_list.first_fit(5), free_list.first_fit(6)), (Some(0), Some(15)));
    }

    const CAPACITY: usize = 64;

    proptest! {
        /// Against a bit for each byte.
        #[test]
        fn as_the_model_says(steps in proptest::collection::vec((any::<u8>(), 1..12usize, 0..80usize), 1..200)) {
            let mut free_list = FreeList::new(CAPACITY);
            let mut model = [false; CAPACITY];
            let mut taken: Vec<(usize, usize)> = Vec::new();
            for (what, len, at) in steps {
                let fit = (0..=CAPACITY - len).find(|s| !model[*s..s + len].contains(&true));
                prop_assert_eq!(free_list.first_fit(len), fit);
                let start = if what % 3 == 0 { Some(at) } else { fit };
                if what % 3 == 2 && !taken.is_empty() {
                    let (start, len) = taken.swap_remove(at % taken.len());
                    free_list.release(start, len);
                    model[start..start + len].fill(false);
                } else if let Some(start) = start {
                    let free = start + len <= CAPACITY && !model[start..start + len].contains(&true);
                    prop_assert_eq!(free_list.reserve(start, len), free);
                    if free {
                        model[start..start + len].fill(true);
                        taken.push((start, len));
                    }
                }
                let high_water = model.iter().rposition(|taken| *taken).map_or(0, |last| last + 1);
                prop_assert_eq!(free_list.high_water(), high_water);
            }
        }
    }
}
