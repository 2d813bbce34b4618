//! Long copies. What a core's own cache has no room for goes past it, or past all caches, so that the lines which are written are not read
//! first: how, the CPU decides ([`Beyond`]). What is copied again to the same place begins where the last copy ended, since that is what
//! caches still hold.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

use super::{Choice, Stores};

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
    /// Where the first of all that were one behind the other began.
    first: usize,
    /// Of all that were one behind the other.
    bytes: usize,
    /// Of those before them, if they began at the same place: as many will most probably come.
    before: usize,
    /// The last copy went from its end to its beginning.
    backwards: bool,
}

impl Run {
    /// One copy.
    const fn of(to: usize, len: usize) -> Self {
        Self { start: to, end: to.wrapping_add(len), first: to, bytes: len, before: 0, backwards: false }
    }

    /// With one more copy.
    const fn and(&self, to: usize, len: usize) -> Self {
        let one = Self::of(to, len);
        if self.end == to && self.bytes > 0 {
            let bytes = self.bytes.saturating_add(len);
            return Self { first: self.first, bytes, before: self.before, ..one };
        }
        let again = self.start == to && self.end == one.end;
        let before = if self.first == to { self.bytes } else { 0 };
        Self { before, backwards: again && !self.backwards, ..one }
    }
}

thread_local! {
    static RUN: Cell<Run> = const { Cell::new(Run::of(0, 0)) };
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
            past_own_cache(from, to, len, run);
        } else {
            by_choice(to as usize, len, |stores| match stores {
                Stores::PastCaches => copy_past_caches(from, to, len),
                Stores::Cached if run.backwards => backwards(from, to, len),
                Stores::Cached => ptr::copy_nonoverlapping(from, to, len),
            });
        }
    }
}

/// Places of which a thread knows at once by which stores they are written in less time.
const CHOICES: usize = 16;
/// Such a place is as long.
const PLACE: usize = 2 << 20;

thread_local! {
    static CHOICE: [(Cell<usize>, Choice); CHOICES] = std::array::from_fn(|_| (Cell::new(0), Choice::default()));
}

/// Has `len` bytes written at an address by the stores that take less time there.
fn by_choice(to: usize, len: usize, write: impl Fn(Stores)) {
    let place = to / PLACE;
    let known = CHOICE.try_with(|choices| {
        let (of, choice) = &choices[place % CHOICES];
        if of.replace(place) != place {
            choice.forget();
        }
        let (stores, measured) = choice.next(len);
        write(stores);
        if let Some(measured) = measured {
            choice.written(len, &measured);
        }
    });
    if known.is_err() {
        write(Stores::Cached);
    }
}

/// Copies `len` bytes by stores that go past all caches, where the CPU has such: lines that another core has are not fetched first.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the same contract; AVX is looked for.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match is_x86_feature_detected!("avx") {
            true => streams_avx(from, to, len),
            false => streams_by_turns(from, to, len),
        }
        #[cfg(not(target_arch = "x86_64"))]
        ptr::copy_nonoverlapping(from, to, len);
    }
}

/// What this copy of `len` bytes to `to` makes of what this thread has copied before.
fn run(to: usize, len: usize) -> Run {
    let next = |run: &Cell<Run>| {
        run.set(run.get().and(to, len));
        run.get()
    };
    RUN.try_with(next).unwrap_or(Run::of(to, len))
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
    /// Non-temporal stores, past all caches, to two pages by turns: the fastest on the Intel CPUs where this was measured.
    #[cfg(target_arch = "x86_64")]
    Streams,
    /// With a shared cache of so many bytes: the system's copy of what that holds with its source, and else non-temporal stores, one page
    /// behind the other. On AMD's Zen 4 these are twice as fast as the system's copy in memory, and half as fast in the cache; by turns of
    /// pages they are half as fast in memory.
    #[cfg(target_arch = "x86_64")]
    Shared(usize),
    /// `rep movsb`: 1.1 to 1.4 times as fast as the system's copy on AMD's Zen 5, in its shared cache and in memory. Non-temporal stores take
    /// 1.6 times as long as that in the cache.
    #[cfg(target_arch = "x86_64")]
    StringMoves,
}

