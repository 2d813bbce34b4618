//! Nothing that shares a page may be lost, and what is in place must be the file's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard};
use transom_transport::TransportResult;
use transom_transport::futex::{self, Among};

use super::maps::{self, Kind};
use super::protect::Protector;
use super::ranges::{meet, pages_of};
use super::*;
use crate::file;

const CAUTION: Caution = Caution { edges: false, held: true };

/// Tests have threads: they are kept from writing by the kernel, or memory is not shared.
struct NoThreads;

impl Quiet for NoThreads {
    fn threads(&self) -> usize {
        0
    }

    fn keep(&self, body: &mut dyn FnMut()) -> bool {
        body();
        true
    }
}

/// Held while a test forks: peers see what is written to shared edges then when the fork is over.
static FORKS: RwLock<()> = RwLock::new(());

/// Whether threads can be made to wait here.
fn possible() -> bool {
    let possible = Protector::new().is_some();
    assert!(possible || std::env::var_os("CI").is_none(), "CI must be able to use userfaultfd");
    possible
}

/// The same, and that no other test forks.
fn undisturbed() -> Option<RwLockReadGuard<'static, ()>> {
    possible().then(|| FORKS.read())
}

fn span(memory: &mut [u8]) -> Span {
    // SAFETY: the tests keep the memory as long as the span, and look at it by `load` and `store`.
    unsafe { Span::from_raw(memory.as_mut_ptr(), memory.len()) }
}

fn share(memory: &Span) -> (InPlace, Result<Span, String>) {
    let quiet: Arc<dyn Quiet> = Arc::new(NoThreads);
    // SAFETY: memory of the tests', which they keep until it is released.
    unsafe { InPlace::share(memory, CAUTION, &quiet) }
}

fn shared(memory: &Span) -> (InPlace, Span) {
    let (in_place, shared) = share(memory);
    (in_place, shared.unwrap())
}

/// The same bytes as a peer maps them.
fn peers(shared: &Span) -> TransportResult<Span> {
    let (fd, start) = shared.file().unwrap();
    file::map_part(fd, start, shared.len())
}

fn load(memory: &Span, at: usize) -> u8 {
    let mut byte = [0];
    memory.copy_out(at, &mut byte).unwrap();
    byte[0]
}

fn is_private(memory: &Span) -> bool {
    let pages = pages_of(&(memory.address()..memory.address() + memory.len()));
    maps::all()
        .unwrap()
        .iter()
        .filter(|mapping| meet(&mapping.pages, &pages).is_some())
        .all(|mapping| matches!(mapping.kind, Kind::Private | Kind::Stack | Kind::Static))
}

/// Shares `memory` within `all`, with the other bytes as its neighbours, and back.
fn there_and_back(all: &mut [u8], range: Range<usize>) {
    let value = |at: usize| (at % 251) as u8;
    for (at, byte) in all.iter_mut().enumerate() {
        *byte = value(at);
    }
    let all = span(all);
    let memory = all.part(range.start, range.len()).unwrap();
    let (in_place, shared) = shared(&memory);
    let peer = peers(&shared).unwrap();
    assert!((0..all.len()).all(|at| load(&all, at) == value(at)));
    assert!((0..memory.len()).all(|at| load(&peer, at) == value(range.start + at)));
    let last = memory.len() - 1;
    peer.copy_in(0, &[252]).unwrap();
    memory.copy_in(last, &[253]).unwrap();
    assert_eq!((load(&memory, 0), load(&peer, last)), (if last == 0 { 253 } else { 252 }, 253));
    drop((shared, peer));
    assert!(!is_private(&memory));
    drop(in_place);
    assert!(is_private(&memory));
    let expected = |at: usize| match at {
        at if at == range.end - 1 => 253,
        at if at == range.start => 252,
        at => value(at),
    };
    assert!((0..all.len()).all(|at| load(&all, at) == expected(at)));
}

#[test]
fn heap_stack_and_static_memory_with_its_neighbours() {
    /// What begins on a page begins behind the data that comes from the program's file.
    #[repr(align(4096))]
    struct Aligned([u8; 9 * PAGE]);
    static mut ZEROED: Aligned = Aligned([0; 9 * PAGE]);
    let Some(_undisturbed) = undisturbed() else { return };
    for range in [1..2, 100..5000, 4096..8192, 3..9 * PAGE - 5, 0..9 * PAGE] {
        there_and_back(&mut vec![0; 9 * PAGE], range.clone());
        there_and_back(&mut [0; 9 * PAGE], range.clone());
        // SAFETY: used by this test alone, which is run once.
        unsafe {
            let zeroed = &raw mut ZEROED;
            there_and_back(&mut (*zeroed).0, range);
        }
    }
}

