//! Groups and communicators: the members, and a context that separates the traffic of each (MPI-4.1 chapter 7).

mod channel;
mod generalised;
mod group;
mod lines;
mod make;
mod members;
mod request;
mod several;
mod survivors;

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

pub(crate) use channel::{Channel, WORLD};
pub use generalised::{Completion, generalised_request};
pub use group::{Comparison, Group, RankRange};
use lines::RoundLines;
pub use make::idup_sides;
pub(crate) use request::Awaited;
pub use request::{Request, Waiter};
pub use several::{
    Part, all_of, await_any, await_any_of, test_all, test_any, test_some, wait_all, wait_any, wait_some,
    waiter,
};
pub use survivors::Agreement;

use crate::job::Member;

/// An ordered set of ranks that communicate with each other only (MPI-4.1 §7.2).
///
/// Ranks count from 0 in each communicator. [`crate::Job`] is the communicator of all ranks. Clones are handles of the same
/// communicator; there is no call to free one: it ends with its last handle. Collectives of two communicators never
/// mix, whatever their order.
///
/// ```
/// transom::local(4, |job| {
///     let half = job.split(Some(job.rank() as u32 / 2), 0)?.expect("every rank has a colour");
///     assert_eq!((half.rank(), half.size()), (job.rank() % 2, 2));
///     let sum = half.allreduce(transom::Sum, &[job.rank()  as u64])?;
///     assert_eq!(sum, [[1], [5]][job.rank() / 2]);
///     half.barrier()
/// })?;
/// # Ok::<(), transom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Communicator(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    member: Arc<Member>,
    channel: Arc<Channel>,
    name: RwLock<Arc<str>>,
    /// Of barriers; made with the first.
    lines: OnceLock<Box<[RoundLines]>>,
}

impl Communicator {
    /// The communicator of a channel.
    pub(crate) fn new(member: Arc<Member>, channel: Arc<Channel>, name: &str) -> Self {
        Self(Arc::new(Inner { member, channel, name: RwLock::new(name.into()), lines: OnceLock::new() }))
    }

    /// The membership in the job.
    pub(crate) fn member(&self) -> &Arc<Member> {
        &self.0.member
    }

    /// Where this communicator's messages go.
    #[inline]
    pub(crate) fn channel(&self) -> &Arc<Channel> {
        &self.0.channel
    }

    /// This rank, from 0 (`MPI_Comm_rank`).
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.channel.rank
    }

    /// Number of ranks (`MPI_Comm_size`).
    #[inline]
    pub fn size(&self) -> usize {
        self.0.channel.size
    }

    /// The members (`MPI_Comm_group`).
    pub fn group(&self) -> Group {
        self.0.channel.group.clone()
    }

    /// The number that all members know this communicator by, which no other communicator of the job has.
    pub fn context(&self) -> u64 {
        self.0.channel.context
    }

    /// The same communicator, for one persistent collective; [`Communicator::number_rounds`] is to follow.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::new(self.member().clone(), Arc::new(self.channel().again()), "")
    }

    /// Initialises a persistent collective that will be started on `of`, which [`Communicator::again`] made: all ranks do so
    /// in the same order as collectives (MPI-4.1 §6.13). What is started there is matched by how often it was, whatever
    /// else each rank starts in between.
    pub fn number_rounds(&self, of: &Self) {
        self.channel().number_rounds(of.channel());
    }

    /// What it is called (`MPI_Comm_get_name`, §7.8): "world" for the job, nothing at first for others.
    pub fn name(&self) -> Arc<str> {
        self.0.name.read().clone()
    }

    /// Names it, for people; every handle at this rank shows the name (`MPI_Comm_set_name`).
    pub fn set_name(&self, name: impl Into<Arc<str>>) {
        *self.0.name.write() = name.into();
    }

    /// How alike two communicators are (`MPI_Comm_compare`, §7.4.1).
    pub fn compare(&self, other: &Self) -> Comparison {
        if self.context() == other.context() {
            return Comparison::Identical;
        }
        match self.0.channel.group.compare(&other.0.channel.group) {
            Comparison::Identical => Comparison::Congruent,
            other => other,
        }
    }
}
