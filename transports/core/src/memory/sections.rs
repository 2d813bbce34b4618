//! Sections: which threads are in the middle of an update by atomic instructions. A word for each thread, which only that
//! thread writes.
//!
//! Entering and leaving are plain stores. A thread that has to know whether all sections are empty pays for both sides:
//! membarrier(2) has every thread that runs execute a memory barrier, whatever its process.
//!
//! Beside the word stands, for threads that share epochs, which thread has stored nothing since it ordered its stores.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Arc, Weak};

use super::{Span, store_load_fence};
use crate::{TransportResult, barrier, thread};

/// A cache line each, so that threads do not slow each other down.
const LINE: usize = 64;
/// Threads that have a word of their own: a power of two.
const SLOTS: usize = 64;
/// Where a rank says that its threads execute barriers for others: 1.
const READY: usize = 0;
/// The line of all threads for which no slot is left. Slot `i` is the line `i + 1` behind it.
const OVERFLOW: usize = LINE;
/// Where in its line a slot says whose stores are ordered.
const ORDERED: usize = 8;

/// Which thread has which slot, 0 if none has. A thread's slot is the first that it finds from its number's on.
type Owners = [AtomicUsize; SLOTS];

/// The sections of one rank's threads, in memory that the ranks of its node map.
#[derive(Debug)]
pub struct Sections {
    /// [`OVERFLOW`], inside `_memory`.
    words: NonNull<u8>,
    owners: Arc<Owners>,
    _memory: Span,
}

// SAFETY: `words` points into `_memory`, which is Send + Sync, and is used for atomics only.
unsafe impl Send for Sections {}
// SAFETY: as above.
unsafe impl Sync for Sections {}

/// The slots of a thread, which become free when it ends.
#[derive(Default)]
struct OwnSlots(Vec<(Weak<Owners>, usize)>);

thread_local! {
    static OWN_SLOTS: RefCell<OwnSlots> = RefCell::default();
}

/// A thread is inside until this is dropped.
#[derive(Debug)]
pub(super) struct Section<'a> {
    word: &'a AtomicU32,
    /// Whether it is the word of several threads.
    counted: bool,
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.counted {
            self.word.fetch_sub(1, Ordering::Release);
        } else {
            self.word.leave();
        }
    }
}

/// Where a thread begins to look for its slot.
#[inline(always)]
fn first_slot(thread: usize) -> usize {
    // Thread pointers differ in their middle bits: the product has them at its top (Knuth, TAOCP vol. 3, §6.4).
    ((thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.ilog2())) as usize
}

impl Sections {
    /// Bytes that they take.
    pub const BYTES: usize = (SLOTS + 2) * LINE;

    /// The sections of this rank's threads, in the first [`Sections::BYTES`] of `memory`, which are zero.
    ///
    /// # Errors
    /// `memory` is too short, or not aligned.
    pub fn new(memory: &Span) -> TransportResult<Self> {
        let memory = memory.part(0, Self::BYTES)?;
        let ready = barrier::join();
        memory.word32(READY)?.store(u32::from(ready), Ordering::Release);
        let words = NonNull::from(memory.word64(OVERFLOW)?).cast();
        Ok(Self { words, owners: Arc::new([const { AtomicUsize::new(0) }; SLOTS]), _memory: memory })
    }

    /// Whether no thread of the rank whose sections are in `memory` is inside that entered before [`barrier::everywhere`]
    /// was called.
    pub fn are_empty(memory: &Span) -> bool {
        let word = |at| memory.word32(at).ok().map(|word| word.load(Ordering::Acquire));
        word(READY) == Some(1) && (0..=SLOTS).all(|line| word(OVERFLOW + line * LINE) == Some(0))
    }