#[test]
fn memory_that_nobody_touched_takes_none() {
    let Some(_undisturbed) = undisturbed() else { return };
    let mut map = memmap2::MmapMut::map_anon(1 << 32).unwrap();
    map[1 << 20] = 5;
    let memory = span(&mut map);
    let (in_place, shared) = shared(&memory);
    let peer = peers(&shared).unwrap();
    assert_eq!((load(&peer, 1 << 20), load(&peer, 1 << 31)), (5, 0));
    let blocks = || {
        let (fd, _) = shared.file().unwrap();
        let file = std::fs::File::from(fd.try_clone_to_owned().unwrap());
        std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap())
    };
    assert!(blocks() < 1 << 14, "{} blocks", blocks());
    drop(in_place);
    assert_eq!((load(&memory, 1 << 20), load(&memory, 1 << 31)), (5, 0));
}

#[test]
fn users_that_overlap_share_until_the_last_goes() {
    let Some(_undisturbed) = undisturbed() else { return };
    let mut bytes = vec![1u8; 8 * PAGE];
    let all = span(&mut bytes);
    let parts = [(10, 3 * PAGE), (2 * PAGE, 4 * PAGE), (5 * PAGE + 7, 100), (0, 8 * PAGE)];
    let mut users: Vec<_> =
        parts.iter().map(|(start, len)| shared(&all.part(*start, *len).unwrap())).collect();
    let (whole, last) = users.pop().unwrap();
    let peer = peers(&last).unwrap();
    for (in_place, shared) in users {
        peers(&shared).unwrap().copy_in(0, &[9]).unwrap();
        drop(shared);
        drop(in_place);
    }
    assert_eq!([10, 2 * PAGE, 5 * PAGE + 7].map(|at| load(&peer, at)), [9; 3]);
    assert!(!is_private(&all));
    drop(whole);
    assert!(is_private(&all));
    assert_eq!([10, 2 * PAGE, 5 * PAGE + 7, 11].map(|at| load(&all, at)), [9, 9, 9, 1]);
}

/// The progress thread sleeps so while pages are replaced, which may be its word's.
#[test]
fn who_sleeps_on_a_page_that_is_replaced_is_woken() {
    const TOO_LONG: Duration = Duration::from_secs(60);
    let Some(_undisturbed) = undisturbed() else { return };
    let words: Vec<AtomicU32> = (0..3 * PAGE / 4).map(|_| AtomicU32::new(0)).collect();
    // SAFETY: valid for as long as `words`, which are atomics.
    let memory = unsafe { Span::from_raw(words.as_ptr().add(9).cast_mut().cast(), 2 * PAGE) };
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            send.send(nix::unistd::gettid()).unwrap();
            let start = Instant::now();
            while words[0].load(Ordering::Acquire) == 0 && start.elapsed() < TOO_LONG {
                futex::sleep_on(&words[0], 0, TOO_LONG, Among::Threads);
            }
            start.elapsed()
        });
        let thread = format!("/proc/self/task/{}/stat", receive.recv().unwrap());
        while !std::fs::read_to_string(&thread).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
        let (in_place, shared) = shared(&memory);
        words[0].store(1, Ordering::Release);
        futex::wake_all(&words[0], Among::Threads);
        assert!(sleeper.join().unwrap() < TOO_LONG);
        drop((shared, in_place));
    });
}

#[test]
fn no_write_of_another_thread_is_lost() {
    const ROUNDS: usize = 500;
    let Some(_undisturbed) = undisturbed() else { return };
    let words: Vec<AtomicU64> = (0..4 * PAGE / 8).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                // A load and a store of their own: a store that is lost shows.
                for word in &words {
                    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
                rounds += 1;
            }
            rounds
        });
        // SAFETY: valid for as long as `words`, which are atomics.
        let memory = unsafe { Span::from_raw(words.as_ptr().add(9).cast_mut().cast(), 3 * PAGE) };
        for _ in 0..ROUNDS {
            let (in_place, shared) = shared(&memory);
            drop(shared);
            drop(in_place);
        }
        stop.store(true, Ordering::Relaxed);
        let rounds = writer.join().unwrap();
        assert!(rounds > 0 && words.iter().all(|word| word.load(Ordering::Relaxed) == rounds));
    });
}

