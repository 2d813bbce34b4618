//! The work requests of a link, in their order.

use crate::work::Work;

/// A ring of work requests: as a queue of the standard library, but that one is written where it will be.
#[derive(Debug)]
pub(crate) struct Works {
    /// A power of two of places.
    ring: Box<[Work]>,
    head: usize,
    len: usize,
}

/// Places of a new one.
const FIRST: usize = 4;

impl Default for Works {
    fn default() -> Self {
        Self { ring: [Work::NOTHING; FIRST].into(), head: 0, len: 0 }
    }
}

impl Works {
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        self.head.wrapping_add(index) & (self.ring.len() - 1)
    }

    /// Appends one.
    #[inline(always)]
    pub fn push(&mut self, work: Work) {
        if self.len == self.ring.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.ring[place] = work;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Work::NOTHING; 2 * self.ring.len()];
        ring.iter_mut().zip(self.iter()).for_each(|(to, work)| *to = *work);
        (self.ring, self.head) = (ring.into(), 0);
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&Work> {
        (index < self.len).then(|| &self.ring[self.place(index)])
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Work> {
        let place = self.place(index);
        (index < self.len).then(|| &mut self.ring[place])
    }

    /// Takes the first away.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Work> {
        let work = *self.get(0)?;
        self.drop_first();
        Some(work)
    }

    /// Drops the first, which is there.
    #[inline(always)]
    pub fn drop_first(&mut self) {
        self.head = self.place(1);
        self.len = self.len.saturating_sub(1);
    }

    /// All, from the first.
    pub fn iter(&self) -> impl Iterator<Item = &Work> {
        self.from(0)
    }

    /// All from that one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &Work> {
        (first..self.len).map(|index| &self.ring[self.place(index)])
    }

    /// Puts one before the one of that number, or last.
    pub fn insert(&mut self, index: usize, work: Work) {
        self.push(work);
        for last in (index + 1..self.len).rev() {
            let (this, before) = (self.place(last), self.place(last - 1));
            self.ring.swap(this, before);
        }
    }

    /// Takes all away.
    pub fn take(&mut self) -> Vec<Work> {
        let all = self.iter().copied().collect();
        self.len = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Then;

    fn work(number: u64) -> Work {
        Work { then: Then::Report(number), ..Work::NOTHING }
    }

    fn numbers(works: &Works) -> Vec<u64> {
        works.iter().filter_map(Work::context).collect()
    }

    #[test]
    fn the_order_is_kept_across_the_end_of_the_ring() {
        let (mut works, mut wanted) = (Works::default(), std::collections::VecDeque::new());
        for number in 0..100 {
            works.push(work(number));
            wanted.push_back(number);
            if number % 3 != 0 {
                assert_eq!(works.pop().and_then(|work| work.context()), wanted.pop_front());
            }
            assert!(numbers(&works).iter().eq(&wanted), "{works:?}");
        }
        works.insert(2, work(777));
        wanted.insert(2, 777);
        works.insert(wanted.len(), work(888));
        wanted.push_back(888);
        assert!(numbers(&works).iter().eq(&wanted), "{works:?}");
        assert_eq!(works.get(2).and_then(Work::context), Some(777));
        assert!(works.get(wanted.len()).is_none() && works.get_mut(wanted.len()).is_none());
        assert_eq!((works.take().len(), works.len()), (wanted.len(), 0));
        assert!(works.pop().is_none());
    }
}
