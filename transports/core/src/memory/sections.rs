//! Who is in the middle of an update by atomic instructions: a word for each thread, which only that thread writes.
//!
//! Entering and leaving are plain stores. Somebody who wants to know whether anybody is inside pays for both sides: membarrier(2)
//! has every thread that runs execute a memory barrier, whatever its process.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Span;
use crate::{TransportResult, barrier};

/// A cache line each, so that threads do not slow each other down.
const LINE: usize = 64;
/// Threads that have a word of their own.
const SLOTS: usize = 63;
/// Where a rank says that its threads execute barriers for others: 1.
const READY: usize = 0;
/// Where it says how many slots were ever used.
const USED: usize = 4;
/// The line of all threads for which no slot is left. Slot `i` is the line `i + 1` behind it.
const CROWD: usize = LINE;

/// The sections of one rank's threads, in memory that the ranks of its node map.
#[derive(Debug)]
pub struct Sections {
    memory: Span,
    /// No two in a process have the same, ever.
    id: u64,
    free: Arc<Mutex<Vec<usize>>>,
}

/// A thread's word, and whom to give it back.
struct Mine {
    id: u64,
    number: usize,
    word: *const AtomicU32,
    free: Weak<Mutex<Vec<usize>>>,
}

/// The words of a thread.
#[derive(Default)]
struct All(Vec<Mine>);

thread_local! {
    /// The one that was used last.
    static LAST: Cell<(u64, *const AtomicU32)> = const { Cell::new((0, ptr::null())) };
    static ALL: RefCell<All> = RefCell::default();
}

/// A thread that is inside, until this goes.
#[derive(Debug)]
pub(super) struct Section<'a> {
    word: &'a AtomicU32,
    /// Whether it is the word of several threads.
    crowded: bool,
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.crowded {
            self.word.fetch_sub(1, Ordering::Release);
        } else {
            self.word.leave();
        }
    }
}

impl Sections {
    /// Bytes that they take.
    pub const BYTES: usize = (SLOTS + 2) * LINE;

    /// The sections of this rank's threads, in the first [`Sections::BYTES`] of `memory`, which are zero.
    ///
    /// # Errors
    /// `memory` is too short, or not aligned.
    pub fn new(memory: &Span) -> TransportResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let memory = memory.part(0, Self::BYTES)?;
        let ready = barrier::join();
        memory.word32(READY)?.store(u32::from(ready), Ordering::Release);
        let free = Arc::new(Mutex::new((0..SLOTS).rev().collect()));
        Ok(Self { memory, id: NEXT.fetch_add(1, Ordering::Relaxed), free })
    }

    /// Whether nobody of the rank whose sections are in `memory` is inside who entered before [`barrier::everywhere`] was called.
    pub fn are_empty(memory: &Span) -> bool {
        let word = |at| memory.word32(at).ok().map(|word| word.load(Ordering::Acquire));
        let (Some(1), Some(used)) = (word(READY), word(USED)) else { return false };
        (0..=(used as usize).min(SLOTS)).all(|line| word(CROWD + line * LINE) == Some(0))
    }

    /// Enters: whoever finds the sections empty afterwards sees what was done inside, and whoever called [`barrier::everywhere`]
    /// before has made his earlier stores known to it. None if there is no word to say so.
    #[inline]
    pub(super) fn enter(&self) -> Option<Section<'_>> {
        let (id, word) = LAST.get();
        if id != self.id {
            return self.enter_first();
        }
        // SAFETY: the word lies in the memory of the sections with this id, which no other have: `self`.
        let word = unsafe { &*word };
        word.enter();
        Some(Section { word, crowded: false })
    }

    /// As [`Sections::enter`], for a thread that was elsewhere before, or has no word of its own.
    #[cold]
    #[inline(never)]
    fn enter_first(&self) -> Option<Section<'_>> {
        if self.find() {
            return self.enter();
        }
        let word = self.memory.word32(CROWD).ok()?;
        word.fetch_add(1, Ordering::SeqCst);
        Some(Section { word, crowded: true })
    }

    /// Finds this thread's word, or takes one.
    fn find(&self) -> bool {
        let found = ALL.try_with(|all| {
            let all = &mut all.borrow_mut().0;
            if let Some(mine) = all.iter().find(|mine| mine.id == self.id) {
                return Some(mine.word);
            }
            all.retain(|mine| mine.free.strong_count() > 0);
            let number = lock(&self.free).pop()?;
            self.memory.word32(USED).ok()?.fetch_max(number as u32 + 1, Ordering::SeqCst);
            let word: *const AtomicU32 = self.memory.word32(CROWD + (number + 1) * LINE).ok()?;
            all.push(Mine { id: self.id, number, word, free: Arc::downgrade(&self.free) });
            Some(word)
        });
        // A thread that ends has given its words back already.
        let Ok(Some(word)) = found else { return false };
        LAST.set((self.id, word));
        true
    }
}

