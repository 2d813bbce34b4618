//! Work requests that are alone at their peer: nothing else is under way there when they are posted, and nothing when they
//! complete. Those of programs that wait for each of their operations are, and go a short way.

use ibverbs::{QueuePair, VerbsError};

use crate::link::{Link, State};
use crate::poll::outcome;
use crate::port::Port;
use crate::work::{Identity, Work};
use crate::works::Works;

/// A peer with a connection, at which nothing is under way and for which nothing waits.
pub(crate) struct Vacant<'a> {
    queue_pair: &'a QueuePair,
    works: &'a mut Works,
    posted: &'a mut usize,
    credits: &'a mut usize,
    id: u64,
}

impl<'a> Vacant<'a> {
    /// The peer, if it is vacant, and there is room for a completion. Counts as a use of its link.
    #[inline(always)]
    pub fn find(
        links: &'a mut [Option<Box<Link>>],
        credits: &'a mut usize,
        uses: &mut u64,
        peer: usize,
    ) -> Option<Self> {
        let Link { state, works, posted, first, confirm, used, .. } = links.get_mut(peer)?.as_deref_mut()?;
        let State::Ready(queue_pair) = state else { return None };
        if !works.is_empty() || confirm.is_some() || *credits == 0 {
            return None;
        }
        *uses += 1;
        *used = *uses;
        let id = Identity::Work { peer: peer as u32, sequence: *first }.number();
        Some(Self { queue_pair, works, posted, credits, id })
    }

    /// Posts a work request of one part, which is not empty. If it is refused the peer is to be lost, with all its work
    /// requests.
    #[inline(always)]
    pub fn post(self, work: Work) -> Result<(), VerbsError> {
        // A copy, so that the compiler need not keep all of `work` in memory.
        let local = work.local;
        let request = work.request(self.id, true, std::slice::from_ref(&local));
        // SAFETY: as in `Link::ring`.
        if let Err(error) = unsafe { self.queue_pair.post_one(&request) } {
            keep(self.works, work);
            return Err(error);
        }
        self.works.push(work);
        *self.posted = 1;
        *self.credits -= 1;
        Ok(())
    }
}

/// A work request was refused.
#[cold]
fn keep(works: &mut Works, work: Work) {
    works.push(work);
}

impl Port {
    /// Whether a poll has nothing to do but to read the completion queue.
    #[inline(always)]
    pub fn is_calm(&self) -> bool {
        let left = self.found.len() | self.dirty.len() | self.waiting.len() | self.connecting.len();
        left == 0 && self.simple
    }

    /// Takes the one completion that was read, if it is the success of a work request that was alone, on a port that is calm:
    /// the context of the caller's operation, and what an atomic found.
    #[inline(always)]
    pub fn take_alone(&mut self) -> Option<(u64, u64)> {
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
        link.first = sequence.wrapping_add(1);
        link.posted = 0;
        link.failures = 0;
        self.credits += 1;
        Some(told)
    }
}
