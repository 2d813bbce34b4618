//! Memory that several ranks read and write at once, as a bounds-checked span of bytes.
//!
//! This is the one place where such memory is touched by the CPU. It hands out no slice: elements go in and out by copy or
//! by CPU atomic, so that no Rust reference ever covers bytes that another rank may change.
//!
//! Copies of 1, 2, 4 and 8 aligned bytes are single stores or loads. Longer copies are `memmove`; two of them
//! that overlap in time on the same bytes leave any mixture of the two, as MPI-4.1 §12.7 allows.

mod copy;
mod dump;
mod file_part;
mod huge;
mod mapped;
mod parts;
mod recycled;
mod reduce;
mod sections;
mod small_blocks;
mod span;
mod sparse;
mod stores;
mod stream;
mod stripes;
mod sub_word;
#[cfg(test)]
mod tests;
mod update;
mod updates;
mod word_array;

#[cfg(not(target_arch = "x86_64"))]
use std::sync::atomic::Ordering;

pub use file_part::FilePart;
pub use huge::HUGE_PAGE;
pub use mapped::{Mapped, Memory};
pub use parts::{Parts, Place};
pub use recycled::Recycled;
pub use reduce::reduce_into;
pub use sections::Sections;
pub use span::{Owner, Span};
pub use sparse::Sparse;
pub use stores::{Choice, Stores};
pub use stripes::Stripes;
pub use updates::{Reduction, Updates};
pub use word_array::Words;

/// Orders every earlier store of this thread before every later load.
///
/// One locked instruction on the stack: a third of an `mfence` on x86 (which is what `fence(SeqCst)` compiles
/// to), with the same effect on write-back memory (Intel SDM vol. 3, §9.2.2; AMD APM vol. 2, §7.1).
#[inline]
pub fn store_load_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: or-ing 0 into the red zone word below the stack pointer changes nothing and touches only this
    // thread's stack (System V ABI, AMD64 supplement §3.2.2).
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp - 8], 0", options(nostack))
    };
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}
