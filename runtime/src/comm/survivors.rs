//! Members that are gone, in jobs that go on without them (`transom run --on-failure notify`).

use super::Communicator;

impl Communicator {
    /// The members that are gone, as far as this rank knows: they were killed, or have left the job. In the order of their ranks;
    /// always empty in a job that a death ends. Calls that need one of them return an error of [`crate::Class::Peer`], and
    /// [`crate::Error::dead`] names it (MPI Forum's fault-tolerance proposal, `MPIX_Comm_get_failed`). Not collective: other ranks
    /// may know of more or fewer.
    ///
    /// ```
    /// let known = transom::local(2, |job| Ok(job.failed()))?;
    /// assert_eq!(known, [vec![], vec![]]);
    /// # Ok::<(), transom::Error>(())
    /// ```
    pub fn failed(&self) -> Vec<usize> {
        let channel = self.channel();
        channel.engine.look_for_deaths();
        let dead = channel.engine.dead.ranks();
        let mut ranks: Vec<usize> = dead.into_iter().filter_map(|rank| channel.group.rank_of(rank)).collect();
        ranks.sort_unstable();
        ranks
    }
}