    /// Enters: a thread that finds the sections empty afterwards sees what was done inside, and the earlier stores of a
    /// thread that has called [`barrier::everywhere`] are visible inside.
    #[inline(always)]
    pub(super) fn enter(&self) -> Section<'_> {
        match self.enter_first() {
            Some(section) => section,
            None => self.enter_elsewhere(thread::current(), first_slot(thread::current())),
        }
    }

    /// The same for a thread that has entered before, and whose slot is the first that it looks at.
    #[inline(always)]
    pub(super) fn enter_first(&self) -> Option<Section<'_>> {
        let thread = thread::current();
        let slot = first_slot(thread);
        if self.owners[slot].load(Ordering::Relaxed) != thread {
            return None;
        }
        let word = self.word(slot);
        word.enter();
        Some(Section { word, counted: false })
    }

    /// The word of a slot.
    #[inline(always)]
    fn word(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: `_memory` has a line for each slot behind `words` (Sections::new), aligned as that is; lines are accessed by
        // atomics only, and live as long as `self`.
        unsafe { self.words.add((slot % SLOTS + 1) * LINE).cast::<AtomicU32>().as_ref() }
    }

    /// This thread, and behind the word of the slot that it looks at first the number of a thread that has stored nothing since
    /// it ordered its stores, or 0. A thread's number is written there by itself alone, so a thread that finds its own has
    /// written nothing else since.
    #[inline(always)]
    fn ordered(&self) -> (usize, &AtomicUsize) {
        let thread = thread::current();
        let line = (first_slot(thread) % SLOTS + 1) * LINE + ORDERED;
        // SAFETY: as in `word`.
        (thread, unsafe { self.words.add(line).cast::<AtomicUsize>().as_ref() })
    }

    /// This thread stores to memory that others load.
    #[inline(always)]
    pub fn stores(&self) {
        let (thread, ordered) = self.ordered();
        if ordered.load(Ordering::Relaxed) == thread {
            ordered.store(0, Ordering::Relaxed);
        }
    }

    /// Orders this thread's stores before what it loads later, unless it has made none since it did so last.
    #[inline(always)]
    pub fn order_stores(&self) {
        let (thread, ordered) = self.ordered();
        if ordered.load(Ordering::Relaxed) != thread {
            store_load_fence();
            ordered.store(thread, Ordering::Relaxed);
        }
    }

    /// As [`Sections::enter`], for a thread whose slot is not the first that it looks at, or that has none.
    #[cold]
    #[inline(never)]
    fn enter_elsewhere(&self, thread: usize, first: usize) -> Section<'_> {
        let mut slots = (0..SLOTS).map(|i| (first + i) % SLOTS);
        let own = slots.find(|slot| self.owners[*slot].load(Ordering::Relaxed) == thread);
        if let Some(slot) = own.or_else(|| self.claim(thread, first)) {
            let word = self.word(slot);
            word.enter();
            return Section { word, counted: false };
        }
        // SAFETY: the word at `words`, as in `word`.
        let word = unsafe { self.words.cast::<AtomicU32>().as_ref() };
        word.fetch_add(1, Ordering::SeqCst);
        Section { word, counted: true }
    }

    /// Takes a slot that no thread has, if this thread can give it back when it ends: one that is ending cannot.
    fn claim(&self, thread: usize, first: usize) -> Option<usize> {
        let own_slots = |own_slots: &RefCell<OwnSlots>| {
            let own_slots = &mut own_slots.borrow_mut().0;
            own_slots.retain(|(owners, _)| owners.strong_count() > 0);
            let take = |slot: &usize| {
                self.owners[*slot].compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            let slot = (0..SLOTS).map(|i| (first + i) % SLOTS).find(take)?;
            own_slots.push((Arc::downgrade(&self.owners), slot));
            Some(slot)
        };
        OWN_SLOTS.try_with(own_slots).ok().flatten()
    }
}

impl Drop for OwnSlots {
    fn drop(&mut self) {
        for (owners, slot) in &self.0 {
            if let Some(owners) = owners.upgrade() {
                owners[*slot].store(0, Ordering::Release);
            }
        }
    }
}

