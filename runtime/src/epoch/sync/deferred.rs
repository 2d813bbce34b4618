//! Locks that a target's agent holds are taken late: small operations are gathered, and travel with the request for the lock.
//! If nothing else is asked for before the unlock, that request is the whole epoch: one message and its reply. What needs an
//! answer, is large, or is of another kind takes the lock, with what has been gathered.
//!
//! At most one lock of a window is to be taken: before another is opened it is. So a lock that excludes others from more than
//! its own target does so. Memory that this process loads and stores itself is locked at once: that asks nobody.

use std::mem;

use parking_lot::MutexGuard;

use super::{Coverage, ticket};
use crate::protocol::gathered::{Gathered, Operation};
use crate::protocol::lock::LockKind;
use crate::protocol::wire::HEADER_BYTES;
use crate::window::{Core, Peer};
use crate::{Class, Result};

/// The lock that is yet to be taken, if there is one, and those that threads are taking: a thread that waits for a lock keeps no
/// other from anything but that lock's target.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    lock: Option<(usize, LockKind)>,
    /// What is to be done as soon as it is taken.
    operations: Gathered,
    /// It could not be taken, which an operation or a flush has reported.
    failed: bool,
    /// Targets whose locks are being taken.
    taking: Vec<usize>,
    /// Targets whose locks could not be taken, while another lock is to be.
    lost: Vec<usize>,
}

/// A lock that this thread takes, and what is to be done then.
struct Taking<'a> {
    target: usize,
    peer: &'a Peer,
    kind: LockKind,
    operations: Gathered,
    failed: bool,
}

impl Deferred {
    /// The lock, if it is this target's.
    fn of(&self, target: usize) -> Option<LockKind> {
        self.lock.filter(|(locked, _)| *locked == target).map(|(_, kind)| kind)
    }

    /// This thread takes the lock, if it is this target's.
    fn begin<'a>(&mut self, target: usize, peer: &'a Peer) -> Option<Taking<'a>> {
        let kind = self.of(target)?;
        self.lock = None;
        self.taking.push(target);
        Some(Taking { target, peer, kind, operations: mem::take(&mut self.operations), failed: self.failed })
    }

    /// It has taken it, or not.
    fn end(&mut self, target: usize, mut operations: Gathered) {
        self.taking.retain(|taking| *taking != target);
        if self.lock.is_none() {
            // Its memory is used again.
            operations.clear();
            self.operations = operations;
        }
    }
}

impl Core {
    /// Whether the lock of a target is taken late.
    pub(super) fn defers_lock(&self, target: usize, peer: &Peer) -> Result<bool> {
        let by_operations_only = self.exposure.regions().is_none() && self.peers.mapped(target).is_none();
        Ok(by_operations_only && self.lock_words("lock", target, peer)?.is_none())
    }

    /// The lock of `target` is to be taken, and no other.
    pub(super) fn defer_lock(&self, kind: LockKind, target: usize, peer: &Peer) {
        let mut deferred = self.access.deferred.lock();
        (deferred.lock, deferred.failed) = (Some((target, kind)), false);
        peer.cover(Coverage::Deferred);
    }

    /// Has an operation that fits travel with the request for the target's lock; one that fetches takes the lock, and its result
    /// is there when the call returns. False, and nothing is done, if it cannot.
    pub(crate) fn gather(
        &self,
        name: &'static str,
        (target, peer): (usize, &Peer),
        offset: usize,
        operation: &Operation<'_>,
        result: &mut [u8],
    ) -> Result<bool> {
        let room = self.member.engine.routes.route(peer.world).capabilities.max_message - HEADER_BYTES;
        let mut deferred = self.deferred_of(target);
        if deferred.of(target).is_none() || !deferred.operations.push(offset as u64, operation, room) {
            return Ok(false);
        }
        if operation.fetched() > 0
            && let Some(taking) = deferred.begin(target, peer)
        {
            drop(deferred);
            let fetched = self.take_deferred(name, taking)?;
            match fetched.get(..result.len()) {
                Some(fetched) => result.copy_from_slice(fetched),
                None => return Err(self.wrong_length(name, target)),
            }
        }
        Ok(true)
    }

    /// The state, when no other thread is taking the target's lock.
    fn deferred_of(&self, target: usize) -> MutexGuard<'_, Deferred> {
        let mut deferred = self.access.deferred.lock();
        while deferred.taking.contains(&target) {
            self.access.taken.wait(&mut deferred);
        }
        deferred
    }

    #[cold]
    fn wrong_length(&self, name: &'static str, target: usize) -> crate::Error {
        self.error(Class::Count, name, "the target's reply is of another length").with_target(target)
    }

    /// Takes the lock, and carries out what was gathered; what that fetches.
    fn take_deferred(&self, name: &'static str, taking: Taking<'_>) -> Result<Vec<u8>> {
        let Taking { target, peer, kind, operations, .. } = taking;
        let claimed = ticket::claim(self, name, (target, peer), kind, Some(&operations), true);
        let mut deferred = self.access.deferred.lock();
        deferred.end(target, operations);
        let taken = match claimed {
            Ok((ticket, fetched)) => {
                peer.held.grant(ticket);
                self.cover_by(target, peer, Coverage::Passive);
                Ok(fetched)
            }
            Err(error) => {
                if deferred.lock.is_none() {
                    (deferred.lock, deferred.failed) = (Some((target, kind)), true);
                } else {
                    deferred.lost.push(target);
                }
                Err(error)
            }
        };
        drop(deferred);
        self.access.taken.notify_all();
        taken
    }

    /// Takes the lock of `target`, if it is to be taken: something comes that cannot travel with the request.
    pub(super) fn take_lock_of(&self, name: &'static str, target: usize, peer: &Peer) -> Result<()> {
        let mut deferred = self.deferred_of(target);
        let taking = deferred.begin(target, peer);
        let lost = deferred.lost.contains(&target);
        drop(deferred);
        match taking {
            Some(taking) => self.take_deferred(name, taking).map(drop),
            None if lost => {
                let message = "the target's lock could not be taken: end this epoch, and open another";
                Err(self.error(Class::RmaSync, name, message).with_target(target))
            }
            None => Ok(()),
        }
    }

    /// Takes the lock that is to be taken, if there is one that no thread is taking.
    pub(super) fn take_lock(&self, name: &'static str) -> Result<()> {
        let mut deferred = self.access.deferred.lock();
        let peer = deferred.lock.and_then(|(target, _)| Some((target, self.peers.get(target)?)));
        let taking = peer.and_then(|(target, peer)| deferred.begin(target, peer));
        drop(deferred);
        taking.map_or(Ok(()), |taking| self.take_deferred(name, taking).map(drop))
    }

    /// Ends the epoch of a lock that is to be taken, all of it by one message. `None` if the lock has been taken.
    pub(super) fn end_deferred(&self, target: usize, peer: &Peer) -> Option<Result<()>> {
        let mut deferred = self.deferred_of(target);
        let Some(taking) = deferred.begin(target, peer) else {
            let lost = deferred.lost.iter().position(|lost| *lost == target)?;
            deferred.lost.swap_remove(lost);
            return Some(Ok(()));
        };
        drop(deferred);
        let Taking { kind, operations, failed, .. } = taking;
        let over = failed && operations.count() == 0;
        let ended = if over {
            Ok(())
        } else {
            ticket::claim(self, "unlock", (target, peer), kind, Some(&operations), false).map(drop)
        };
        self.access.deferred.lock().end(target, operations);
        self.access.taken.notify_all();
        Some(ended)
    }
}
