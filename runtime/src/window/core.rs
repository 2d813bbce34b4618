//! A window apart from its element type: memory, peers, hints, open epochs. Knows ranges and displacement units.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::{Region, Span, TransportError, TransportResult};

use super::copies::Copies;
use super::created::Created;
use super::domain::Domain;
use super::dynamic::Attachment;
use super::options::{Flavour, Hints, LiveHints, MemoryModel};
use super::peer::Peer;
use super::table::Peers;
use crate::engine::{Exposure, LockWords};
use crate::epoch::AccessState;
use crate::explain::{Counters, WindowLabel};
use crate::heap::Block;
use crate::job::Member;
use crate::protocol::wire::Kind;
use crate::shortcut::ShortCut;
use crate::{Class, Communicator, Error, NULL_RANK, Result};

/// How long a revocation waits for the agents of the peers: they sleep in the kernel and answer in microseconds.
const REVOKE_LIMIT: Duration = Duration::from_secs(2);

/// A window without its element type.
#[derive(Debug)]
pub(crate) struct Core {
    pub member: Arc<Member>,
    /// The ranks, with a context of its own.
    pub comm: Communicator,
    /// This rank in `comm`, where every epoch finds it.
    pub rank: usize,
    /// What the ranks are called in messages.
    pub title: &'static str,
    /// This rank's number of the window.
    pub number: u32,
    pub exposure: Arc<Exposure>,
    pub peers: Peers,
    /// The epochs that are open.
    pub access: AccessState,
    /// What stands ready for operations on mapped memory.
    pub shortcut: ShortCut,
    pub flavour: Flavour,
    pub hints: Hints,
    /// Those that can change.
    pub live: LiveHints,
    /// Operations by path, if they are counted.
    pub counters: Option<Arc<Counters>>,
    pub name: Mutex<String>,
    /// What the owner loads from and stores to.
    pub local: Span,
    /// The two copies, in the separate memory model.
    pub copies: Option<Copies>,
    /// Memory attached to a dynamic window, by address.
    pub attachments: Mutex<BTreeMap<usize, Attachment>>,
    /// Dropped with the window.
    pub registrations: Mutex<Vec<Box<dyn Region>>>,
    /// [`Exposure::private`], where every atomic finds it.
    pub private: bool,
    /// Who updates elements of 8 bytes.
    pub domain: Domain,
    /// Whether peers access the user's memory, which is valid as long as the window only.
    pub user_memory: bool,
    /// How peers of this node reach it. Dropped after they have ended all access.
    pub created: Option<Created>,
    /// What pages its memory has, if any were asked for.
    pub pages: Option<String>,
    /// The block of this rank's heap that others access, shared with windows that overlap this one.
    pub block: Option<Arc<Block>>,
    /// All ranks have agreed to access it no more.
    pub freed: AtomicBool,
    /// Whether it is a view ([`Core::view`]) of the window, which is another's.
    pub is_view: bool,
}

impl Core {
    /// This rank in the window.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// [`super::Window::promise_threads`].
    pub fn promise_threads(&self, one_at_a_time: bool) {
        if one_at_a_time {
            self.access.open.promise_one_thread();
        } else {
            self.shortcut.share();
        }
    }

    /// An error with this rank and window.
    #[cold]
    pub fn name(&self, error: Error) -> Error {
        error.at_rank(self.member.engine.rank).in_window(self.number)
    }

    #[cold]
    pub fn error(&self, class: Class, operation: &'static str, message: impl Into<String>) -> Error {
        self.name(Error::new(class, operation, message))
    }

    /// What a transport reported of an operation to `target`.
    #[cold]
    pub fn failed(&self, operation: &'static str, target: usize, error: &TransportError) -> Error {
        let failed = self.name(Error::transport(operation, error)).with_target(target);
        match error {
            // Who cannot be reached is gone, most often, before the launcher tells.
            TransportError::Peer { peer, .. } if self.member.engine.outlives => {
                self.member.engine.dead.suspect(*peer, &failed);
                failed.with_dead(*peer)
            }
            _ => failed,
        }
    }

    /// The target of an operation; `None` for the null rank.
    #[inline]
    pub fn target(&self, operation: &'static str, target: usize) -> Result<Option<&Peer>> {
        match self.peers.get(target) {
            Some(peer) => Ok(Some(peer)),
            None if target == NULL_RANK => Ok(None),
            None => Err(self.no_such_rank(operation, target)),
        }
    }

    #[cold]
    fn no_such_rank(&self, operation: &'static str, target: usize) -> Error {
        let last = self.peers.len() - 1;
        self.error(Class::Rank, operation, format!("{} has ranks 0 to {last}, not {target}", self.title))
            .with_target(target)
    }

    /// Byte offset of an access of `bytes` bytes at `displacement`, if it is inside the target's window.
    #[inline]
    pub fn locate(
        &self,
        operation: &'static str,
        target: usize,
        peer: &Peer,
        displacement: usize,
        bytes: usize,
    ) -> Result<usize> {
        match displacement.checked_mul(peer.unit) {
            Some(offset) if offset <= peer.bytes && bytes <= peer.bytes - offset => Ok(offset),
            _ => Err(self.out_of_range(operation, (target, peer), displacement, bytes)),
        }
    }

