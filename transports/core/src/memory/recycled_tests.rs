//! Blocks are given out again, whatever was in them, and no more are kept than may be.

use super::*;

const SIZES: [usize; 13] =
    [1, 16, 17, 512, 513, LEAST, LEAST + 1, 40 << 10, 41 << 10, 1 << 20, (1 << 20) + 1, MOST, MOST + 1];

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

#[test]
fn classes_hold_what_is_asked_for() {
    let mut seen = std::collections::BTreeMap::new();
    for size in (LEAST + 1..=MOST).step_by(509).chain(SIZES) {
        let Some(class) = Class::of(layout(size)) else {
            assert!(size <= LEAST || size > MOST);
            continue;
        };
        assert!(class.bytes >= size && class.bytes <= size + size / 3 && class.index < CLASSES);
        assert_eq!(*seen.entry(class.index).or_insert(class.bytes), class.bytes);
        assert_eq!(Class::of(class.layout()).map(|class| class.bytes), Some(class.bytes));
    }
    assert_eq!(seen.len(), CLASSES);
    assert!(Class::of(Layout::from_size_align(1 << 20, 64).unwrap()).is_none());
}

#[test]
fn blocks_come_again_and_are_zero_if_asked() {
    let all = Recycled::new();
    let big = layout(1 << 20);
    // SAFETY: each block is freed once, by the layout that it has.
    unsafe {
        let first = all.alloc(big);
        write_bytes(first, 7, big.size());
        all.dealloc(first, big);
        let again = all.alloc_zeroed(layout((1 << 20) - 9));
        assert_eq!(again, first);
        assert!((0..(1 << 20) - 9).all(|at| *again.add(at) == 0));
        all.dealloc(again, layout((1 << 20) - 9));
        assert_eq!(all.0.lock().unwrap().bytes, 1 << 20);
    }
}

/// Whatever sizes follow one another, what was written stays.
#[test]
fn contents_survive_a_change_of_size() {
    let all = Recycled::new();
    for from in SIZES {
        for to in SIZES {
            // SAFETY: as above.
            unsafe {
                let block = all.alloc(layout(from));
                write_bytes(block, 5, from);
                let block = all.realloc(block, layout(from), to);
                assert!((0..from.min(to)).all(|at| *block.add(at) == 5), "{from} {to}");
                all.dealloc(block, layout(to));
            }
        }
    }
}

#[test]
fn no_more_is_kept_than_the_bound() {
    let all = Recycled::new();
    // SAFETY: as above.
    unsafe {
        let blocks: Vec<_> = (0..6).map(|_| all.alloc(layout(MOST))).collect();
        blocks.into_iter().for_each(|block| all.dealloc(block, layout(MOST)));
        assert_eq!(all.0.lock().unwrap().bytes, KEPT);
        let small: Vec<_> = (0..6).map(|_| all.alloc(layout(LEAST + 1))).collect();
        small.into_iter().for_each(|block| all.dealloc(block, layout(LEAST + 1)));
        let mut blocks = all.0.lock().unwrap();
        assert_eq!(blocks.bytes, KEPT);
        for _ in 0..KEPT / MOST {
            let class = Class::of(layout(MOST)).unwrap();
            System.dealloc(blocks.take(class).unwrap(), class.layout());
        }
    }
}

/// Of a lock that is taken, as in the child of a fork, nobody waits for the end.
#[test]
fn a_lock_that_is_taken_stops_nobody() {
    let all = Recycled::new();
    let taken = all.0.lock().unwrap();
    // SAFETY: as above.
    unsafe { all.dealloc(all.alloc(layout(1 << 20)), layout(1 << 20)) };
    assert_eq!(taken.bytes, 0);
}
