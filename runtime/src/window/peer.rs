//! A peer's part of a window, as this rank sees it. What costs a system call is found out on first use.

use std::sync::{Arc, OnceLock};

use transom_transport::{RegionKey, Remote};

use super::Core;
use crate::engine::{LockWords, TargetState};
use crate::{Error, Result};

/// A rank's part of a window.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its rank in the job, which messages go to.
    pub world: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Displacement unit in bytes.
    pub unit: usize,
    /// The peer's number of the window.
    pub number: u32,
    /// Key on the transport that leads there.
    pub key: RegionKey,
    /// What is outstanding.
    pub state: Arc<TargetState>,
    pub remote: OnceLock<Remote>,
    pub lock: OnceLock<Option<LockWords>>,
}

impl Core {
    /// The peer's memory, attached.
    #[inline]
    pub fn remote<'a>(&self, operation: &'static str, target: usize, peer: &'a Peer) -> Result<&'a Remote> {
        match peer.remote.get() {
            Some(remote) => Ok(remote),
            None => self.attach(operation, target, peer),
        }
    }

    #[cold]
    fn attach<'a>(&self, operation: &'static str, target: usize, peer: &'a Peer) -> Result<&'a Remote> {
        let engine = &self.member.engine;
        let remote = if peer.world == engine.rank {
            let memory = self.own_memory().clone();
            Remote { peer: peer.world, len: memory.len(), direct: Some(memory), base: 0, key: 0 }
        } else {
            let attached = engine.routes.to(peer.world).attach(peer.world, &peer.key);
            attached.map_err(|e| self.name(Error::transport(operation, &e)).with_target(target))?
        };
        Ok(peer.remote.get_or_init(|| remote))
    }

    /// The peer's lock, if it is in memory that this rank sees.
    #[inline]
    pub fn lock_words<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a LockWords>> {
        match peer.lock.get() {
            Some(words) => Ok(words.as_ref()),
            None => self.find_lock(operation, target, peer),
        }
    }

    #[cold]
    fn find_lock<'a>(
        &self,
        operation: &'static str,
        target: usize,
        peer: &'a Peer,
    ) -> Result<Option<&'a LockWords>> {
        let engine = &self.member.engine;
        let words = if peer.world == engine.rank {
            Some(self.own_lock().clone())
        } else {
            let found = self.member.control.lock_of(&engine.routes, peer.world, peer.number);
            found.map_err(|e| self.name(Error::transport(operation, &e)).with_target(target))?
        };
        Ok(peer.lock.get_or_init(|| words).as_ref())
    }
}