    /// Byte offset of an access that reaches from byte `low` to byte `high`, counted from `displacement`, if it is inside
    /// the target's window.
    pub fn locate_span(
        &self,
        operation: &'static str,
        (target, peer): (usize, &Peer),
        displacement: usize,
        (low, high): (i64, i64),
    ) -> Result<usize> {
        let start = (displacement as u128 * peer.unit as u128).cast_signed().checked_add(i128::from(low));
        let bytes = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX);
        match start.and_then(|start| usize::try_from(start).ok()) {
            Some(start) if self.flavour == Flavour::Dynamic => Ok(start),
            Some(start) if start <= peer.bytes && bytes <= peer.bytes - start => Ok(start),
            _ => Err(self.out_of_range(operation, (target, peer), displacement, bytes)),
        }
    }

    #[cold]
    fn out_of_range(
        &self,
        operation: &'static str,
        (target, peer): (usize, &Peer),
        displacement: usize,
        bytes: usize,
    ) -> Error {
        let message = format!(
            "{bytes} bytes at displacement {displacement} are outside the target's window of {} bytes (displacement \
             unit {} bytes)",
            peer.bytes, peer.unit
        );
        self.error(Class::RmaRange, operation, message).with_target(target)
    }

    /// This rank's own lock.
    pub fn own_lock(&self) -> &LockWords {
        &self.exposure.lock
    }

    /// A synchronisation at which local stores become visible in the public copy (rule 5).
    #[inline]
    pub fn publish(&self, operation: &'static str) -> Result<()> {
        self.reconcile(operation, Copies::publish)
    }

    /// A synchronisation at which others' updates become visible in the private copy (rule 6).
    #[inline]
    pub fn refresh(&self, operation: &'static str) -> Result<()> {
        self.reconcile(operation, Copies::refresh)
    }

    #[inline]
    fn reconcile(
        &self,
        operation: &'static str,
        propagate: impl Fn(&Copies) -> TransportResult<()>,
    ) -> Result<()> {
        let failed = |e| self.name(Error::transport(operation, &e));
        if let Some(copies) = &self.copies {
            propagate(copies).map_err(failed)?;
        }
        if self.flavour == Flavour::Dynamic && self.hints.model == MemoryModel::Separate {
            let attachments = self.attachments.lock();
            attachments.values().filter_map(|a| a.copies.as_ref()).try_for_each(propagate).map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.is_view {
            return;
        }
        let engine = &self.member.engine;
        if let Some(counters) = &self.counters {
            let memory = self.created.as_ref().map(Created::text);
            let window = WindowLabel { number: self.number, name: self.name.get_mut(), created: memory };
            self.member.reporter.window(&window, &counters.explanation());
            engine.tally.close(counters);
        }
        engine.exposures.remove(self.number);
        engine.forget_waiting(self.comm.context(), u64::MAX);
        let regions = self.exposure.regions().map(|regions| regions.detach_all()).unwrap_or_default();
        if self.user_memory || !regions.is_empty() {
            let peers = (0..self.peers.len()).filter(|rank| *rank != self.rank());
            let shared = peers.filter(|rank| engine.routes.to(self.peers.world(*rank)).name() == "shm");
            self.notify_agents(shared, Kind::Revoke, 0);
        }
        drop(regions);
        self.attachments.lock().clear();
        self.registrations.lock().clear();
        let freed = *self.freed.get_mut();
        self.member.control.close(self.number, freed);
        if let Some(block) = &self.block
            && !freed
        {
            block.quarantine();
        }
    }
}

impl Core {
    /// Notifies the agents of ranks of this window that memory is about to be freed, and waits for their acknowledgements,
    /// also while the ranks compute, and in a job that has failed.
    pub fn notify_agents(&self, ranks: impl Iterator<Item = usize>, kind: Kind, address: usize) {
        let engine = &self.member.engine;
        let mut waiting = Vec::new();
        for rank in ranks {
            let world = self.peers.world(rank);
            let (request, reply) = engine.requests.open(None);
            let mut header = engine.header(kind);
            header.window = self.peers.number(rank);
            header.request = request;
            header.offset = address as u64;
            engine.send_later(world, &header, &[]);
            waiting.push((world, reply));
        }
        let start = Instant::now();
        while !waiting.is_empty() && start.elapsed() < REVOKE_LIMIT {
            // A broken transport has been reported, and the others may still answer.
            if !matches!(engine.poll(), Ok(found) if found > 0) {
                std::thread::yield_now();
            }
            waiting.retain(|(rank, reply)| {
                let is_gone = engine.has_left(*rank) || engine.dead.has(*rank);
                reply.outcome().is_none() && !is_gone
            });
        }
        if !waiting.is_empty() && self.member.is_alive() {
            let ranks: Vec<usize> = waiting.iter().map(|(rank, _)| *rank).collect();
            tracing::error!(
                ?ranks,
                "no answer: these ranks are stopped or gone, and must not touch freed memory"
            );
        }
    }
}
