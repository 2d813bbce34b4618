//! A rank may be killed between its claim of a cell of a queue and its message: nobody else would ever fill that cell.
//!
//! Who lives says while it appends ([`Queue::append`]). So if the next cell is claimed, each rank that lives has been seen to append
//! nothing since, and there is still no message, then the claim is of a rank that is gone.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use transom_transport::TransportResult;

use crate::peer::Peer;
use crate::queue::Queue;

/// What is known of ranks that are gone.
#[derive(Debug, Default)]
pub struct Deaths {
    /// Whether any is.
    pub any: AtomicBool,
    /// A cell that is claimed without a message, and the peers that have been seen to append nothing since; this rank behind them.
    watched: Mutex<(u64, Vec<bool>)>,
}

impl Deaths {
    /// Whether the cell at `head` of this rank's queue will never have a message.
    pub fn is_stuck<'a>(
        &self,
        own: &Queue,
        head: u64,
        peers: impl Iterator<Item = &'a Peer>,
    ) -> TransportResult<bool> {
        if !own.is_claimed(head)? {
            return Ok(false);
        }
        let mut watched = self.watched.lock();
        let (cell, seen) = &mut *watched;
        if *cell != head {
            (*cell, *seen) = (head, Vec::new());
        }
        let alone = own.appends_nothing();
        let quiet = peers.map(|peer| peer.gone.load(Ordering::Acquire) || peer.queue.appends_nothing());
        let quiet: Vec<bool> = quiet.chain([alone]).collect();
        seen.resize(quiet.len(), false);
        seen.iter_mut().zip(quiet).for_each(|(seen, quiet)| *seen |= quiet);
        // The message is looked for last: who was seen to append nothing has finished what it had claimed before.
        Ok(seen.iter().all(|seen| *seen) && !own.ready(head)?)
    }
}

#[cfg(test)]
#[path = "deaths_tests.rs"]
mod tests;
