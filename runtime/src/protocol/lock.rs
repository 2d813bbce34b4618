//! The lock of a window at one rank: a fair ticket lock for readers (shared) and writers (exclusive), three words.
//!
//! Everyone takes a ticket. `write` counts the tickets released, so a writer may enter when it equals its ticket; `read` is
//! the ticket up to which readers may enter, so consecutive readers enter together and no reader overtakes a writer. After
//! J. Mellor-Crummey and M. Scott, "Scalable reader-writer synchronization", 1991.
//!
//! The words lie in memory that all ranks of the target's node map; for ranks of other nodes the target's agent holds
//! tickets. Taking an uncontended exclusive lock is one atomic instruction, releasing it another.

use std::sync::atomic::{AtomicU32, Ordering};

/// A 32-bit word that several ranks update: the CPU's atomic, or a model checker's.
pub trait Word {
    /// Adds one, returns what was there.
    fn add_one(&self) -> u32;
    /// Reads.
    fn read(&self) -> u32;
    /// Writes; everything later in this thread comes after it.
    fn write(&self, value: u32);
    /// Writes; this thread executes an atomic instruction before anything that has to come after it.
    fn write_before_atomic(&self, value: u32) {
        self.write(value);
    }
}

impl Word for AtomicU32 {
    #[inline]
    fn add_one(&self) -> u32 {
        self.fetch_add(1, Ordering::SeqCst)
    }

    #[inline]
    fn read(&self) -> u32 {
        self.load(Ordering::SeqCst)
    }

    #[inline]
    fn write(&self, value: u32) {
        self.store(value, Ordering::SeqCst);
    }

    #[inline]
    fn write_before_atomic(&self, value: u32) {
        // On x86 an atomic instruction makes all earlier stores of its thread visible (Intel SDM vol. 3, §9.2.3.9).
        let order = if cfg!(target_arch = "x86_64") { Ordering::Release } else { Ordering::SeqCst };
        self.store(value, order);
    }
}

/// How a lock excludes others (MPI-4.1 §12.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Other shared locks may be held at the same time.
    Shared,
    /// No other lock is held at the same time.
    Exclusive,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The number drawn.
    pub number: u32,
    /// What it waits for.
    pub kind: LockKind,
}

/// The three words of a lock.
#[derive(Debug)]
pub struct TicketLock<'a, W> {
    /// The next ticket.
    pub next: &'a W,
    /// Readers with this ticket may enter.
    pub read: &'a W,
    /// Tickets released.
    pub write: &'a W,
}

