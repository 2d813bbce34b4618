//! Who waits for a lock, and how they learn that it has changed.
//!
//! Ranks of the target's node sleep on the lock's words, ranks of other nodes are represented by the target's agent. Each
//! waiter first counts itself, then looks at the lock; whoever changes the lock first changes it, then looks at the
//! counts: so one of the two sees the other, and no wake-up is lost.

use std::ops::DerefMut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use transom_transport::futex;

use super::lock::{LockKind, Ticket, TicketLock, Word};

/// Longest sleep without a look at the deadline and at failures.
const NAP: Duration = Duration::from_millis(50);

/// A word that threads of several processes sleep on.
pub trait Sleep: Word {
    /// Takes one away.
    fn take_one(&self);
    /// Sleeps while the word is `seen`, until a wake-up. May return for no reason.
    fn sleep_on(&self, seen: u32);
    /// Wakes all who sleep on it.
    fn wake_all(&self);
}

impl Sleep for AtomicU32 {
    fn take_one(&self) {
        self.fetch_sub(1, Ordering::SeqCst);
    }

    fn sleep_on(&self, seen: u32) {
        futex::sleep_on(self, seen, NAP);
    }

    fn wake_all(&self) {
        futex::wake_all(self);
    }
}

/// A ticket that the target's agent holds: for a waiter elsewhere, or for nobody any more.
#[derive(Debug)]
pub struct Represented<R> {
    /// The place in the queue.
    pub ticket: Ticket,
    /// Who is to be told; nobody if the ticket's rank has given up.
    pub waiter: Option<R>,
}

/// A lock and its waiters.
#[derive(Debug)]
pub struct Turns<'a, W> {
    /// The lock.
    pub lock: TicketLock<'a, W>,
    /// Processes that sleep on the lock's words.
    pub sleepers: &'a W,
    /// Tickets that the target's agent holds.
    pub represented: &'a W,
}

impl<W: Sleep> Turns<'_, W> {
    /// The lock has changed: wakes sleepers. Returns whether the target's agent must look, too.
    #[inline(always)]
    pub fn changed(&self) -> bool {
        if self.sleepers.read() > 0 {
            self.wake();
        }
        self.represented.read() > 0
    }

    /// Whether somebody may have to be told of a change that was made: then [`Turns::changed`] tells.
    #[inline(always)]
    pub fn somebody_waits(&self) -> bool {
        self.sleepers.read() > 0 || self.represented.read() > 0
    }

    #[inline(never)]
    fn wake(&self) {
        self.lock.read.wake_all();
        self.lock.write.wake_all();
    }

    /// Sleeps until it is the ticket's turn, and enters; or until `give_up` says why not to wait any longer. Then the ticket
    /// is still in the queue, and somebody must represent it.
    pub fn sleep_until<E>(&self, ticket: Ticket, give_up: impl Fn() -> Result<(), E>) -> Result<(), E> {
        self.sleepers.add_one();
        let word = self.lock.watched(ticket);
        let result = loop {
            let seen = word.read();
            if self.lock.try_enter(ticket) {
                break Ok(());
            }
            if let Err(error) = give_up() {
                break Err(error);
            }
            word.sleep_on(seen);
        };
        self.sleepers.take_one();
        result
    }

    /// Holds a ticket for a waiter who does not see the lock, or for nobody. To be followed by [`Turns::let_in`].
    pub fn represent<R>(&self, held: &mut Vec<Represented<R>>, ticket: Ticket, waiter: Option<R>) {
        held.push(Represented { ticket, waiter });
        self.represented.add_one();
    }

    /// Enters for those represented whose turn it is, and tells them; passes the turns of those who gave up on. `held` locks
    /// the list of the represented.
    pub fn let_in<R, G>(&self, held: impl Fn() -> G, mut tell: impl FnMut(Ticket, R))
    where
        G: DerefMut<Target = Vec<Represented<R>>>,
    {
        loop {
            let mut waiting = held();
            let Some(position) = waiting.iter().position(|w| self.lock.try_enter(w.ticket)) else { return };
            let Represented { ticket, waiter } = waiting.remove(position);
            self.represented.take_one();
            drop(waiting);
            if waiter.is_none() {
                self.lock.release(ticket);
            }
            // The next round looks at the represented.
            self.changed();
            if let Some(waiter) = waiter {
                tell(ticket, waiter);
            }
        }
    }
}

impl Ticket {
    /// The kind as a number of a message's header.
    pub fn code(self) -> u8 {
        u8::from(self.kind == LockKind::Exclusive)
    }

    /// The ticket that a message names.
    pub fn from_wire(code: u8, number: u64) -> Self {
        let kind = if code == 1 { LockKind::Exclusive } else { LockKind::Shared };
        Self { number: number as u32, kind }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
