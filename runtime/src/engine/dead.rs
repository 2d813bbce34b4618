//! Ranks that are gone while the job goes on (`transom run --on-failure notify`): the launcher tells of them, at all ranks in the
//! same order. Calls that wait for one of them return an error instead, and its locks are taken back.
//!
//! A rank that has left the job in good order is gone, too: who still waits for it would wait for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::{Engine, locks};
use crate::comm::Group;
use crate::waits::{Awaits, Board, ON_FAILURE, Subject};
use crate::{Class, Error, Result};

/// How long a wait has lasted before it asks for deaths itself: the thread that sleeps on the transports is told of them.
const LOOK_AFTER: Duration = Duration::from_millis(1);
/// How long a transport may take to end what is under way at a dead rank, or on a communicator that is revoked. Memory is in use until then.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
/// How long the launcher may take to tell of the death of a rank to which a connection was lost.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// What is known of ranks that are gone.
#[derive(Debug, Default)]
pub(crate) struct Dead {
    /// Whether any rank is gone, or any communicator is revoked.
    any: AtomicBool,
    /// In the order in which the launcher told of them.
    ranks: RwLock<Vec<usize>>,
    /// When the last of them was told of, or a communicator revoked.
    since: Mutex<Option<Instant>>,
    /// Contexts of communicators that are revoked.
    revoked: RwLock<BTreeSet<u64>>,
    /// Peers to which a connection was lost, when, and how.
    suspects: Mutex<BTreeMap<usize, (Instant, Error)>>,
}

impl Dead {
    /// Whether any rank is gone, or any communicator is revoked: calls have to look further.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether this one is.
    pub fn has(&self, rank: usize) -> bool {
        self.any() && self.ranks.read().contains(&rank)
    }

    /// All that are.
    pub fn ranks(&self) -> Vec<usize> {
        self.ranks.read().clone()
    }

    /// Whether a communicator is revoked.
    pub fn is_revoked(&self, context: u64) -> bool {
        self.any() && self.revoked.read().contains(&context)
    }

    /// Whether what is under way may not have ended since the last death or revocation.
    fn has_news(&self) -> bool {
        self.since.lock().is_some_and(|since| since.elapsed() < ENDS_WITHIN)
    }

    /// Revokes a communicator; false if it was.
    pub(super) fn revoke(&self, context: u64) -> bool {
        let is_new = self.revoked.write().insert(context);
        if is_new {
            *self.since.lock() = Some(Instant::now());
        }
        self.any.store(true, Ordering::Release);
        is_new
    }

    /// A connection was lost.
    pub fn suspect(&self, peer: usize, error: &Error) {
        tracing::debug!(peer, %error, "a peer is lost");
        self.suspects.lock().entry(peer).or_insert_with(|| (Instant::now(), error.clone()));
    }

    /// Whether a connection was lost to a rank of which no death is known.
    fn is_open(&self) -> bool {
        self.suspects.lock().keys().any(|peer| !self.has(*peer))
    }

    /// The error of a connection that was lost to a rank that lives.
    fn unexplained(&self) -> Option<Error> {
        let suspects = self.suspects.lock();
        let late = |(peer, (since, error)): (&usize, &(Instant, Error))| {
            (since.elapsed() >= TOLD_WITHIN && !self.has(*peer)).then(|| error.clone())
        };
        suspects.iter().find_map(late)
    }
}

/// How often is looked whether a lost peer has died.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Whether this job goes on when a rank dies.
///
/// # Errors
/// It should, but nobody tells of deaths.
pub(super) fn outlives(board: Option<&Board>, ranks: usize) -> Result<bool> {
    match std::env::var_os(ON_FAILURE) {
        Some(value) if value == "notify" => {}
        _ => return Ok(false),
    }
    if board.is_some_and(|board| board.tells_deaths(ranks)) {
        return Ok(true);
    }
    let message = format!(
        "{ON_FAILURE} is notify, but whoever started this process tells nothing of ranks that die: start the job by \
         `transom run --on-failure notify`, with the descriptors that it passes, or unset the variable"
    );
    Err(Error::new(Class::Launch, "init", message))
}

impl Engine {
    /// Looks for ranks that are gone since the last time.
    #[cold]
    pub fn look_for_deaths(&self) {
        let Some(board) = self.board.as_ref().filter(|_| self.outlives) else { return };
        let mut ranks = self.dead.ranks.write();
        let new = board.deaths_behind(ranks.len());
        if new.is_empty() {
            return;
        }
        tracing::debug!(rank = self.rank, ?new, "ranks are gone");
        ranks.extend(&new);
        *self.dead.since.lock() = Some(Instant::now());
        drop(ranks);
        self.dead.any.store(true, Ordering::Release);
        self.routes.transports().iter().for_each(|transport| transport.forget(&new));
        self.outbox.forget(&new);
        for (window, exposure) in self.exposures.all() {
            locks::recover(self, window, &exposure);
        }
        self.have_all_look();
    }

