//! A table that is looked up by the low bits of a number, without a comparison. It is small before it is used.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A power of two of entries: two at first, all of them once it has grown.
#[derive(Debug)]
pub struct BitTable<T> {
    /// The entries of `first` or of `all`.
    entries: AtomicPtr<T>,
    /// One less than there are. Stored after `entries`, and loaded before.
    mask: AtomicUsize,
    first: Box<[T]>,
    all: OnceLock<Box<[T]>>,
    make: fn(usize) -> T,
}

const FIRST: usize = 2;

impl<T> BitTable<T> {
    /// Entries that `make` makes, each from its index.
    pub fn new(make: fn(usize) -> T) -> Self {
        let first: Box<[T]> = (0..FIRST).map(make).collect();
        let entries = AtomicPtr::new(first.as_ptr().cast_mut());
        Self { entries, mask: AtomicUsize::new(FIRST - 1), first, all: OnceLock::new(), make }
    }

    /// Has at least so many entries from now on, all of them new if there are more than two; later calls have no effect.
    pub fn grow(&self, entries: usize) {
        if entries <= self.first.len() {
            return;
        }
        let all = self.all.get_or_init(|| (0..entries.next_power_of_two()).map(self.make).collect());
        self.entries.store(all.as_ptr().cast_mut(), Ordering::Release);
        self.mask.store(all.len() - 1, Ordering::Release);
    }

    /// The entry of a number.
    #[inline(always)]
    pub fn at(&self, number: usize) -> &T {
        let mask = self.mask.load(Ordering::Acquire);
        let entries = self.entries.load(Ordering::Acquire);
        // SAFETY: `mask` is one less than a power of two that is no more than the length of the entries, which are stored before it
        // and loaded after it; both boxes live, unchanged, as long as `self`.
        unsafe { &*entries.add(number & mask) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_lead_to_entries() {
        for (wanted, len) in [(0, 2), (1, 2), (2, 2), (3, 4), (64, 64), (65, 128)] {
            let table = BitTable::new(|index| index);
            assert_eq!([0, 1, 2, usize::MAX].map(|number| *table.at(number)), [0, 1, 0, 1]);
            table.grow(wanted);
            table.grow(1000);
            let len = if wanted <= 2 { 1024 } else { len };
            for number in [0, 1, 7, 63, 64, 1000, usize::MAX] {
                assert_eq!(*table.at(number), number % len);
            }
        }
    }

    #[test]
    fn it_may_grow_while_others_look() {
        let table = BitTable::new(|index| index);
        std::thread::scope(|scope| {
            for number in 0..3usize {
                let table = &table;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let entry = *table.at(number);
                        assert!(entry == number % 2 || entry == number % 64);
                    }
                    table.grow(64);
                    assert_eq!(*table.at(number), number);
                });
            }
        });
    }
}
