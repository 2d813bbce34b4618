//! A thread's blocks come again, the last first, and no more are kept than may be.

use super::*;

fn size(bytes: usize) -> Option<Size> {
    Size::of(Layout::from_size_align(bytes, 8).unwrap())
}

#[test]
fn sizes_hold_what_is_asked_for() {
    for bytes in 1..=MOST {
        let layout = size(bytes).unwrap().layout();
        assert!(layout.size() >= bytes && layout.size() < bytes + STEP);
        assert!(Size::of(layout) == size(bytes));
    }
    assert!(size(0).is_none() && size(MOST + 1).is_none());
    assert!(Size::of(Layout::from_size_align(64, 32).unwrap()).is_none());
}

#[test]
fn the_last_that_was_freed_comes_first_and_the_rest_goes_with_its_thread() {
    let kept = |bytes| {
        let size = size(bytes).unwrap();
        // SAFETY: of the layout of its size.
        let blocks: Vec<_> = (0..KEPT + 9).map(|_| unsafe { System.alloc(size.layout()) }).collect();
        let kept = blocks.iter().filter(|block| keep(size, **block)).count();
        for block in &blocks[KEPT..] {
            // SAFETY: it was not kept.
            unsafe { System.dealloc(*block, size.layout()) };
        }
        assert_eq!(take(size), Some(blocks[KEPT - 1]));
        assert!(keep(size, blocks[KEPT - 1]));
        kept
    };
    std::thread::spawn(move || assert_eq!([1, 100, MOST].map(kept), [KEPT; 3])).join().unwrap();
}
