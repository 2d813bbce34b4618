//! The stack of the first thread, which the kernel has grow at its lowest mapping.

use std::ops::Range;

use super::maps::{Kind, Mapping};
use super::ranges::meet;

/// Stack that is to be there below a page that stops growing.
const BELOW: usize = 1 << 18;

/// The addresses of the first thread's stack, which is one mapping behind the other, and grows at the lowest.
pub fn stack(found: &[Mapping]) -> Option<Range<usize>> {
    let top = found.iter().position(|mapping| mapping.kind == Kind::Stack)?;
    let end = found[top].pages.end;
    let lower = found[..top].iter().rev();
    let start = lower.fold(found[top].pages.start, |start, mapping| {
        if mapping.pages.end == start { mapping.pages.start } else { start }
    });
    Some(start..end)
}

/// The lowest mapping of a stack must not be replaced. Has the calling thread's stack grow, if there is little else; returns whether it
/// did.
pub fn grow_stack(found: &[Mapping], pages: &Range<usize>) -> bool {
    let here = std::hint::black_box(0u8);
    let at = std::ptr::from_ref(&here) as usize;
    let near = |stack: &Range<usize>| {
        stack.contains(&at) && meet(stack, pages).is_some_and(|part| part.start - stack.start < BELOW)
    };
    stack(found).is_some_and(|stack| near(&stack)) && touch_below() == 0
}

/// Has the stack grow by twice what is asked for.
#[inline(never)]
fn touch_below() -> u8 {
    let frame = std::hint::black_box([0u8; 2 * BELOW]);
    std::hint::black_box(&frame).iter().copied().fold(0, u8::wrapping_add)
}
