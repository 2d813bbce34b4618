//! Members that are gone, in jobs that go on without them (`transom run --on-failure notify`): who they are, what the others agree on,
//! and communicators of those.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use transom_pmi::Contribution;

use super::{Channel, Communicator, Group};
use crate::collective::{self, Kind};
use crate::engine::ranges;
use crate::{Band, Class, Error, Request, Result};

/// What the members of a communicator have agreed on, the same at all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The flags that all have contributed who did not die before.
    pub flags: u64,
    /// The members that were gone when the agreement was reached, in the order of their ranks.
    pub failed: Vec<usize>,
    /// Whether all had [acknowledged](Communicator::acknowledge) all of these.
    pub acknowledged: bool,
}

impl Communicator {
    /// The members that are gone, as far as this rank knows: they were killed, or have left the job. In the order of their ranks;
    /// always empty in a job that a death ends. Calls that need one of them return an error of [`crate::Class::Peer`], and
    /// [`crate::Error::dead`] names it (MPI Forum's fault-tolerance proposal, `MPIX_Comm_get_failed`). Not collective: other ranks
    /// may know of more or fewer.
    ///
    /// ```
    /// let known = transom::local(2, |job| Ok(job.failed()))?;
    /// assert!(known.iter().all(Vec::is_empty));
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn failed(&self) -> Vec<usize> {
        let channel = self.channel();
        channel.engine.look_for_deaths();
        self.places(channel.engine.dead.ranks())
    }

    /// The ranks in this communicator of ranks of the job, in order.
    fn places(&self, job_ranks: Vec<usize>) -> Vec<usize> {
        let group = &self.channel().group;
        let mut ranks: Vec<usize> = job_ranks.into_iter().filter_map(|rank| group.rank_of(rank)).collect();
        ranks.sort_unstable();
        ranks
    }

    /// The members that are gone, as [`Communicator::failed`], in the order in which the launcher told of them: what comes later is behind
    /// what was there, at all ranks (`MPIX_Comm_get_failed`).
    pub fn failures(&self) -> Group {
        self.channel().engine.look_for_deaths();
        self.members_among(self.channel().engine.dead.ranks())
    }

    /// The program knows that the first `count` of [`Communicator::failures`] are gone, or all if there are fewer: receives from any source
    /// wait for the others from now on. Says how many are acknowledged (`MPIX_Comm_ack_failed`, `MPIX_Comm_failure_ack`).
    ///
    /// Until then a receive from any source is an error when a member is gone. One that was started before goes on all the same
    /// ([`Error::goes_on`]).
    pub fn acknowledge(&self, count: usize) -> usize {
        let channel = self.channel();
        channel.engine.look_for_deaths();
        let dead = channel.engine.dead.ranks();
        let is_member = |place: &usize| channel.group.rank_of(dead[*place]).is_some();
        let unknown = (0..dead.len()).filter(is_member).nth(count);
        channel.acknowledged.fetch_max(unknown.unwrap_or(dead.len()), Ordering::Relaxed);
        // Who waits for any source waits for fewer.
        channel.engine.wake_sleepers();
        self.acknowledged().size()
    }

    /// The members that are gone and acknowledged (`MPIX_Comm_failure_get_acked`).
    pub fn acknowledged(&self) -> Group {
        let channel = self.channel();
        let mut dead = channel.engine.dead.ranks();
        dead.truncate(channel.acknowledged.load(Ordering::Relaxed));
        self.members_among(dead)
    }

    fn members_among(&self, job_ranks: Vec<usize>) -> Group {
        let group = &self.channel().group;
        group.of(job_ranks.into_iter().filter(|rank| group.rank_of(*rank).is_some()).collect())
    }

