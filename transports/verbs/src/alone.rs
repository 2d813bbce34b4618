//! Work requests that are alone at their peer: nothing else is under way there when they are posted, and nothing when they
//! complete. Those of programs that wait for each of their operations are, and go a short way.

use ibverbs::VerbsError;

use crate::link::{Link, State};
use crate::poll::outcome;
use crate::port::Port;
use crate::work::{Identity, Work};

impl Link {
    /// Whether a work request can be posted at once: there is a connection, nothing is under way at the peer, and nothing waits.
    #[inline(always)]
    pub fn is_vacant(&self) -> bool {
        matches!(self.state, State::Ready(_)) && self.works.is_empty() && self.confirm.is_none()
    }
}

impl Port {
    /// Whether the next work request to a peer, if it has no list, is posted when it is submitted, alone.
    #[inline(always)]
    pub fn is_vacant(&self, peer: usize) -> bool {
        match self.links.get(peer) {
            Some(Some(link)) => link.is_vacant() && self.credits > 0,
            _ => false,
        }
    }

    /// Posts a work request without a list to a peer that is vacant ([`Port::is_vacant`]).
    #[inline(always)]
    pub fn submit_alone(&mut self, peer: usize, work: Work) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let State::Ready(queue_pair) = &link.state else { return };
        self.uses += 1;
        link.used = self.uses;
        let id = Identity::Work { peer: peer as u32, sequence: link.first }.number();
        // A copy, so that the compiler need not keep all of `work` in memory.
        let local = work.local;
        // SAFETY: as in `Link::ring`.
        let posted = unsafe { queue_pair.post_one(&work.request(id, true, std::slice::from_ref(&local))) };
        if let Err(error) = posted {
            return self.refused_alone(peer, work, &error);
        }
        link.works.push(work);
        link.posted = 1;
        self.credits -= 1;
    }

    /// The peer is lost, with all its work requests.
    #[cold]
    fn refused_alone(&mut self, peer: usize, work: Work, error: &VerbsError) {
        if let Some(Some(link)) = self.links.get_mut(peer) {
            link.push(work);
        }
        self.refused(peer, &error.to_string());
    }

    /// Takes the one completion that was read, if it is the success of a work request that was alone, and nothing else is to be
    /// done: the context of the caller's operation, and what an atomic found.
    #[inline(always)]
    pub fn take_alone(&mut self) -> Option<(u64, u64)> {
        let busy = !(self.found.is_empty() && self.dirty.is_empty() && self.waiting.is_empty());
        if busy || !self.connecting.is_empty() || self.mailboxes.is_some() {
            return None;
        }
        let entry = &self.entries[0];
        let Identity::Work { peer, sequence } = Identity::of(entry.id()) else { return None };
        let link = self.links.get_mut(peer as usize)?.as_deref_mut()?;
        if !entry.is_success() || link.posted != 1 || link.works.len() != 1 || link.first != sequence {
            return None;
        }
        let work = link.works.get(0)?;
        if work.hold.is_some() {
            return None;
        }
        let told = match work.slot {
            None => (work.reports()?, 0),
            Some(slot) => {
                let pool = if slot.large { &mut self.large } else { &mut self.small };
                let told = outcome(work, pool, slot.index, None)?;
                pool.give(slot.index);
                told
            }
        };
        link.works.drop_first();
        link.first = link.first.wrapping_add(1);
        link.posted = 0;
        link.failures = 0;
        self.credits += 1;
        Some(told)
    }
}
