//! Long copies. What a core's own cache has no room for goes past it, so that the lines which are written are not read first: how, the
//! CPU decides ([`Beyond`]). What is copied again to the same place begins where the last copy ended, since that is what caches still hold.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

/// Copies of fewer bytes are not looked at: their caller may want them in the cache.
pub(super) const LONG: usize = 16 << 10;

/// Copies in turns of direction go by so many bytes: few enough for the innermost cache to hold some, and a number that the system's
/// copy is quick with.
const BLOCK: usize = 16 << 10;

/// What a thread has copied to one place after the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Where the last copy began.
    start: usize,
    /// Where it ended.
    end: usize,
    /// Of all that were one behind the other.
    bytes: usize,
    /// The last copy went from its end to its beginning.
    backwards: bool,
}

thread_local! {
    static RUN: Cell<Run> = const { Cell::new(Run { start: 0, end: 0, bytes: 0, backwards: false }) };
}

/// Copies `len` bytes, [`LONG`] or more, which may overlap. Past the core's own cache if this copy, or the copies to the memory before
/// it that this thread has just made and this one together, are more than the core's own cache holds.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[cold]
#[inline(never)]
pub(super) unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    let apart = (from as usize).abs_diff(to as usize) >= len;
    let run = run(to as usize, len);
    // SAFETY: the same contract; in another order than the system's only what does not overlap.
    unsafe {
        if !apart {
            ptr::copy(from, to, len);
        } else if run.bytes >= own_cache() {
            past_own_cache(from, to, len, run.backwards);
        } else if run.backwards {
            backwards(from, to, len);
        } else {
            ptr::copy_nonoverlapping(from, to, len);
        }
    }
}

/// What this copy of `len` bytes to `to` makes of what this thread has copied before.
fn run(to: usize, len: usize) -> Run {
    let end = to.wrapping_add(len);
    let next = |run: &Cell<Run>| {
        let before = run.get();
        let bytes = if before.end == to { before.bytes.saturating_add(len) } else { len };
        let backwards = before.start == to && before.end == end && !before.backwards;
        run.set(Run { start: to, end, bytes, backwards });
        run.get()
    };
    RUN.try_with(next).unwrap_or(Run { start: to, end, bytes: len, backwards: false })
}

/// The last block first.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
unsafe fn backwards(from: *const u8, to: *mut u8, len: usize) {
    let mut end = len;
    while end > 0 {
        let start = (end - 1) / BLOCK * BLOCK;
        // SAFETY: the same contract, for a part of both.
        unsafe { ptr::copy_nonoverlapping(from.add(start), to.add(start), end - start) };
        end = start;
    }
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

/// What copies more than a core's own cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// The system's copy.
    System,
    /// Non-temporal stores, past all caches: the fastest on the Intel CPUs where this was measured.
    #[cfg(target_arch = "x86_64")]
    Streams,
    /// `rep movsb`: 1.1 to 1.4 times as fast as the system's copy on AMD's Zen 5, in its shared cache and in memory. Non-temporal stores take
    /// 1.6 times as long as that in the cache.
    #[cfg(target_arch = "x86_64")]
    StringMoves,
}

/// Perhaps the last blocks first.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
unsafe fn past_own_cache(from: *const u8, to: *mut u8, len: usize, backwards: bool) {
    static FOUND: OnceLock<Beyond> = OnceLock::new();
    // SAFETY: the same contract.
    unsafe {
        match *FOUND.get_or_init(beyond) {
            Beyond::System => ptr::copy_nonoverlapping(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::Streams => streams(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::StringMoves => string_moves(from, to, len, backwards),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn beyond() -> Beyond {
    Beyond::System
}

/// By vendor, family, and "enhanced rep movsb" (Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E). What AMD had before Zen 5 was not
/// measured.
#[cfg(target_arch = "x86_64")]
fn beyond() -> Beyond {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const ZEN_5: u32 = 0x1a;
    let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    let moves_strings = vendor.eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 == 1;
    match is_amd {
        true if family >= ZEN_5 && moves_strings => Beyond::StringMoves,
        true => Beyond::System,
        false => Beyond::Streams,
    }
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

/// By blocks, the last ones first if so: what the last copy to the same place ended with is what the caches hold.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn string_moves(from: *const u8, to: *mut u8, len: usize, backwards: bool) {
    const BLOCK: usize = 256 << 10;
    let blocks = len.div_ceil(BLOCK);
    for i in 0..blocks {
        let start = BLOCK * if backwards { blocks - 1 - i } else { i };
        let bytes = BLOCK.min(len - start);
        // SAFETY: reads and writes a part of both: the contract; the direction flag is clear (System V ABI, §3.2.1). A flag that is
        // stored next is seen after them, as after the system's copy, which is the same instruction here: a string operation is not
        // reordered with other stores (so says Intel's SDM, vol. 3, §9.2.4.1).
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _, inout("rsi") from.add(start) => _, inout("rdi") to.add(start) => _,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// # Safety
/// As [`copy_long`], and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn streams(from: *const u8, to: *mut u8, len: usize) {
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
        const MOST: usize = 600_000;
        let source = bytes(MOST + 64);
        for len in [0, 1, 63, 64, 65, 8191, 8192, 8193, 16_384, 16_385, 24_700, 262_145, MOST] {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 63), (63, 16)] {
                for way in 0..6 {
                    let mut target = vec![0xee; MOST + 128];
                    // SAFETY: both are longer by 64 than the longest copy.
                    unsafe {
                        let (from, to) = (source.as_ptr().add(from), target.as_mut_ptr().add(to));
                        match way {
                            0 | 1 => past_own_cache(from, to, len, way == 1),
                            #[cfg(target_arch = "x86_64")]
                            2 | 3 => string_moves(from, to, len, way == 3),
                            #[cfg(target_arch = "x86_64")]
                            4 => streams(from, to, len),
                            _ => backwards(from, to, len),
                        }
                    }
                    assert!(target[to..to + len] == source[from..from + len], "{len} from {from} to {to}");
                    assert!(target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0xee));
                }
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
        let bytes = |copies: [(usize, usize); 3]| copies.map(|(to, len)| run(to, len).bytes);
        assert_eq!(bytes([(1000, 10), (1010, 5), (1015, 1)]), [10, 15, 16]);
        assert_eq!(bytes([(1015, 7), (1022, 1), (500, 2)]), [7, 8, 2]);
        assert!((256 << 10..=16 << 20).contains(&own_cache()));
    }

    #[test]
    fn copies_to_the_same_place_take_turns_of_direction() {
        let copies =
            [(1000, 10), (1000, 10), (1000, 10), (1000, 10), (1000, 9), (1000, 9), (2000, 9), (1000, 9)];
        let backwards = copies.map(|(to, len)| run(to, len).backwards);
        assert_eq!(backwards, [false, true, false, true, false, true, false, false]);
    }
}