/// A thread's word: the CPU's, or a model checker's.
pub(super) trait Word {
    /// Stores; nothing later in this thread comes before it for whoever has called [`barrier::everywhere`].
    fn enter(&self);
    /// Stores; everything earlier in this thread comes before it.
    fn leave(&self);
}

impl Word for AtomicU32 {
    #[inline]
    fn enter(&self) {
        self.store(1, Ordering::Relaxed);
        // The processor is taken care of by the other's barrier, the compiler is not.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn leave(&self) {
        self.store(0, Ordering::Release);
    }
}

fn lock(free: &Mutex<Vec<usize>>) -> std::sync::MutexGuard<'_, Vec<usize>> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for All {
    fn drop(&mut self) {
        LAST.set((0, ptr::null()));
        for mine in &self.0 {
            if let Some(free) = mine.free.upgrade() {
                lock(&free).push(mine.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Sections {
        Sections::new(&Span::anonymous(Sections::BYTES).unwrap()).unwrap()
    }

    #[test]
    fn are_seen_while_somebody_is_inside() {
        let sections = sections();
        assert!(barrier::everywhere() && Sections::are_empty(&sections.memory));
        for _ in 0..2 {
            let section = sections.enter();
            assert!(section.is_some() && !Sections::are_empty(&sections.memory));
            drop(section);
            assert!(Sections::are_empty(&sections.memory));
        }
        // A rank that has none is not known to be outside.
        assert!(!Sections::are_empty(&Span::anonymous(Sections::BYTES).unwrap()));
    }

    #[test]
    fn a_thread_may_go_from_one_to_another() {
        let both = [sections(), sections()];
        for _ in 0..3 {
            for (here, there) in [(0, 1), (1, 0)] {
                let _section = both[here].enter();
                assert!(Sections::are_empty(&both[there].memory) && !Sections::are_empty(&both[here].memory));
            }
        }
        assert_eq!(lock(&both[0].free).len(), SLOTS - 1);
    }

    #[test]
    fn more_threads_than_slots() {
        let sections = sections();
        let gate = std::sync::Barrier::new(SLOTS + 8);
        std::thread::scope(|scope| {
            for _ in 0..SLOTS + 7 {
                scope.spawn(|| {
                    let section = sections.enter();
                    gate.wait();
                    assert!(!Sections::are_empty(&sections.memory));
                    gate.wait();
                    drop(section);
                    gate.wait();
                });
            }
            gate.wait();
            assert_eq!(sections.memory.word32(CROWD).unwrap().load(Ordering::Relaxed), 7);
            gate.wait();
            gate.wait();
            assert!(Sections::are_empty(&sections.memory));
        });
        // Scopes end before the destructors of their threads' locals have run.
        while lock(&sections.free).len() < SLOTS {
            std::thread::yield_now();
        }
    }
}
