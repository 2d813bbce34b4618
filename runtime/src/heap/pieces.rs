//! Which parts of a heap are taken: lengths and offsets only, no memory.

use std::collections::BTreeMap;

/// The parts of `capacity` bytes.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Free pieces below `high`, by start, with their lengths. No two touch, and none ends at `high`.
    free: BTreeMap<usize, usize>,
    /// End of the last piece that is taken.
    high: usize,
    capacity: usize,
}

impl Pieces {
    pub fn new(capacity: usize) -> Self {
        Self { free: BTreeMap::new(), high: 0, capacity }
    }

    /// End of the last piece that is taken: from there on everything is free.
    pub fn high(&self) -> usize {
        self.high
    }

    /// The lowest place where `len` bytes are free.
    pub fn fit(&self, len: usize) -> Option<usize> {
        let hole = self.free.iter().find(|(_, free)| **free >= len).map(|(start, _)| *start);
        hole.or_else(|| (len <= self.capacity - self.high).then_some(self.high))
    }

    /// Takes `len` bytes from `start` on, if they are free.
    pub fn take(&mut self, start: usize, len: usize) -> bool {
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.capacity) else { return false };
        if start >= self.high {
            if start > self.high {
                self.free.insert(self.high, start - self.high);
            }
            self.high = end;
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

    /// Gives a piece back that was taken.
    pub fn give(&mut self, mut start: usize, len: usize) {
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
        if end == self.high {
            self.high = start;
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
    fn pieces_that_touch_become_one_again() {
        let mut pieces = Pieces::new(100);
        for start in [0, 10, 20, 30] {
            assert_eq!(pieces.fit(10), Some(start));
            assert!(pieces.take(start, 10));
        }
        pieces.give(0, 10);
        pieces.give(20, 10);
        assert_eq!((pieces.fit(10), pieces.fit(11)), (Some(0), Some(40)));
        pieces.give(10, 10);
        assert_eq!(pieces.fit(30), Some(0));
        pieces.give(30, 10);
        assert_eq!((pieces.high(), pieces.fit(100)), (0, Some(0)));
        assert!(pieces.free.is_empty());
    }

    #[test]
    fn a_place_behind_everything_leaves_a_hole() {
        let mut pieces = Pieces::new(100);
        assert!(pieces.take(40, 10) && !pieces.take(45, 10) && !pieces.take(39, 2));
        assert_eq!((pieces.fit(40), pieces.fit(41), pieces.fit(51)), (Some(0), Some(50), None));
        assert!(pieces.take(5, 10) && !pieces.take(95, 6) && !pieces.take(usize::MAX, 2));
        assert_eq!((pieces.fit(5), pieces.fit(6)), (Some(0), Some(15)));
    }

    const CAPACITY: usize = 64;

    proptest! {
        /// Against a bit for each byte.
        #[test]
        fn as_the_model_says(steps in proptest::collection::vec((any::<u8>(), 1..12usize, 0..80usize), 1..200)) {
            let mut pieces = Pieces::new(CAPACITY);
            let mut model = [false; CAPACITY];
            let mut taken: Vec<(usize, usize)> = Vec::new();
            for (what, len, at) in steps {
                let fit = (0..=CAPACITY - len).find(|s| !model[*s..s + len].contains(&true));
                prop_assert_eq!(pieces.fit(len), fit);
                let start = if what % 3 == 0 { Some(at) } else { fit };
                if what % 3 == 2 && !taken.is_empty() {
                    let (start, len) = taken.swap_remove(at % taken.len());
                    pieces.give(start, len);
                    model[start..start + len].fill(false);
                } else if let Some(start) = start {
                    let free = start + len <= CAPACITY && !model[start..start + len].contains(&true);
                    prop_assert_eq!(pieces.take(start, len), free);
                    if free {
                        model[start..start + len].fill(true);
                        taken.push((start, len));
                    }
                }
                let high = model.iter().rposition(|taken| *taken).map_or(0, |last| last + 1);
                prop_assert_eq!(pieces.high(), high);
            }
        }
    }
}
