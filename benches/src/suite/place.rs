//! The same place on the stack in every process.
//!
//! Where the stack begins is chance. A load soon after a store whose address ends in the same 12 bits waits for it (4K aliasing), so that
//! some operations of a few nanoseconds would be faster in one process than in the next, for all of its life.

use std::hint::black_box;

/// What the same bits are of.
const PAGE: usize = 4096;
/// Where measuring begins in a page: far from the beginnings of windows.
const PLACE: usize = 2048;
/// Addresses of a stack's frames are multiples of it.
const ALIGNMENT: usize = 16;
/// Steps of two lengths, by turns, come by all places if their frames differ by an odd number of alignments.
const STEPS: usize = 2 * PAGE / ALIGNMENT;

/// Calls `body` as far down the stack as it takes to be at the place.
pub fn in_place<R>(body: &mut dyn FnMut() -> R) -> R {
    // It is the compiler's choice what else is in a frame: one of these differs so.
    let found = further::<R, 80, 88>(STEPS, body).or_else(|| further::<R, 80, 96>(STEPS, body));
    found.unwrap_or_else(body)
}

/// None if the place is not met. In each other both would have the same frame.
#[inline(never)]
fn further<R, const STEP: usize, const OTHER: usize>(left: usize, body: &mut dyn FnMut() -> R) -> Option<R> {
    let step = black_box([0_u8; STEP]);
    let at = std::ptr::from_ref(&step).addr() % PAGE / ALIGNMENT * ALIGNMENT;
    // Only after steps of one length, so that what is called stands equally far from it.
    let result = match (STEP < OTHER && at == PLACE, left) {
        (true, _) => Some(body()),
        (false, 0) => None,
        _ => further::<R, OTHER, STEP>(left - 1, body),
    };
    black_box(&step);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn place() -> usize {
        let own = black_box([0_u8; 16]);
        std::ptr::from_ref(&own).addr() % PAGE
    }

    fn from_depth(depth: usize) -> usize {
        let pad = black_box([0_u8; 48]);
        let found = if depth == 0 { in_place(&mut place) } else { from_depth(depth - 1) };
        black_box(&pad);
        found
    }

    #[test]
    fn from_everywhere_to_the_same_place() {
        let places: Vec<usize> = (0..40).map(from_depth).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    }
}