/// A thread's word: the CPU's, or a model checker's.
pub(super) trait Word {
    /// Stores; nothing later in this thread comes before it for a thread that has called [`barrier::everywhere`].
    fn enter(&self);
    /// Stores; everything earlier in this thread comes before it.
    fn leave(&self);
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn enter(&self) {
        self.store(1, Ordering::Relaxed);
        // The processor is taken care of by the other's barrier, the compiler is not.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn leave(&self) {
        self.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Sections {
        Sections::new(&Span::anonymous(Sections::BYTES).unwrap()).unwrap()
    }

    fn used(sections: &Sections) -> usize {
        sections.owners.iter().filter(|owner| owner.load(Ordering::Relaxed) != 0).count()
    }

    #[test]
    fn are_seen_while_somebody_is_inside() {
        let sections = sections();
        assert!(barrier::everywhere() && Sections::are_empty(&sections._memory));
        for _ in 0..2 {
            let section = sections.enter();
            assert!(!Sections::are_empty(&sections._memory));
            drop(section);
            assert!(Sections::are_empty(&sections._memory));
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
                assert!(
                    Sections::are_empty(&both[there]._memory) && !Sections::are_empty(&both[here]._memory)
                );
            }
        }
        assert_eq!((used(&both[0]), used(&both[1])), (1, 1));
    }

    #[test]
    fn threads_know_what_they_have_stored() {
        let sections = sections();
        let is_ordered = || {
            let (thread, ordered) = sections.ordered();
            ordered.load(Ordering::Relaxed) == thread
        };
        let account = || {
            let first = is_ordered();
            sections.order_stores();
            let second = is_ordered();
            drop(sections.enter());
            let third = is_ordered();
            sections.stores();
            [first, second, third, is_ordered()]
        };
        for _ in 0..2 {
            assert_eq!(account(), [false, true, true, false]);
        }
        // Of threads that look at the same slot one at most is known, and none is taken for another.
        let gate = std::sync::Barrier::new(4 * SLOTS);
        std::thread::scope(|scope| {
            for _ in 0..4 * SLOTS {
                scope.spawn(|| {
                    gate.wait();
                    for _ in 0..100 {
                        sections.order_stores();
                        sections.stores();
                        assert!(!is_ordered());
                    }
                });
            }
        });
        sections.order_stores();
        assert!(is_ordered());
    }

    #[test]
    fn more_threads_than_slots() {
        const MORE: usize = 7;
        let sections = sections();
        let gate = std::sync::Barrier::new(SLOTS + MORE + 1);
        std::thread::scope(|scope| {
            for _ in 0..SLOTS + MORE {
                scope.spawn(|| {
                    let section = sections.enter();
                    gate.wait();
                    assert!(!Sections::are_empty(&sections._memory));
                    gate.wait();
                    drop(section);
                    gate.wait();
                });
            }
            gate.wait();
            assert_eq!(sections._memory.word32(OVERFLOW).unwrap().load(Ordering::Relaxed), MORE as u32);
            assert_eq!(used(&sections), SLOTS);
            gate.wait();
            gate.wait();
            assert!(Sections::are_empty(&sections._memory));
        });
        // Scopes end before the destructors of their threads' locals have run.
        while used(&sections) > 0 {
            std::thread::yield_now();
        }
    }

    /// Every thread that enters has a word for itself while it is inside, however slots come and go.
    #[test]
    fn threads_that_come_and_go_share_no_word() {
        let sections = sections();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        std::thread::scope(|scope| {
                            scope.spawn(|| {
                                for _ in 0..50 {
                                    let section = sections.enter();
                                    assert_eq!(section.word.load(Ordering::Relaxed), 1);
                                    assert!(!section.counted);
                                }
                            });
                        });
                    }
                });
            }
        });
        assert!(Sections::are_empty(&sections._memory));
    }
}