fn found() -> Beyond {
    static FOUND: OnceLock<Beyond> = OnceLock::new();
    *FOUND.get_or_init(beyond)
}

/// Whether what updates more than the caches hold should begin, every second time, where it ended the last time. On Zen 4 what is gained
/// by that is lost to its prefetcher, which goes forwards: sums from memory took 1.1 to 1.5 times as long.
pub(super) fn turns_pay() -> bool {
    #[cfg(target_arch = "x86_64")]
    return !matches!(found(), Beyond::Shared(_));
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Perhaps the last blocks first.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
unsafe fn past_own_cache(from: *const u8, to: *mut u8, len: usize, run: Run) {
    // SAFETY: the same contract.
    unsafe { by(found(), from, to, len, run) }
}

/// # Safety
/// As [`copy_long`], and they do not overlap; the CPU has the instructions.
unsafe fn by(way: Beyond, from: *const u8, to: *mut u8, len: usize, run: Run) {
    // SAFETY: the same contract.
    unsafe {
        match way {
            Beyond::System => ptr::copy_nonoverlapping(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::Streams => streams_by_turns(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::Shared(cache) if holds(cache, run) => ptr::copy_nonoverlapping(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::Shared(_) => streams_avx(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Beyond::StringMoves => string_moves(from, to, len, run.backwards),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn beyond() -> Beyond {
    Beyond::System
}

/// By vendor, family, and "enhanced rep movsb" (Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E). Of what AMD had before Zen 5, Zen 4
/// was measured.
#[cfg(target_arch = "x86_64")]
fn beyond() -> Beyond {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const ZEN_5: u32 = 0x1a;
    const ZEN: u32 = 0x17;
    let (vendor, version) = (__cpuid(0), __cpuid(1).eax);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    let moves_strings = vendor.eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 == 1;
    match is_amd {
        true if family >= ZEN_5 && moves_strings => Beyond::StringMoves,
        true if family >= ZEN && is_x86_feature_detected!("avx") => {
            third_level().map_or(Beyond::System, Beyond::Shared)
        }
        true => Beyond::System,
        false => Beyond::Streams,
    }
}

/// Whether a shared cache of so many bytes holds what is copied, with its source and what others have there: up to 5/16 of it if as many
/// are expected as the last time, and else 3/16, since it may be the beginning of many.
#[cfg(target_arch = "x86_64")]
fn holds(cache: usize, run: Run) -> bool {
    let sixteenth = cache / 16;
    if run.bytes <= run.before { run.before < 5 * sixteenth } else { run.bytes < 3 * sixteenth }
}

/// Bytes of a cache of the third level, as AMD's CPUs say it: leaf 8000_001Dh (AMD APM vol. 3, appendix E).
#[cfg(target_arch = "x86_64")]
fn third_level() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const LEAF: u32 = 0x8000_001d;
    if __cpuid(0x8000_0000).eax < LEAF {
        return None;
    }
    (0..8).map(|index| __cpuid_count(LEAF, index)).find(|cache| cache.eax >> 5 & 7 == 3).map(|cache| {
        let field = |shift: u32, mask: u32| (cache.ebx >> shift & mask) as usize + 1;
        field(0, 0xfff) * field(12, 0x3ff) * field(22, 0x3ff) * (cache.ecx as usize + 1)
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

/// With vectors of 32 bytes, one page behind the other.
///
/// # Safety
/// As [`copy_long`], and they do not overlap; the CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn streams_avx(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    // SAFETY: the same contract; a line is two vectors.
    unsafe {
        streams::<1>(from, to, len, |from, to| {
            let (from, to) = (from.cast::<__m256i>(), to.cast::<__m256i>());
            let line = [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))];
            _mm256_stream_si256(to, line[0]);
            _mm256_stream_si256(to.add(1), line[1]);
        });
    }
}

/// With vectors of 16 bytes, two pages by turns: more of the memory's banks and of the prefetcher's streams are at work.
///
/// # Safety
/// As [`copy_long`], and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn streams_by_turns(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    // SAFETY: the same contract; a line is four vectors; SSE2 is part of the architecture.
    unsafe {
        streams::<2>(from, to, len, |from, to| {
            let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
            for (i, vector) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), vector);
            }
        });
    }
}

/// Calls `line` for each line of the target and its source, of `PAGES` pages by turns.
///
/// # Safety
/// As [`copy_long`], and they do not overlap. `line` copies 64 bytes to where they are aligned, by non-temporal stores.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn streams<const PAGES: usize>(
    from: *const u8,
    to: *mut u8,
    len: usize,
    line: impl Fn(*const u8, *mut u8),
) {
    use std::arch::x86_64::_mm_sfence;
    const LINE: usize = 64;
    const PAGE: usize = 4096;
    let head = to.align_offset(LINE).min(len);
    let turns = (len - head) / (PAGES * PAGE);
    let tail = head + turns * PAGES * PAGE;
    // SAFETY: all offsets are below `len`; `to + head` is aligned to a line. The fence orders these stores before all later
    // ones, as others are (Intel SDM vol. 1, §10.4.6.2), so that a flag that is stored next is seen after them.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        for turn in 0..turns {
            let start = head + turn * PAGES * PAGE;
            for at in (start..start + PAGE).step_by(LINE) {
                for page in 0..PAGES {
                    line(from.add(at + page * PAGE), to.add(at + page * PAGE));
                }
            }
        }
        ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        _mm_sfence();
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
                for way in 0..8 {
                    let mut target = vec![0xee; MOST + 128];
                    // SAFETY: both are longer by 64 than the longest copy.
                    unsafe {
                        let (from, to) = (source.as_ptr().add(from), target.as_mut_ptr().add(to));
                        let run = Run { backwards: way % 2 == 1, ..Run::of(0, len) };
                        match way {
                            0 | 1 => past_own_cache(from, to, len, run),
                            #[cfg(target_arch = "x86_64")]
                            2 | 3 => string_moves(from, to, len, run.backwards),
                            #[cfg(target_arch = "x86_64")]
                            4 => streams_by_turns(from, to, len),
                            #[cfg(target_arch = "x86_64")]
                            5 if is_x86_feature_detected!("avx") => streams_avx(from, to, len),
                            6 => copy_past_caches(from, to, len),
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

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_shared_cache_holds_what_is_less_than_it_with_its_source() {
        const CACHE: usize = 1600;
        let burst = |run: Run, copies: usize| (0..copies).fold(run, |run, i| run.and(1000 + i * 100, 100));
        let one = Run::of(5000, 1).and(1000, 299);
        assert!(holds(CACHE, one) && !holds(CACHE, one.and(1299, 1)));
        // Again as many, in the same place: from the first copy on it is known how many.
        let (few, many) = (burst(one, 4), burst(one, 5));
        assert!(!holds(CACHE, few) && (1..=4).all(|copies| holds(CACHE, burst(few, copies))));
        assert!(!holds(CACHE, many) && (1..=6).all(|copies| !holds(CACHE, burst(many, copies))));
        assert!(holds(CACHE, many.and(7000, 100)), "another place");
        let single = Run::of(1000, 450);
        assert!(!holds(CACHE, single) && holds(CACHE, single.and(1000, 450)));
        assert!(third_level().is_none_or(|bytes| (1 << 20..1 << 31).contains(&bytes)));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn copies_within_and_beyond_the_shared_cache() {
        let source = bytes(100_000);
        for cache in [0, usize::MAX] {
            let mut target = vec![0; source.len()];
            let way = if is_x86_feature_detected!("avx") { Beyond::Shared(cache) } else { Beyond::System };
            let run = Run::of(0, source.len());
            // SAFETY: both have so many bytes; the CPU has AVX where this needs it.
            unsafe { by(way, source.as_ptr(), target.as_mut_ptr(), source.len(), run) };
            assert!(target == source, "{cache} bytes");
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
