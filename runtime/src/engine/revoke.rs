//! Revoked communicators: who revokes one tells all members. Where the job goes on when ranks die, each that hears of it for the first
//! time tells some more, so that all hear nevertheless (the fault-tolerance chapter that was proposed to the MPI Forum, `MPIX_Comm_revoke`).

use super::Engine;
use crate::protocol::wire::{HEADER_BYTES, Header, Kind};

/// A group's ranks in the job, ascending: `0-3,7`.
pub(crate) fn ranges(mut ranks: Vec<usize>) -> String {
    ranks.sort_unstable();
    let runs = ranks.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| Some(format!("{}-{}", run.first()?, run.last()?))).collect::<Vec<_>>().join(",")
}

/// The ranks of [`ranges`], if they are of a job of that size.
fn ranks(ranges: &[u8], size: usize) -> Option<Vec<usize>> {
    let mut ranks: Vec<usize> = Vec::new();
    for range in std::str::from_utf8(ranges).ok()?.split(',') {
        let (first, last) = range.split_once('-')?;
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        let is_next = ranks.last().is_none_or(|before| *before < first);
        if !is_next || last < first || last >= size {
            return None;
        }
        ranks.extend(first..=last);
    }
    Some(ranks)
}

/// The members at distances of powers of two on both sides of one: as many steps reach all, by as many ways.
fn neighbours(ranks: &[usize], own: usize) -> Vec<usize> {
    let Ok(place) = ranks.binary_search(&own) else { return Vec::new() };
    let distances =
        std::iter::successors(Some(1), |distance| Some(distance * 2)).take_while(|d| *d < ranks.len());
    let places = distances.flat_map(|d| [place + d, place + ranks.len() - d]);
    let mut found: Vec<usize> =
        places.map(|place| ranks[place % ranks.len()]).filter(|rank| *rank != own).collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Engine {
    /// Revokes a communicator with these members of the job, at all of them.
    pub fn revoke(&self, context: u64, members: Vec<usize>) {
        if !self.dead.revoke(context) {
            return;
        }
        let text = ranges(members.clone());
        self.tell_revoked(context, text.as_bytes(), &members);
        self.have_all_look();
    }

    fn tell_revoked(&self, context: u64, members: &[u8], ranks: &[usize]) {
        let header = self.header(Kind::RevokeContext).in_context(context);
        for peer in ranks.iter().filter(|rank| **rank != self.rank && !self.dead.has(**rank)) {
            let room = self.routes.route(*peer).capabilities.max_message - HEADER_BYTES;
            // Who is not told the members tells nobody.
            self.send_later(*peer, &header, if members.len() > room { &[] } else { members });
        }
    }

    /// A member says that a communicator is revoked. For the agent.
    pub(super) fn heard_of_revocation(&self, header: &Header, members: &[u8]) {
        if !self.dead.revoke(header.context()) {
            return;
        }
        tracing::debug!(rank = self.rank, origin = header.origin, context = header.context(), "revoked");
        match ranks(members, self.size) {
            // Where a death ends the job, all hear from the one that revokes.
            Some(_) if !self.outlives => {}
            Some(ranks) => self.tell_revoked(header.context(), members, &neighbours(&ranks, self.rank)),
            None if members.is_empty() => {}
            None => tracing::warn!(origin = header.origin, "a revocation's list of members makes no sense"),
        }
        // Who polls drives the tasks after this.
        self.progress.interrupt();
        self.tasks.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_travel_as_ranges() {
        assert_eq!(ranges(vec![7, 0, 2, 1]), "0-2,7-7");
        assert_eq!(ranks(b"0-2,7-7", 8), Some(vec![0, 1, 2, 7]));
        for wrong in ["", "8-8", "2-1", "0-8", "a-b", "0-1,1-2", "3-4,0-1", "1"] {
            assert_eq!(ranks(wrong.as_bytes(), 8), None, "{wrong}");
        }
    }

    /// Whoever hears first, all hear, although some that tell others are gone.
    #[test]
    fn neighbours_reach_all() {
        for (size, dead) in [(2, vec![]), (5, vec![2]), (16, vec![1, 2]), (33, vec![3, 4, 5])] {
            let members: Vec<usize> = (0..size).map(|rank| 3 * rank).collect();
            let mut heard = vec![0];
            let mut next = 0;
            while let Some(rank) = heard.get(next).copied() {
                for peer in neighbours(&members, rank) {
                    if !heard.contains(&peer) && !dead.contains(&(peer / 3)) {
                        heard.push(peer);
                    }
                }
                next += 1;
            }
            assert_eq!(heard.len(), size - dead.len());
        }
    }
}