    /// Makes the communicator useless at all members (`MPIX_Comm_revoke`): calls on it, also those that wait, return an error of
    /// [`Class::Revoked`], but for [`Communicator::agree`], [`Communicator::shrink`] and what is about members that are gone. Not
    /// collective: who has met an error gets the others out of what they wait for. All hear of it although this rank dies
    /// then.
    ///
    /// ```
    /// transom::local(3, |job| {
    ///     let all = job.dup()?;
    ///     if job.rank() == 1 {
    ///         all.revoke();
    ///     }
    ///     let error = all.recv::<u8>(1, 0).expect_err("nothing is sent");
    ///     assert_eq!(error.class(), transom::Class::Revoked);
    ///     assert!(all.is_revoked());
    ///     all.shrink()?.barrier()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn revoke(&self) {
        let channel = self.channel();
        channel.engine.revoke(channel.context, channel.group.job_ranks().collect());
    }

    /// Whether it is revoked, as far as this rank has heard (`MPIX_Comm_is_revoked`).
    pub fn is_revoked(&self) -> bool {
        let engine = &self.channel().engine;
        // What fails here other calls say.
        let _ = engine.try_progress();
        engine.dead.is_revoked(self.context())
    }

    /// Whether this job goes on when a rank dies (`transom run --on-failure notify`).
    pub fn outlives_ranks(&self) -> bool {
        self.channel().engine.outlives
    }

    /// Waits for all members that live.
    pub(crate) fn meet_living(&self) -> Result<()> {
        self.settle(0).wait().map(drop)
    }

    /// The same members in the context of the next agreement.
    fn aside(&self) -> Self {
        Self::new(self.member().clone(), Arc::new(self.channel().aside()), "")
    }

    /// Agrees with all members that live on flags, and on who is gone (`MPIX_Comm_agree`). Collective over the members that live;
    /// whoever dies meanwhile, all others get the same answer. In a job that a death ends all members are to come.
    ///
    /// ```
    /// let agreed = transom::local(2, |job| job.agree(4 | 1 << job.rank()))?;
    /// assert!(agreed.iter().all(|agreement| agreement.flags == 4 && agreement.failed.is_empty()));
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The launcher does not answer; as [`Communicator::barrier`] in a job that a death ends.
    pub fn agree(&self, flags: u64) -> Result<Agreement> {
        self.iagree(flags).wait()
    }

    /// [`Communicator::agree`], nonblocking (`MPIX_Comm_iagree`). Several may be under way, and other calls go on meanwhile; the members
    /// start their agreements and [shrinkings](Communicator::ishrink) in the same order.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let (first, second) = (job.iagree(6), job.iagree(job.rank() as u64));
    ///     assert_eq!((second.wait()?.flags, first.wait()?.flags), (0, 6));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn iagree(&self, flags: u64) -> Request<Agreement> {
        if self.channel().engine.outlives {
            return self.settle(flags).map(|(agreement, _)| Ok(agreement));
        }
        self.aside()
            .iallreduce(Band, &[flags])
            .map(|flags| Ok(Agreement { flags: flags[0], failed: Vec::new(), acknowledged: true }))
    }

    /// The same members without those that are gone, in the same order, and in a context of their own (`MPIX_Comm_shrink`).
    /// Collective over the members that live. Windows are made anew on the result. Who dies later is a member of it.
    ///
    /// # Errors
    /// As [`Communicator::agree`].
    pub fn shrink(&self) -> Result<Self> {
        self.ishrink().wait()
    }

    /// [`Communicator::shrink`], nonblocking (`MPIX_Comm_ishrink`), as [`Communicator::iagree`].
    pub fn ishrink(&self) -> Request<Self> {
        let this = self.clone();
        if self.channel().engine.outlives {
            return self
                .settle(u64::MAX)
                .map(move |(agreement, number)| this.without(&agreement.failed, number));
        }
        let own = self.new_context().to_le_bytes().to_vec();
        collective::start_broadcast(&self.aside(), Kind::Duplicate, 0, own).map(move |context| {
            let [context] = this.contexts(&context)?;
            Ok(this.with_context(context))
        })
    }

    /// The members but for some, in the context of a number that the launcher has given.
    fn without(&self, failed: &[usize], number: u64) -> Result<Self> {
        let channel = self.channel();
        let living = (0..self.size()).filter(|rank| failed.binary_search(rank).is_err());
        let group = channel.group.of(living.map(|rank| channel.job_rank(rank)).collect());
        self.derive("shrink", group, Channel::given_context(&channel.engine, number))
    }

    /// The agreement, and its number.
    fn settle(&self, flags: u64) -> Request<(Agreement, u64)> {
        let channel = self.channel();
        let key = format!("{:x}-{}", channel.context, channel.next_agreement());
        let members = ranges(channel.group.job_ranks().collect());
        let acknowledged = ranges(self.acknowledged().job_ranks().collect());
        let own = Contribution { key: &key, members: &members, flags, acknowledged: &acknowledged };
        let this = self.clone();
        self.member().start_agreement(own).map(move |agreed| {
            let malformed = || {
                let message = format!("the launcher says that {:?} are gone", agreed.gone);
                Error::new(Class::Launch, "agree", message).at_rank(this.channel().engine.rank)
            };
            let gone = agreed.gone.split(',').filter(|rank| *rank != "-");
            let gone: Option<Vec<usize>> = gone.map(|rank| rank.parse().ok()).collect();
            let failed = this.places(gone.ok_or_else(malformed)?);
            let acknowledged = agreed.acknowledged;
            Ok((Agreement { flags: agreed.flags, failed, acknowledged }, agreed.number))
        })
    }
}
