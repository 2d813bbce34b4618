//! What messages of one communicator have in common.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Group;
use super::group::digest;
use crate::engine::Engine;
use crate::{Class, Error};

/// The context of the job's own communicator.
pub(crate) const WORLD: u64 = 0;
/// Bit of contexts in which a communicator is founded by its members alone.
pub(super) const FOUNDING: u64 = 1 << 63;
/// Bit of the numbers of nonblocking collectives.
const NONBLOCKING: u64 = 1 << 61;
/// Bit of collectives' numbers that count the rounds of a persistent one, and bits of these.
const PERSISTENT: u64 = 1 << 62;
const ROUND_BITS: u32 = 30;
/// Bits of a context that count, below those of the rank that made it.
const COUNT_BITS: u32 = 40;

/// The channel of one communicator's collectives and messages: its members, and the context that separates its traffic.
#[derive(Debug)]
pub(crate) struct Channel {
    pub engine: Arc<Engine>,
    pub context: u64,
    pub group: Group,
    /// This rank in the group.
    pub rank: usize,
    pub size: usize,
    /// Number of the next blocking collective, and of the next nonblocking one: these do not match each other (§6.12), so
    /// a rank may start one before that others start behind a blocking one.
    blocking: AtomicU64,
    nonblocking: AtomicU64,
    /// Number of the next partitioned message to or from (`true`, `false`) a rank with a tag.
    partitioned: Mutex<HashMap<(bool, usize, i32), u32>>,
    /// Number of the next agreement of the members that live.
    agreements: AtomicU64,
    /// How many of the ranks that are gone, in the order in which they are told of, the program has acknowledged here.
    pub acknowledged: AtomicUsize,
    /// Whether the members know each other's heaps.
    pub heaps_known: AtomicBool,
}

impl Channel {
    /// A channel between the ranks of `group`, of which this process is `rank`.
    pub fn new(engine: Arc<Engine>, context: u64, group: Group, rank: usize) -> Self {
        let size = group.size();
        Self {
            engine,
            context,
            group,
            rank,
            size,
            blocking: AtomicU64::new(0),
            nonblocking: AtomicU64::new(NONBLOCKING),
            partitioned: Mutex::default(),
            agreements: AtomicU64::new(0),
            acknowledged: AtomicUsize::new(0),
            heaps_known: AtomicBool::new(false),
        }
    }

    /// The channel of the whole job.
    pub fn world(engine: Arc<Engine>) -> Self {
        let (rank, size) = (engine.rank, engine.size);
        Self::new(engine, WORLD, Group::all(size, rank), rank)
    }

    /// The channel of the members that live, as far as this rank knows: of those that know of the same deaths.
    pub fn living(&self) -> Self {
        let dead = &self.engine.dead;
        let group = self.group.of(self.group.job_ranks().filter(|rank| !dead.has(*rank)).collect());
        let rank = group.rank().unwrap_or(0);
        Self::new(self.engine.clone(), FOUNDING | (group.digest() ^ digest(b"living")), group, rank)
    }

    /// The channel of the next agreement, where the launcher makes none: it works although this one is revoked.
    pub fn aside(&self) -> Self {
        let context = FOUNDING | (self.context.rotate_left(COUNT_BITS) ^ digest(b"agreement"));
        let aside = Self::new(self.engine.clone(), context, self.group.clone(), self.rank);
        aside.start_at(self.next_agreement());
        aside
    }

    /// The channel of the end of the job: the world's, whether or not that is revoked.
    pub fn end(&self) -> Self {
        Self::new(self.engine.clone(), FOUNDING | digest(b"end"), self.group.clone(), self.rank)
    }

    /// That it is not revoked.
    #[inline]
    pub fn check_use(&self, operation: &'static str) -> crate::Result<()> {
        self.engine.check_use(operation, self.context, None)
    }

    /// A context that no other communicator has.
    pub fn new_context(engine: &Engine) -> u64 {
        let count = engine.contexts.fetch_add(1, Ordering::Relaxed) + 1;
        ((engine.rank as u64) << COUNT_BITS | count) & !FOUNDING
    }

    /// Numbers collectives from `sequence` on.
    pub fn start_at(&self, sequence: u64) {
        self.blocking.store(sequence, Ordering::Relaxed);
        self.nonblocking.store(NONBLOCKING | sequence, Ordering::Relaxed);
    }

    /// Number of the next blocking collective: all members count alike.
    pub fn next_sequence(&self) -> u64 {
        self.blocking.fetch_add(1, Ordering::Relaxed)
    }

    /// Number of the next agreement.
    pub fn next_agreement(&self) -> u64 {
        self.agreements.fetch_add(1, Ordering::Relaxed)
    }

    /// A context of a number that the launcher has given: no rank makes such.
    pub fn given_context(engine: &Engine, number: u64) -> u64 {
        ((engine.size as u64) << COUNT_BITS | number) & !FOUNDING
    }

    /// Number of the next nonblocking collective.
    pub fn next_nonblocking(&self) -> u64 {
        self.nonblocking.fetch_add(1, Ordering::Relaxed)
    }

    /// The form of a collective, if it is the other than that of `own` and this rank has not come to it.
    pub fn other_form(&self, own: u64, sequence: u64) -> Option<&'static str> {
        let (next, form) = match sequence & NONBLOCKING {
            0 => (&self.blocking, "blocking"),
            _ => (&self.nonblocking, "nonblocking"),
        };
        let other = (own ^ sequence) & NONBLOCKING != 0;
        (other && sequence >= next.load(Ordering::Relaxed)).then_some(form)
    }

    /// The same channel, for the rounds of one persistent collective.
    pub fn again(&self) -> Self {
        Self::new(self.engine.clone(), self.context, self.group.clone(), self.rank)
    }

    /// Gives the rounds numbers of their own, which begin with that of the initialisation: it is counted as a nonblocking
    /// collective is.
    pub fn number_rounds(&self, of: &Self) {
        let number = self.next_nonblocking() & !NONBLOCKING;
        of.nonblocking.store(PERSISTENT | NONBLOCKING | number << ROUND_BITS, Ordering::Relaxed);
    }

    /// Number of the next partitioned message between this rank and a peer: both count alike.
    pub fn next_partitioned(&self, sends: bool, peer: usize, tag: i32) -> u32 {
        let mut all = self.partitioned.lock();
        let next = all.entry((sends, peer, tag)).or_default();
        *next = next.wrapping_add(1);
        *next - 1
    }

    /// The job rank of a member.
    #[inline]
    pub fn job_rank(&self, rank: usize) -> usize {
        // Ranks come from arithmetic modulo the size, or are checked: a wrong one would be this rank's own.
        self.group.job_rank(rank).unwrap_or(self.engine.rank)
    }

    /// What it is called in messages.
    pub fn title(&self) -> &'static str {
        if self.context == WORLD { "the job" } else { "the communicator" }
    }

    /// Whether the members have this rank.
    pub fn check_rank(&self, operation: &'static str, rank: usize) -> crate::Result<()> {
        if rank < self.size {
            return Ok(());
        }
        let message = format!("{} has ranks 0 to {}, not {rank}", self.title(), self.size - 1);
        Err(self.error(Class::Rank, operation, message))
    }

    #[cold]
    pub fn error(&self, class: Class, operation: &'static str, message: impl Into<String>) -> Error {
        Error::new(class, operation, message).at_rank(self.engine.rank)
    }
}