#[test]
fn a_child_of_fork_has_memory_of_its_own() {
    if !possible() {
        return;
    }
    let _forking = FORKS.write();
    let mut heap = vec![1u8; 5 * PAGE];
    let mut stack = [1u8; 3 * PAGE];
    let mut one = 1u8;
    let memories = [span(&mut heap[100..]), span(&mut stack), span(std::slice::from_mut(&mut one))];
    let shares: Vec<_> = memories.iter().map(shared).collect();
    let peers: Vec<Span> = shares.iter().map(|(_, shared)| peers(shared).unwrap()).collect();
    let to_child = nix::unistd::pipe().unwrap();
    // SAFETY: the child calls nothing but copies, read, write and _exit (fork(2), signal-safety(7)).
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = [0u8];
        // The parent and a peer write first.
        let _ = nix::unistd::read(&to_child.0, &mut byte);
        let mut wrong = memories.iter().filter(|memory| load(memory, 0) != 1).count();
        for memory in &memories {
            wrong += usize::from(memory.copy_in(0, &[77]).is_err());
        }
        // SAFETY: ends the child without its destructors.
        unsafe { libc::_exit(wrong as i32) };
    }
    for (memory, peer) in memories.iter().zip(&peers) {
        memory.copy_in(0, &[2]).unwrap();
        assert_eq!(load(peer, 0), 2);
        if memory.len() > 1 {
            peer.copy_in(memory.len() - 1, &[3]).unwrap();
        }
    }
    nix::unistd::write(&to_child.1, &[1]).unwrap();
    let status = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(child), None).unwrap();
    assert!(matches!(status, nix::sys::wait::WaitStatus::Exited(_, 0)), "{status:?}");
    for (memory, peer) in memories.iter().zip(&peers) {
        assert_eq!((load(memory, 0), load(peer, 0)), (2, 2));
        assert_eq!(load(memory, memory.len() - 1), if memory.len() > 1 { 3 } else { 2 });
    }
    drop(shares);
    assert!(memories.iter().all(is_private));
}

#[test]
fn what_cannot_be_shared_says_why() {
    let Some(_undisturbed) = undisturbed() else { return };
    let refused = |memory: &Span| {
        let (in_place, shared) = share(memory);
        drop(in_place);
        shared.unwrap_err()
    };
    assert!(refused(&Span::empty()).contains("no bytes"));
    let own = file::create("test", PAGE).unwrap();
    // SAFETY: inside `own`, as long as that.
    let alias = unsafe { Span::from_raw(own.address() as *mut u8, PAGE) };
    assert!(refused(&alias).contains("shared memory of the program's"));
    let map = memmap2::MmapOptions::new().len(PAGE).map_anon().unwrap().make_read_only().unwrap();
    // SAFETY: only its address is used.
    let fixed = unsafe { Span::from_raw(map.as_ptr().cast_mut(), PAGE) };
    assert!(refused(&fixed).contains("read-only"));
    static mut FILLED: [u8; 2 * PAGE] = [7; 2 * PAGE];
    let filled = &raw mut FILLED;
    // SAFETY: used by this test alone, which is run once.
    assert!(refused(&span(unsafe { &mut *filled })).contains("several threads"));
    let start = map.as_ptr().cast_mut();
    drop(map);
    // SAFETY: only its address is used.
    let gone = unsafe { Span::from_raw(start, PAGE) };
    assert!(share(&gone).1.is_err());
}

#[test]
fn memory_that_the_program_moves_or_frees_hurts_nobody() {
    let Some(_undisturbed) = undisturbed() else { return };
    let map = |len: usize| {
        let map = memmap2::MmapMut::map_anon(len).unwrap();
        let start = map.as_ptr() as usize;
        std::mem::forget(map);
        start
    };
    // SAFETY: mappings of this test's, unmapped by it alone.
    unsafe {
        let moved = map(16 * PAGE);
        let memory = Span::from_raw(moved as *mut u8, 16 * PAGE);
        memory.copy_in(5, &[9]).unwrap();
        let (in_place, _) = shared(&memory);
        // As realloc does.
        let to = libc::mremap(moved as *mut libc::c_void, 16 * PAGE, 64 * PAGE, libc::MREMAP_MAYMOVE);
        assert_ne!(to, libc::MAP_FAILED);
        let grown = Span::from_raw(to.cast(), 64 * PAGE);
        grown.copy_in(63 * PAGE, &[8]).unwrap();
        drop(in_place);
        assert_eq!([5, 63 * PAGE].map(|at| load(&grown, at)), [9, 8]);
        libc::munmap(to, 64 * PAGE);
        let freed = map(4 * PAGE);
        let (in_place, _) = shared(&Span::from_raw(freed as *mut u8, 4 * PAGE));
        libc::munmap(freed as *mut libc::c_void, 4 * PAGE);
        drop(in_place);
    }
}
