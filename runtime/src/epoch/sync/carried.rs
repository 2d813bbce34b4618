//! Small operations of an epoch of fence or start travel with the message that tells their target of the epoch's end, where
//! that message is all that the end waits for: then the whole epoch is one message.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Coverage;
use crate::Result;
use crate::operation;
use crate::protocol::gathered::{Gathered, Operation, WINDOW_BYTES};
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::window::{Core, Peer};

/// Bytes of the largest that do: what is larger is better on its way.
const MOST: usize = 1024;

/// What waits for the end of the epoch, by target.
#[derive(Debug, Default)]
pub(super) struct Carried {
    of: Mutex<BTreeMap<usize, Gathered>>,
    /// Of how many targets: most often none. A thread that relies on others' operations is ordered behind these by the program.
    targets: AtomicUsize,
}

impl Carried {
    fn push(&self, target: usize, offset: usize, operation: &Operation<'_>, room: usize) -> bool {
        let mut of = self.of.lock();
        let pushed = of.entry(target).or_default().push(offset as u64, operation, room);
        self.targets.store(of.len(), Ordering::Relaxed);
        pushed
    }

    #[inline]
    fn take(&self, target: usize) -> Option<Gathered> {
        if self.targets.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut of = self.of.lock();
        let taken = of.remove(&target);
        self.targets.store(of.len(), Ordering::Relaxed);
        taken.filter(|carried| carried.count() > 0)
    }

    fn targets(&self) -> Vec<usize> {
        self.of.lock().keys().copied().collect()
    }
}

impl Core {
    /// Has an operation that fetches nothing wait for the end of the epoch. False, and nothing is done, if it cannot.
    pub(crate) fn carry(
        &self,
        name: &'static str,
        (target, peer): (usize, &Peer),
        offset: usize,
        operation: &Operation<'_>,
    ) -> Result<bool> {
        let most = self.member.engine.routes.route(peer.world).capabilities.max_message;
        let room = most - HEADER_BYTES - WINDOW_BYTES;
        let small = operation.bytes() <= MOST && operation.fetched() == 0;
        if !small || peer.coverage() != Coverage::Active || !self.ends_in_order(peer) {
            return Ok(false);
        }
        let push = || self.access.carried.push(target, offset, operation, room);
        if push() {
            return Ok(true);
        }
        self.send_carried(name, target, peer)?;
        Ok(push())
    }

    /// What waits for the end of the epoch at a target.
    #[inline]
    pub(super) fn take_carried(&self, target: usize) -> Option<Gathered> {
        self.access.carried.take(target)
    }

    /// Sends to all targets what waits for an end of the epoch that is not told.
    pub(super) fn send_all_carried(&self, name: &'static str) -> Result<()> {
        let targets = self.access.carried.targets();
        let mut result = Ok(());
        for target in targets {
            let sent = self.peers.get(target).map_or(Ok(()), |peer| self.send_carried(name, target, peer));
            result = result.and(sent);
        }
        result
    }

    /// Sends what waits for the end of the epoch before that: something comes that must not overtake it.
    #[inline]
    pub(crate) fn send_carried(&self, name: &'static str, target: usize, peer: &Peer) -> Result<()> {
        match self.take_carried(target) {
            None => Ok(()),
            Some(carried) => self.send_taken(name, peer, &carried),
        }
    }

    #[cold]
    fn send_taken(&self, name: &'static str, peer: &Peer, carried: &Gathered) -> Result<()> {
        let mut header = self.member.engine.header(Kind::Apply);
        (header.window, header.count) = (peer.number, carried.count());
        operation::send_counted(self, name, peer, true, (&header, carried.payload()))
            .map_err(|e| self.name(e))
    }
}
