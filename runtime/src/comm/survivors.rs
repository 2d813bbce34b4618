//! Members that are gone, in jobs that go on without them (`transom run --on-failure notify`): who they are, what the others agree on,
//! and communicators of those.

use super::{Channel, Communicator, Group};
use crate::{Band, Class, Error, Result};

/// What the members of a communicator have agreed on, the same at all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The flags that all have contributed who did not die before.
    pub flags: u64,
    /// The members that were gone when the agreement was reached, in the order of their ranks.
    pub failed: Vec<usize>,
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
        if !self.channel().engine.outlives {
            let flags = self.allreduce(Band, &[flags])?[0];
            return Ok(Agreement { flags, failed: Vec::new() });
        }
        let (agreement, _) = self.settle(flags)?;
        Ok(agreement)
    }

    /// The same members without those that are gone, in the same order, and in a context of their own (`MPIX_Comm_shrink`).
    /// Collective over the members that live. Windows are made anew on the result. Who dies later is a member of it.
    ///
    /// # Errors
    /// As [`Communicator::agree`].
    pub fn shrink(&self) -> Result<Self> {
        let channel = self.channel();
        if !channel.engine.outlives {
            return self.dup();
        }
        let (Agreement { failed, .. }, number) = self.settle(u64::MAX)?;
        let living = (0..self.size()).filter(|rank| failed.binary_search(rank).is_err());
        let group = channel.group.of(living.map(|rank| channel.job_rank(rank)).collect());
        self.derive("shrink", group, Channel::given_context(&channel.engine, number))
    }

    /// The agreement, and its number.
    fn settle(&self, flags: u64) -> Result<(Agreement, u64)> {
        let channel = self.channel();
        let key = format!("{:x}-{}", channel.context, channel.next_agreement());
        let agreed = self.member().agree(&key, &ranges(&channel.group), flags)?;
        let malformed = || {
            let message = format!("the launcher says that {:?} are gone", agreed.gone);
            Error::new(Class::Launch, "agree", message).at_rank(channel.engine.rank)
        };
        let gone = agreed.gone.split(',').filter(|rank| *rank != "-");
        let gone: Option<Vec<usize>> = gone.map(|rank| rank.parse().ok()).collect();
        let failed = self.places(gone.ok_or_else(malformed)?);
        Ok((Agreement { flags: agreed.flags, failed }, agreed.number))
    }
}

/// A group's ranks in the job: `0-3,7`.
fn ranges(group: &Group) -> String {
    let mut ranks: Vec<usize> = group.job_ranks().collect();
    ranks.sort_unstable();
    let runs = ranks.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| Some(format!("{}-{}", run.first()?, run.last()?))).collect::<Vec<_>>().join(",")
}
