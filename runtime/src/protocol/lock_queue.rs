//! The queue of a window's lock: its waiters, and their wake-up.
//!
//! Ranks of the target's node sleep on the lock's words (futex); for ranks of other nodes the target's agent holds the
//! tickets. A waiter first counts itself, then checks the lock; a rank that changes the lock does that first, then checks
//! the counts: so one of the two sees the other, and no wake-up is lost.

use std::ops::DerefMut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use transom_transport::futex::{self, Among};

use super::lock::{LockKind, Ticket, TicketLock, Word};

/// Longest sleep without a check of the deadline and of failures.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// A word that threads of several processes sleep on.
pub trait Sleep: Word {
    /// Takes one away.
    fn take_one(&self);
    /// Sleeps while the word is `seen`, until a wake-up. May return for no reason.
    fn sleep_on(&self, seen: u32);
    /// Wakes all threads that sleep on it.
    fn wake_all(&self);
}

impl Sleep for AtomicU32 {
    fn take_one(&self) {
        self.fetch_sub(1, Ordering::SeqCst);
    }

    fn sleep_on(&self, seen: u32) {
        futex::sleep_on(self, seen, LONGEST_SLEEP, Among::Processes);
    }

    fn wake_all(&self) {
        futex::wake_all(self, Among::Processes);
    }
}

/// A ticket that the target's agent holds: for a rank of another node, or for one that has given up.
#[derive(Debug)]
pub struct AgentTicket<R> {
    /// The place in the queue.
    pub ticket: Ticket,
    /// To whom the lock is granted; none if the ticket's rank has given up.
    pub waiter: Option<R>,
}

/// A lock and its waiters.
#[derive(Debug)]
pub struct LockQueue<'a, W> {
    /// The lock.
    pub lock: TicketLock<'a, W>,
    /// Processes that sleep on the lock's words.
    pub sleepers: &'a W,
    /// Tickets that the target's agent holds.
    pub agent_tickets: &'a W,
}

impl<W: Sleep> LockQueue<'_, W> {
    /// The lock has changed: wakes sleepers. Returns whether the target's agent must check, too.
    #[inline(always)]
    pub fn changed(&self) -> bool {
        if self.sleepers.read() > 0 {
            self.wake();
        }
        self.agent_tickets.read() > 0
    }

    /// Whether somebody may have to be told of a change that was made: then [`LockQueue::changed`] tells.
    #[inline(always)]
    pub fn somebody_waits(&self) -> bool {
        self.sleepers.read() > 0 || self.agent_tickets.read() > 0
    }

    #[inline(never)]
    fn wake(&self) {
        self.lock.read.wake_all();
        self.lock.write.wake_all();
    }

    /// Sleeps until the ticket is next, and enters; or until `give_up` says why not to wait any longer. Then the ticket is
    /// still in the queue, and the target's agent must take it over.
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

    /// Has the agent hold a ticket for a rank of another node, or for one that has given up. To be followed by
    /// [`LockQueue::grant`].
    pub fn enqueue_for<R>(&self, held: &mut Vec<AgentTicket<R>>, ticket: Ticket, waiter: Option<R>) {
        held.push(AgentTicket { ticket, waiter });
        self.agent_tickets.add_one();
    }

    /// Joins the queue for a rank of another node. If the lock is free it is taken, and `now` told: it says whether the rank
    /// keeps it. Else the agent holds the ticket for `later`. To be followed by [`LockQueue::grant`]; `held` as there.
    pub fn admit<R, G>(
        &self,
        kind: LockKind,
        held: impl Fn() -> G,
        now: impl FnOnce(Ticket) -> bool,
        later: impl FnOnce() -> R,
    ) where
        G: DerefMut<Target = Vec<AgentTicket<R>>>,
    {
        let ticket = self.lock.draw(kind);
        if !self.lock.try_enter(ticket) {
            return self.enqueue_for(&mut held(), ticket, Some(later()));
        }
        if !now(ticket) {
            self.lock.release(ticket);
        }
        // Whom the agent represents is looked at by who grants.
        self.changed();
    }

    /// Takes the lock for the agent's tickets that are next, and calls `tell` for each, which says whether its rank keeps the
    /// lock; releases it at once for those that do not, and for ranks that have given up. `held` locks the list of these
    /// tickets.
    pub fn grant<R, G>(&self, held: impl Fn() -> G, mut tell: impl FnMut(Ticket, R) -> bool)
    where
        G: DerefMut<Target = Vec<AgentTicket<R>>>,
    {
        loop {
            let mut waiting = held();
            let Some(position) = waiting.iter().position(|w| self.lock.try_enter(w.ticket)) else { return };
            let AgentTicket { ticket, waiter } = waiting.remove(position);
            self.agent_tickets.take_one();
            drop(waiting);
            if !waiter.is_some_and(|waiter| tell(ticket, waiter)) {
                self.lock.release(ticket);
            }
            // The next round looks at the agent's tickets.
            self.changed();
        }
    }
}

/// A rank that the agent represents gives up: its ticket stays where it is, and nobody is told when it is served. The rank, if
/// the lock has not been granted to it.
pub fn withdraw<R>(held: &mut [AgentTicket<R>], is_it: impl Fn(&R) -> bool) -> Option<R> {
    held.iter_mut().find_map(|held| held.waiter.take_if(|waiter| is_it(waiter)))
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
#[path = "lock_queue_tests.rs"]
mod tests;