impl<W: Word> TicketLock<'_, W> {
    /// Joins the queue.
    #[inline]
    pub fn draw(&self, kind: LockKind) -> Ticket {
        Ticket { number: self.next.add_one(), kind }
    }

    /// Enters if the ticket is next. A reader that enters admits the next reader: then others may have to be woken. To be
    /// called until it succeeds, and not after.
    #[inline]
    pub fn try_enter(&self, ticket: Ticket) -> bool {
        match ticket.kind {
            LockKind::Exclusive => self.write.read() == ticket.number,
            LockKind::Shared if self.read.read() == ticket.number => {
                self.read.write(ticket.number.wrapping_add(1));
                true
            }
            LockKind::Shared => false,
        }
    }

    /// The word that changes before the ticket is served.
    pub fn watched(&self, ticket: Ticket) -> &W {
        match ticket.kind {
            LockKind::Exclusive => self.write,
            LockKind::Shared => self.read,
        }
    }

    /// Leaves. Others may have to be woken.
    #[inline]
    pub fn release(&self, ticket: Ticket) {
        if ticket.kind == LockKind::Exclusive {
            self.read.write_before_atomic(ticket.number.wrapping_add(1));
        }
        self.write.add_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_lock<R>(test: impl FnOnce(TicketLock<'_, AtomicU32>) -> R) -> R {
        // Start next to the wrap-around, which must not matter.
        let words: [AtomicU32; 3] = std::array::from_fn(|_| AtomicU32::new(u32::MAX - 2));
        test(TicketLock { next: &words[0], read: &words[1], write: &words[2] })
    }

    #[test]
    fn readers_share_writers_do_not_nobody_overtakes() {
        with_lock(|lock| {
            for _ in 0..3 {
                let [a, b] = [(); 2].map(|()| lock.draw(LockKind::Shared));
                let w = lock.draw(LockKind::Exclusive);
                let c = lock.draw(LockKind::Shared);
                assert!(lock.try_enter(a));
                assert!(lock.try_enter(b));
                assert!(!lock.try_enter(w));
                assert!(!lock.try_enter(c), "a later reader must not overtake a waiting writer");
                lock.release(b);
                assert!(!lock.try_enter(w));
                lock.release(a);
                assert!(lock.try_enter(w));
                assert!(!lock.try_enter(c));
                lock.release(w);
                assert!(lock.try_enter(c));
                lock.release(c);
            }
        });
    }
}

/// Three participants under a model checker: sequentially consistent interleavings, at random and by priorities (PCT).
#[cfg(test)]
mod shuttle_tests {
    use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use shuttle::sync::{Arc, Condvar, Mutex};

    use super::*;

    impl Word for AtomicU32 {
        fn add_one(&self) -> u32 {
            self.fetch_add(1, Ordering::SeqCst)
        }

        fn read(&self) -> u32 {
            self.load(Ordering::SeqCst)
        }

        fn write(&self, value: u32) {
            self.store(value, Ordering::SeqCst);
        }
    }

    struct Shared {
        words: [AtomicU32; 3],
        readers: AtomicUsize,
        writers: AtomicUsize,
        sleep: Mutex<()>,
        wake: Condvar,
    }

    fn participate(shared: &Shared, kind: LockKind) {
        let [next, read, write] = &shared.words;
        let lock = TicketLock { next, read, write };
        let ticket = lock.draw(kind);
        let mut asleep = shared.sleep.lock().unwrap();
        while !lock.try_enter(ticket) {
            asleep = shared.wake.wait(asleep).unwrap();
        }
        drop(asleep);
        changed(shared);
        match kind {
            LockKind::Exclusive => {
                assert_eq!(shared.writers.fetch_add(1, Ordering::Relaxed), 0);
                assert_eq!(shared.readers.load(Ordering::Relaxed), 0);
                shared.writers.fetch_sub(1, Ordering::Relaxed);
            }
            LockKind::Shared => {
                shared.readers.fetch_add(1, Ordering::Relaxed);
                assert_eq!(shared.writers.load(Ordering::Relaxed), 0);
                shared.readers.fetch_sub(1, Ordering::Relaxed);
            }
        }
        lock.release(ticket);
        changed(shared);
    }

    /// Wakes those whose tickets may be next, as the futex does.
    fn changed(shared: &Shared) {
        let _asleep = shared.sleep.lock().unwrap();
        shared.wake.notify_all();
    }

    fn model(kinds: [LockKind; 3]) {
        let run = move || {
            let shared = Arc::new(Shared {
                words: std::array::from_fn(|_| AtomicU32::new(0)),
                readers: AtomicUsize::new(0),
                writers: AtomicUsize::new(0),
                sleep: Mutex::new(()),
                wake: Condvar::new(),
            });
            let threads: Vec<_> = kinds[1..]
                .iter()
                .map(|kind| {
                    let (shared, kind) = (shared.clone(), *kind);
                    shuttle::thread::spawn(move || participate(&shared, kind))
                })
                .collect();
            participate(&shared, kinds[0]);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        };
        shuttle::check_random(run, 4_000);
        shuttle::check_pct(run, 4_000, 3);
    }

    #[test]
    fn shuttle_three_writers_exclude_each_other() {
        model([LockKind::Exclusive; 3]);
    }

    #[test]
    fn shuttle_a_writer_excludes_two_readers() {
        model([LockKind::Exclusive, LockKind::Shared, LockKind::Shared]);
    }

    #[test]
    fn shuttle_two_writers_and_a_reader() {
        model([LockKind::Shared, LockKind::Exclusive, LockKind::Exclusive]);
    }
}
