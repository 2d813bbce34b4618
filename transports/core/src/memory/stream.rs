//! Copies that the caches have no room for: by stores that go past them (non-temporal), so that the lines which are written
//! are not read first.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

/// Copies of fewer bytes are not looked at: their caller may want them in the cache.
pub(super) const LONG: usize = 16 << 10;

/// What a thread has copied to one place after the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Where the last copy ended.
    end: usize,
    bytes: usize,
}

thread_local! {
    static RUN: Cell<Run> = const { Cell::new(Run { end: 0, bytes: 0 }) };
}

/// Copies `len` bytes, [`LONG`] or more, which may overlap. Past the caches if this copy, or the copies to the memory before
/// it that this thread has just made and this one together, are more than the core's own cache holds.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[cold]
#[inline(never)]
pub(super) unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    let apart = (from as usize).abs_diff(to as usize) >= len;
    // SAFETY: the same contract; past the caches only what does not overlap.
    unsafe {
        if apart && run(to as usize, len) >= own_cache() {
            past_caches(from, to, len);
        } else {
            ptr::copy(from, to, len);
        }
    }
}

/// Bytes that this thread has copied to `to` and the memory before it, this copy included.
fn run(to: usize, len: usize) -> usize {
    let count = |run: &Cell<Run>| {
        let before = run.get();
        let bytes = if before.end == to { before.bytes.saturating_add(len) } else { len };
        run.set(Run { end: to.wrapping_add(len), bytes });
        bytes
    };
    RUN.try_with(count).unwrap_or(len)
}

/// Bytes of the cache that a core has for itself (the second level).
fn own_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        const USUAL: usize = 1 << 20;
        let found = second_level().filter(|bytes| *bytes > 0).unwrap_or(USUAL);
        found.clamp(256 << 10, 16 << 20)
    })
}

/// As the CPU says it: leaf 8000_0006h, in KiB (Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E).
#[cfg(target_arch = "x86_64")]
fn second_level() -> Option<usize> {
    use std::arch::x86_64::__cpuid;
    const LEAF: u32 = 0x8000_0006;
    (__cpuid(0x8000_0000).eax >= LEAF).then(|| (__cpuid(LEAF).ecx >> 16) as usize * 1024)
}

#[cfg(not(target_arch = "x86_64"))]
fn second_level() -> Option<usize> {
    None
}

/// # Safety
/// As [`copy_long`], and they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn past_caches(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the same contract. The system's copy chooses for itself.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
}

/// # Safety
/// As [`copy_long`], and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn past_caches(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::_mm_sfence;
    const LINE: usize = 64;
    const PAGE: usize = 4096;
    let head = to.align_offset(LINE).min(len);
    let pairs = (len - head) / (2 * PAGE);
    let tail = head + pairs * 2 * PAGE;
    // SAFETY: all offsets are below `len`; `to + head` is aligned to a line. The fence orders these stores before all later
    // ones, as others are (Intel SDM vol. 1, §10.4.6.2), so that a flag that is stored next is seen after them.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        for pair in 0..pairs {
            // Two pages by turns: more of the memory's banks and of the prefetcher's streams are at work.
            let start = head + pair * 2 * PAGE;
            for line in (start..start + PAGE).step_by(LINE) {
                stream_line(from.add(line), to.add(line));
                stream_line(from.add(line + PAGE), to.add(line + PAGE));
            }
        }
        ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        _mm_sfence();
    }
}

/// # Safety
/// `from` is valid for reads and `to` for writes of 64 bytes, and `to` is aligned to 16.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn stream_line(from: *const u8, to: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
    // SAFETY: four vectors of 16 bytes, by contract; SSE2 is part of the architecture.
    unsafe {
        let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
        for (i, vector) in line.into_iter().enumerate() {
            _mm_stream_si128(to.add(i), vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + (i >> 8)) as u8).collect()
    }

    #[test]
    fn copies_what_there_is_and_nothing_else() {
        const MOST: usize = 70_000;
        let source = bytes(MOST + 64);
        for len in [0, 1, 63, 64, 65, 8191, 8192, 8193, 16_384, 16_385, 24_700, MOST] {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 63), (63, 16)] {
                let mut target = vec![0xee; MOST + 128];
                // SAFETY: both are longer by 64 than the longest copy.
                unsafe { past_caches(source.as_ptr().add(from), target.as_mut_ptr().add(to), len) };
                assert!(target[to..to + len] == source[from..from + len], "{len} from {from} to {to}");
                assert!(target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn whatever_overlaps_is_moved() {
        let len = own_cache() + 100;
        for (from, to) in [(0, 4096), (4096, 0), (0, 1)] {
            let mut memory = bytes(len + 4096);
            let expected = memory[from..from + len].to_vec();
            let start = memory.as_mut_ptr();
            // SAFETY: `memory` is long enough for both.
            unsafe { copy_long(start.add(from), start.add(to), len) };
            assert!(memory[to..to + len] == expected, "from {from} to {to}");
        }
    }

    #[test]
    fn copies_one_behind_the_other_are_a_run() {
        assert_eq!([run(1000, 10), run(1010, 5), run(1015, 1)], [10, 15, 16]);
        assert_eq!([run(1015, 7), run(1022, 1), run(500, 2)], [7, 8, 2]);
        assert!((256 << 10..=16 << 20).contains(&own_cache()));
    }
}