    /// Calls that wait are to find out that they do so in vain. Not for the agent.
    pub(super) fn have_all_look(&self) {
        if !self.tasks.is_empty() {
            self.tasks.drive();
        }
        self.progress.interrupt();
        self.tasks.wake_all();
        self.wake();
    }

    /// What the beginning of a call looks at: that its communicator is not revoked, and the rank that it sends to not gone.
    #[inline]
    pub fn check_use(&self, operation: &'static str, context: u64, to: Option<usize>) -> Result<()> {
        if self.dead.any() { self.check_use_further(operation, context, to) } else { Ok(()) }
    }

    #[cold]
    fn check_use_further(&self, operation: &'static str, context: u64, to: Option<usize>) -> Result<()> {
        self.check_revoked(operation, context)?;
        match to.filter(|rank| self.dead.has(*rank)) {
            Some(rank) => Err(self.death_of(operation, rank, "needs it")),
            None => Ok(()),
        }
    }

    /// That a communicator is not revoked.
    pub fn check_revoked(&self, operation: &'static str, context: u64) -> Result<()> {
        if !self.dead.is_revoked(context) {
            return Ok(());
        }
        let message = "the communicator is revoked: agree, shrink it, and go on with the result";
        Err(Error::new(Class::Revoked, operation, message).at_rank(self.rank))
    }

    /// Why who looks at an operation again and again does so in vain, if so.
    #[inline]
    pub fn in_vain(&self, operation: &'static str, what: &dyn Fn() -> Awaits) -> Option<Error> {
        if !self.dead.any() {
            return None;
        }
        let since = *self.dead.since.lock();
        self.check_deaths(operation, what, since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Ranges of how many bytes are locked for updates (`Updates::new`), where the user wishes for that. Nobody takes such locks back
    /// from the dead, so that there are none: elements are updated one by one.
    pub fn granularity(&self, wished: usize) -> usize {
        if self.outlives { 1 } else { wished }
    }

    /// Waits until each peer to which a connection was lost is known to have died: an agreement with one that lives would be without
    /// use, as that one may wait for what this rank can no longer send, and have no other way to learn of it than this rank's end.
    ///
    /// # Errors
    /// One lives: for this rank the job is over.
    pub fn explain_losses(&self) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error.clone());
        }
        while self.outlives && self.dead.is_open() {
            self.look_for_deaths();
            if let Some(error) = self.dead.unexplained() {
                self.fail(error.clone());
                return Err(error);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Why a wait that has lasted `waited` is in vain, if it is.
    pub(super) fn check_deaths(
        &self,
        operation: &'static str,
        what: &dyn Fn() -> Awaits,
        waited: Duration,
    ) -> Option<Error> {
        if waited >= LOOK_AFTER {
            self.look_for_deaths();
            if let Some(error) = self.dead.unexplained() {
                self.fail(error.clone());
                return Some(error);
            }
        }
        if !self.dead.any() {
            return None;
        }
        let Awaits { on, subject, among, context, known, goes_on, .. } = what();
        if subject == Subject::Target && (waited < ENDS_WITHIN || self.dead.has_news()) {
            return None;
        }
        if let Some(Err(error)) = context.map(|context| self.check_revoked(operation, context)) {
            return Some(error);
        }
        let owner = if let Subject::Lock { owner, .. } = subject { Some(owner as usize) } else { None };
        let dead = on.into_iter().chain(owner).find(|rank| self.dead.has(*rank));
        match (dead, among) {
            (Some(rank), _) => Some(self.death_of(operation, rank, "needs it")),
            (None, Some(group)) => {
                let error = self.dead_among(operation, &group, known)?;
                Some(if goes_on { error.while_it_goes_on() } else { error })
            }
            (None, None) => None,
        }
    }

    /// The error of a call that may need any rank of a group, if one of these is gone, besides the first so `known`.
    pub fn dead_among(&self, operation: &'static str, group: &Group, known: usize) -> Option<Error> {
        let mut unknown = self.dead.ranks().into_iter().skip(known);
        let dead = unknown.find(|rank| group.rank_of(*rank).is_some())?;
        Some(self.death_of(operation, dead, "may need any member"))
    }

    pub(super) fn death_of(&self, operation: &'static str, rank: usize, why: &str) -> Error {
        let message = format!(
            "rank {rank} of the job is gone, and this call {why}: go on without it, on a communicator of those that live"
        );
        Error::new(Class::Peer, operation, message).at_rank(self.rank).with_dead(rank)
    }
}
